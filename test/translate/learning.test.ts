import { expect, it } from 'vitest';
import { traceModel } from '../../src/optim/inference.js';
import { Random } from '../../src/random.js';
import { translationSchema } from '../../src/translate/config.js';
import { PRESETS } from '../../src/translate/model/config.js';
import { lossInputs, lossModel } from '../../src/translate/model/transformer.js';
import { createTraining } from '../../src/translate/training.js';

const { learning } = translationSchema.parse({ kind: 'translation', data: { from: 'toy' } });

const lossOf = (preset: keyof typeof PRESETS, words: number) =>
  lossModel({ ...PRESETS[preset], vocabulary: { source: words, target: words } }, { smoothing: 0.1 });

it('keeps values, gradients and the two moments of Adam in the arena, and nothing else', async () => {
  const training = await createTraining(lossOf('tiny', 20), learning, { random: new Random(1) });
  expect(training.arena.slots).toBe(2);
  await training.close();
});

it('has room for the big model with 60,000 words: four arrays of f32 are under 4 GiB, five would not be', () => {
  const { parameters } = traceModel(lossOf('big', 60_000), lossInputs);
  const count = parameters.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0);
  expect(4 * 4 * count).toBeLessThan(2 ** 32);
  expect(5 * 4 * count).toBeGreaterThan(2 ** 32);
});

it('refuses the big model with 100,000 words and says what takes the room', async () => {
  // d = 1,024: 176 million parameters in the layers and 102.4 million in the one table, 16 bytes each.
  await expect(createTraining(lossOf('big', 100_000), learning, { random: new Random(1) })).rejects.toThrow(
    /^the model's 278,\d{3},\d{3} parameters need 4\.1\d GiB, .* the largest parameter is .*\[100000, 1024\]: /,
  );
});
