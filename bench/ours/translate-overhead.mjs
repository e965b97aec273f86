/**
 * An update under Algorithm 1, from the next batch to the changed parameters: plain wait-3, or with tasks that the
 * learned scheduler chooses. The Multi30k model; pairs of random words, as many and as long as in Multi30k's batches.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Random } from '../../dist/random.js';
import { createStrategy, strategySchema } from '../../dist/schedule/index.js';
import { TranslationProblem, translationSchema } from '../../dist/translate/index.js';
import { MULTI30K, randomCorpus } from './translation.mjs';

const WAITS = { waits: 13, main: 3 };

/** @param {{ threads: number, strategy: 'fixed' | 'learned', mainLoss?: 'exact' | 'estimated' | 'cached' }} options */
export async function setup({ threads, strategy: name, mainLoss = 'exact' }) {
  const folder = mkdtempSync(join(tmpdir(), 'tcts-bench-'));
  const problem = await TranslationProblem.create(
    translationSchema.parse({
      kind: 'translation',
      data: { from: 'corpus', folder: randomCorpus(folder) },
      ...WAITS,
      model: MULTI30K,
      batch: { tokens: 2048 },
      mainLoss,
    }),
    { random: new Random('bench'), threads },
  );
  const strategy = await createStrategy(strategySchema.parse({ name }), problem, new Random('strategy'), threads);
  let update = 0;
  await strategy.beginEpisode?.(status(1));
  return {
    async step() {
      const batch = await problem.nextBatch();
      return problem.train(batch, await strategy.choose(batch, status(++update)));
    },
    async close() {
      await strategy.close?.();
      await problem.close();
      rmSync(folder, { recursive: true });
    },
  };
}

const status = (update) => ({ update, updates: 1000, performance: -5, meanPerformance: -5 });
