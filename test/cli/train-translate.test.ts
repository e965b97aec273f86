import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { trainingRun } from '../../src/cli/training-run.js';
import { trainConfigSchema } from '../../src/problems/index.js';
import { loadConfig } from '../../src/run/index.js';
import { LossEvaluation } from '../../src/translate/loss-evaluation.js';
import { openTrained } from '../../src/translate/trained.js';
import { openData } from '../../src/translate/training.js';
import { temporaryFolder } from '../run/temporary.js';

const toy = fileURLToPath(new URL('../../configs/toy.yaml', import.meta.url));

/** The toy configuration, made so small that it takes a second. */
function smallToy(...set: string[]) {
  const small = [
    'threads=1',
    'problem.data.pairs=80',
    'problem.model.width=16',
    'problem.model.ffn=16',
    'problem.learning.warmup=5',
    'problem.batch.tokens=200',
    'training.episodes=2',
    'training.steps=4',
    'logging.tensorboard=false',
  ];
  return loadConfig(trainConfigSchema, toy, { set: [...small, ...set] });
}

test('a run folder alone holds all that the trained model needs', async () => {
  const folder = join(temporaryFolder(), 'run');
  const { result } = await trainingRun(smallToy(), { folder, quiet: true });
  for (const file of ['model.json', 'text.json', 'dict.sov.txt', 'dict.svo.txt']) {
    expect(existsSync(join(folder, file)), file).toBe(true);
  }

  const { arena, languages, main, model, step, waits } = openTrained(folder);
  expect({ main, waits, step }).toEqual({ main: 3, waits: 9, step: result!.best!.update });
  expect(languages.source.vocabulary.size).toBe(model.vocabulary.source);
  const { corpus, close } = await openData({ from: 'toy', seed: 1, pairs: 80 });
  const evaluation = await LossEvaluation.create(model, arena, { smoothing: 0.1 });
  const pairs = corpus.open('valid');
  const { plain, smoothed } = await evaluation.corpus(pairs, main, 4096);
  expect(plain).toBeCloseTo(-result!.best!.performance, 5);
  expect(result!.test!['smoothed validation loss']).toBeCloseTo(smoothed, 5);
  pairs.close();
  close();
});

test('a warm start begins with the best parameters of another run', async () => {
  const folder = temporaryFolder();
  const first = await trainingRun(smallToy('strategy.name=mtl'), { folder: join(folder, 'first'), quiet: true });
  const { performance } = first.result!.best!;
  const warm = [`problem.warmStart=${join(folder, 'first')}`, 'problem.learning.peak=1e-12', 'seed=2'];
  let start = Number.NaN;
  await trainingRun(smallToy(...warm), {
    folder: join(folder, 'second'),
    quiet: true,
    onEpisode: (record) => {
      if (record.episode === 1) start = record.performance - record.reward;
    },
  });
  expect(start).toBeCloseTo(performance, 6);

  const other = smallToy(...warm, 'problem.data.seed=2');
  await expect(trainingRun(other, { folder: join(folder, 'third'), quiet: true })).rejects.toThrow(
    /first\/dict\.sov\.txt.*problem\.warmStart.*differs from that of the corpus/,
  );
});
