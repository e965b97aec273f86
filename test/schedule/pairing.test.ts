import { afterAll, describe, expect, test } from 'vitest';
import { Random } from '../../src/random.js';
import { algorithm1, copySnapshot, createStrategy, type Problem, partOf, trainee } from '../../src/schedule/index.js';
import { translationSchema } from '../../src/translate/config.js';
import { monotonicSchema } from '../../src/translate/monotonic/config.js';
import { MonotonicProblem } from '../../src/translate/monotonic/problem.js';
import { TranslationProblem } from '../../src/translate/problem.js';
import { smallProblem as smallMarket } from '../forecast/small-market.js';
import { bits, stored, strategyConfig } from './trainings.js';

/** Real problems with dropout, part of their validation data set aside. */
const PROBLEMS: Record<string, () => Promise<Problem>> = {
  'an MLP with dropout': async () =>
    (await smallMarket({
      model: { name: 'mlp', hidden: [8], dropout: 0.2 },
      validation: { reward: 0.4 },
    })) as unknown as Problem,
  'a GRU with an embedding of the task': async () =>
    (await smallMarket({ sharing: 'embedding', validation: { reward: 0.4 } })) as unknown as Problem,
  'a Transformer': async () =>
    (await TranslationProblem.create(
      translationSchema.parse({
        kind: 'translation',
        data: { from: 'toy', pairs: 60 },
        waits: 4,
        main: 2,
        smoothing: 0,
        model: { preset: 'tiny', encoderLayers: 1, decoderLayers: 1, width: 16, ffn: 16, heads: 2, dropout: 0.1 },
        batch: { tokens: 160 },
        learning: { peak: 0.01, warmup: 1 },
        validation: { reward: 0.3 },
      }),
      { random: new Random(1) },
    )) as unknown as Problem,
  'monotonic attention with weights of the latency as tasks': async () =>
    (await MonotonicProblem.create(
      monotonicSchema.parse({
        kind: 'monotonic',
        attention: 'milk',
        data: { from: 'toy', pairs: 60 },
        latencyWeights: [0, 0.1, 0.5],
        model: { preset: 'tiny', encoderLayers: 1, decoderLayers: 1, width: 16, ffn: 16, heads: 2, dropout: 0.1 },
        batch: { tokens: 160 },
        learning: { peak: 0.01, warmup: 1 },
        validation: { reward: 0.3 },
      }),
      { random: new Random(1) },
    )) as unknown as Problem,
};

const STRATEGIES = [
  { name: 'fixed' },
  { name: 'mtl' },
  { name: 'static' },
  { name: 'curriculum' },
  { name: 'learned', hidden: [4] },
  { name: 'bandit' },
  { name: 'bandit', method: 'thompson' },
  { name: 'aligned', every: 2 },
  { name: 'influence', every: 2, hidden: [4] },
];
const EXTENT = { episodes: 4, steps: 3 };

describe.each(Object.entries(PROBLEMS))('%s', async (_, create) => {
  const problem = await create();
  const start = copySnapshot(problem.capture());
  afterAll(() => problem.close?.());

  /** The problem from its beginning, trained for this many updates. */
  async function trained(config: { name: string } & Record<string, unknown>, updates = Number.POSITIVE_INFINITY) {
    problem.restore(copySnapshot(start));
    const strategy = await createStrategy(strategyConfig(config), problem, new Random(5));
    const subject = trainee(problem, strategy);
    let made = 0;
    for await (const _update of algorithm1(problem, strategy, EXTENT, subject.course)) if (++made === updates) break;
    return subject;
  }

  test('strategies of one seed see the same batches and dropout masks', async () => {
    const seen = [];
    for (const config of STRATEGIES) {
      const { strategy, problem: after } = await trained(config);
      const { model, data } = JSON.parse(JSON.stringify(after.capture().state));
      seen.push({ dropout: model.dropout, batches: data.batches });
      await strategy.close?.();
    }
    for (const other of seen) expect(other).toEqual(seen[0]);
  });

  test('influence that only explores has the bits of mtl', async () => {
    const mtl = await trained({ name: 'mtl' });
    const expected = bits(partOf(copySnapshot(problem.capture()), 'model'));
    const { strategy } = await trained({ name: 'influence', explore: 1, every: 2, hidden: [4] });
    expect(bits(partOf(problem.capture(), 'model'))).toEqual(expected);
    await strategy.close?.();
    await mtl.strategy.close?.();
  });

  test('influence goes on from a checkpoint as if it had not been stopped', async () => {
    const config = { name: 'influence', every: 1, memory: 4, hidden: [4] };
    const whole = await trained(config);
    const expected = bits(stored(whole.capture()));
    await whole.strategy.close?.();
    const first = await trained(config, 7);
    const saved = stored(first.capture());
    await first.strategy.close?.();
    problem.restore(copySnapshot(start));
    const strategy = await createStrategy(strategyConfig(config), problem, new Random(5));
    const second = trainee(problem, strategy);
    second.restore(saved);
    for await (const _update of algorithm1(problem, strategy, EXTENT, second.course));
    expect(bits(second.capture())).toEqual(expected);
    await strategy.close?.();
  });

  test('a measurement changes nothing, and slopes are gradients along the shift', async () => {
    await (await trained({ name: 'mtl' }, 6)).strategy.close?.();
    const { influence, gradients } = problem as Required<Problem>;
    const batch = await problem.nextBatch();
    const before = bits(copySnapshot(problem.capture()));
    const [gradient, shift, ofTask] = [0, 1, 2].map(() => new Float32Array(influence.size));
    await influence.gradient(0, gradient);
    influence.shift(gradient, shift);
    const { samples, ahead, behind } = await influence.losses(batch, problem.sizeOf(batch), shift);
    const values = ahead.map((loss, at) => loss - behind[at]);
    expect(samples).toHaveLength(problem.sizeOf(batch));
    const K = problem.tasks.length;
    for (let task = 0; task < K; task++) {
      await gradients.ofTask(batch, task, ofTask);
      const slope = 2 * ofTask.reduce((sum, g, i) => sum + g * shift[i], 0);
      const mean = samples.reduce((sum, _place, i) => sum + values[i * K + task], 0) / samples.length;
      // The mean over sentences is not quite the mean over tokens; a day without a label has no slope.
      if (!Number.isNaN(mean)) expect(Math.abs(mean - slope)).toBeLessThan(0.05 * Math.abs(slope) + 1e-4);
    }
    expect(bits(problem.capture())).toEqual(before);
  });
});

test('a problem that sets nothing aside has no influence to offer', async () => {
  const problem = (await smallMarket()) as unknown as Problem;
  const made = createStrategy(strategyConfig({ name: 'influence' }), problem, new Random(1));
  await expect(made).rejects.toThrow('the strategy influence needs reward data');
  await problem.close?.();
});

test('reward data and validation data have no day in common, labels included', async () => {
  const { openForecastData } = await import('../../src/forecast/data/dataset.js');
  const { smallConfig } = await import('../forecast/small-market.js');
  const { reward, validation } = await openForecastData(smallConfig({ tasks: 3, validation: { reward: 0.4 } }));
  // A label of the third day ahead reaches three days beyond its sample.
  expect(reward!.samples.day.at(-1)! + 3).toBeLessThan(validation.samples.day[0]);
});
