import { expect, it } from 'vitest';
import { Random } from '../../src/random.js';
import { translationSchema } from '../../src/translate/config.js';
import { pairCount } from '../../src/translate/corpus/batches.js';
import { TranslationProblem } from '../../src/translate/problem.js';

it('on the toy languages, what a model has learned is worth more the longer it waits', async () => {
  const keys = {
    kind: 'translation',
    data: { from: 'toy', pairs: 3000 },
    waits: 9,
    model: { preset: 'tiny' },
    batch: { tokens: 512 },
    learning: { peak: 3e-3, warmup: 100 },
  };
  const problem = await TranslationProblem.create(translationSchema.parse(keys), { random: new Random(1) });
  const random = new Random(2);
  for (let update = 0; update < 350; update++) {
    const batch = problem.nextBatch();
    const tasks = Int32Array.from({ length: pairCount(batch) }, () => random.int(9));
    await problem.train(batch, { tasks, weights: new Float32Array(pairCount(batch)).fill(1) });
  }
  const [wait1, wait3, wait9] = await problem.validationLosses([1, 3, 9]);
  expect(wait3).toBeLessThan(wait1 - 0.1);
  expect(wait9).toBeLessThan(wait3 - 0.03);
  // One of 60 verbs is log 60 = 4.1 nats: whoever has read it must do better than that on the whole.
  expect(wait9).toBeLessThan(1.5);
  await problem.close();
}, 60_000);
