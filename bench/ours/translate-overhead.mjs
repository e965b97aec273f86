/**
 * An update under Algorithm 1, from the next batch to the changed parameters: plain wait-3, or with tasks that the
 * learned scheduler chooses. The Multi30k model; pairs of random words, as many and as long as in Multi30k's batches.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Random } from '../../dist/random.js';
import { createStrategy, strategySchema } from '../../dist/schedule/index.js';
import { TranslationProblem, translationSchema } from '../../dist/translate/index.js';
import { MULTI30K, randomSentences, VOCABULARY } from './translation.mjs';

const PAIRS = 5000;
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

/** A corpus of random words, of which every one occurs: the vocabulary is as large as Multi30k's. */
function randomCorpus(folder) {
  const text = randomSentences(PAIRS, 13, 4).map((tokens) => tokens.slice(0, -1).map((token) => `w${token}`));
  for (let word = 4; word < VOCABULARY; word++) text[word % PAIRS].push(`w${word}`);
  const lines = text.map((words) => `${words.join(' ')}\n`).join('');
  const prefix = join(folder, 'text');
  for (const language of ['en', 'de']) writeFileSync(`${prefix}.${language}`, lines);
  const corpus = join(folder, 'corpus');
  const tool = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
  const flags = ['--source', 'en', '--target', 'de', '--train', prefix, '--valid', prefix, '--out', corpus];
  const made = spawnSync(process.execPath, [
    tool,
    'prepare',
    'translate',
    ...flags,
    '--tokenizer',
    'none',
    '--shared-vocab',
  ]);
  if (made.status !== 0) throw new Error(`the corpus could not be prepared: ${made.stderr}`);
  return corpus;
}
