import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Random } from '../../src/random.js';
import { transientSession } from '../../src/run/index.js';
import { copySnapshot, createStrategy, strategies, strategySchema, train, trainee } from '../../src/schedule/index.js';
import type { SeriesBatch, SeriesProblem } from '../../src/series/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { smallProblem } from './small-series.js';

const STATUS = { update: 3, updates: 12, performance: -1, meanPerformance: -1 };
const K = 3;

const every = (batch: SeriesBatch, task: number) => ({
  tasks: new Int32Array(batch.ends.length).fill(task),
  weights: new Float32Array(batch.ends.length).fill(1),
});

async function featuresOf(problem: SeriesProblem, batch: SeriesBatch, groups: readonly string[]) {
  const width = problem.features.reduce((sum, { name, width }) => sum + (groups.includes(name) ? width : 0), 0);
  const out = new Float32Array(batch.ends.length * width).fill(Number.NaN);
  await problem.writeFeatures(batch, STATUS, groups, out);
  return Array.from(batch.ends, (_, i) => [...out.subarray(i * width, (i + 1) * width)]);
}

describe('the scheduler', () => {
  it('sees the progress, the last row, the spread, labels, forecasts and the loss, in this order', async () => {
    const problem = await smallProblem();
    const batch = problem.nextBatch();
    const all = problem.features.map(({ name }) => name);
    expect(all).toEqual(['progress', 'inputs', 'spread', 'labels', 'forecasts', 'loss']);
    const losses = await problem.mainLosses(batch);
    const now = batch.x.subarray(-32 * 3); // the last step of the windows, [B, D]
    (await featuresOf(problem, batch, all)).forEach((row, i) => {
      expect(row).toHaveLength(1 + 3 + 1 + K + K + 1);
      expect(row[0]).toBe(0.25);
      expect(row.slice(1, 4)).toEqual([...now.subarray(3 * i, 3 * i + 3)]);
      expect(row.slice(5, 8)).toEqual([...batch.labels.subarray(K * i, K * i + K)]);
      expect(row[11]).toBeCloseTo((row[9] - row[6]) ** 2, 5);
      expect(row[11]).toBeCloseTo(losses[i], 6);
    });
    expect((await featuresOf(problem, batch, ['labels']))[0]).toEqual([...batch.labels.subarray(0, K)]);
    await problem.close();
  });
});

describe('an update', () => {
  it('returns the weighted mean loss of the chosen tasks', async () => {
    const problem = await smallProblem();
    const batch = problem.nextBatch();
    const rows = await featuresOf(problem, batch, ['labels', 'forecasts']);
    const tasks = Int32Array.from(batch.ends, (_, i) => i % K);
    const weights = Float32Array.from(batch.ends, (_, i) => i % 2);
    let [sum, total] = [0, 0];
    rows.forEach((row, i) => {
      sum += weights[i] * (row[K + tasks[i]] - row[tasks[i]]) ** 2;
      total += weights[i];
    });
    expect(await problem.train(batch, { tasks, weights })).toBeCloseTo(sum / total, 5);
    await problem.close();
  });

  it('of a blend with all weight on one task is that of the task, and two workers agree with one', async () => {
    const [one, other, two] = [await smallProblem(), await smallProblem(), await smallProblem({}, 1, 2)];
    const batch = one.nextBatch();
    const loss = await one.train(batch, every(batch, 2));
    const blend = Float32Array.from({ length: K * 32 }, (_, at) => (at % K === 2 ? 1 : 0));
    expect(await other.trainBlend(batch, blend)).toBeCloseTo(loss, 6);
    expect(await two.train(two.nextBatch(), every(batch, 2))).toBeCloseTo(loss, 5);
    const performance = await one.validate();
    expect(await other.validate()).toBeCloseTo(performance, 6);
    expect(await two.validate()).toBeCloseTo(performance, 5);
    for (const problem of [one, other, two]) await problem.close();
  });

  it('goes on exactly from a captured state', async () => {
    const [one, other] = [
      await smallProblem({ model: { hidden: 5, layers: 2 } }),
      await smallProblem({ model: { hidden: 5, layers: 2 } }, 2),
    ];
    const steps = async (problem: SeriesProblem, count: number) => {
      const losses: number[] = [];
      for (let step = 0; step < count; step++) {
        const batch = problem.nextBatch();
        losses.push(await problem.train(batch, every(batch, step % K)));
      }
      return [...losses, await problem.validate(), ...Object.values(await problem.test())];
    };
    await steps(one, 3);
    const saved = copySnapshot(one.capture());
    const expected = await steps(one, 20);
    other.restore({ tensors: saved.tensors, state: JSON.parse(JSON.stringify(saved.state)) });
    expect(await steps(other, 20)).toEqual(expected);
    await one.close();
    await other.close();
  });
});

describe('figures', () => {
  it('are those of the definition, before any training', async () => {
    const problem = await smallProblem();
    let [sum, count] = [0, 0];
    for (const batch of problem.validationBatches()) {
      for (const loss of await problem.mainLosses(batch)) {
        sum += loss;
        count++;
      }
    }
    expect(await problem.validate()).toBeCloseTo(-sum / count, 6);
    const figures = await problem.test();
    expect(Object.keys(figures)).toEqual(['loss', 'MSE', 'MAE', 'raw MSE', 'raw MAE', 'skill']);
    const folder = temporaryFolder();
    problem.saveFiles(folder);
    const { labelScales, normaliser, samples } = JSON.parse(readFileSync(join(folder, 'data.json'), 'utf8'));
    // 600 rows: 360, 120 and 120; a label looks 6 ahead, a window of 8 begins at row 0.
    expect(samples).toEqual({ train: 347, reward: 0, validation: 114, test: 114 });
    expect(figures['raw MSE']).toBeCloseTo(figures.loss * labelScales[1] ** 2, 9);
    expect(figures.MSE).toBeCloseTo(figures['raw MSE'] / normaliser.scale[2] ** 2, 9);
    expect(figures.MAE).toBeCloseTo(figures['raw MAE'] / normaliser.scale[2], 9);
    await problem.close();
  });

  it('show that it learns what can be known', async () => {
    const problem = await smallProblem({ model: { hidden: 16, layers: 1 }, data: { format: 'synthetic', rows: 2000 } });
    for (let step = 0; step < 200; step++) {
      const batch = problem.nextBatch();
      await problem.train(batch, every(batch, problem.main));
    }
    // In three hours of four the noise is a quarter of what the load moves.
    expect((await problem.test()).skill).toBeGreaterThan(0.5);
    await problem.close();
  });
});

it('reward data are neither trained nor validated on', async () => {
  const problem = await smallProblem({ validation: { reward: 0.5 } });
  const validated = new Set<number>();
  for (const { ends } of problem.validationBatches()) for (const end of ends) validated.add(end);
  // The validation part is rows 360 to 479: the first half is reward.
  expect(Math.min(...validated)).toBe(420);
  const [gradient, other] = [0, 0].map(() => new Float32Array(problem.gradients.size));
  await problem.gradients.ofValidation(gradient);
  for (const batch of problem.validationBatches()) await problem.gradients.ofTask(batch, problem.main, other);
  expect(gradient).not.toEqual(other);
  await problem.close();
});

describe('influence', () => {
  it('is there where reward data are, and says what a step on each task does to the main loss there', async () => {
    const [plain, problem] = [await smallProblem(), await smallProblem({ validation: { reward: 0.5 } })];
    expect(plain.influence).toBeUndefined();
    const influence = problem.influence!;
    const batch = problem.nextBatch();
    const before = copySnapshot(problem.capture());
    const [gradient, shift] = [0, 0].map(() => new Float32Array(influence.size));
    await influence.gradient(0, gradient);
    influence.shift(gradient, shift);
    const { samples, ahead } = await influence.losses(batch, 8, shift);
    expect(samples).toHaveLength(8);
    expect(ahead).toHaveLength(8 * K);
    // ℓ(θ + u) − ℓ(θ − u) ≈ 2 u·∇ℓ for the mean over the whole batch.
    const whole = await influence.losses(batch, 32, shift);
    const slopes = whole.ahead.map((loss, at) => loss - whole.behind[at]);
    for (let task = 0; task < K; task++) {
      const ofTask = new Float32Array(influence.size);
      await problem.gradients.ofTask(batch, task, ofTask);
      const expected = 2 * ofTask.reduce((sum, g, i) => sum + g * shift[i], 0);
      const found = slopes.filter((_, at) => at % K === task).reduce((sum, slope) => sum + slope / 32, 0);
      expect(found / expected).toBeCloseTo(1, 1);
    }
    expect(problem.capture()).toEqual(before);
    expect(gradient.some((g) => g !== 0)).toBe(true);
    await plain.close();
    await problem.close();
  });
});

it('a state of another series is refused', async () => {
  const [one, other] = [
    await smallProblem(),
    await smallProblem({ data: { format: 'synthetic', rows: 600, seed: 2 } }),
  ];
  expect(() => other.restore(one.capture())).toThrow('problem.data: the training part has changed since');
  await one.close();
  await other.close();
});

it.each(strategies.map(({ name }) => name))('%s trains it', async (name) => {
  const problem = await smallProblem({ corruption: { noise: 2 }, validation: { reward: 0.5 } });
  const strategy = await createStrategy(strategySchema.parse({ name }), problem, new Random(2));
  const subject = trainee(problem, strategy);
  const session = transientSession(subject, { mode: 'max' });
  await train(subject, session, { episodes: 2, steps: 2 });
  const episodes = session.records.filter((record) => 'performance' in record);
  expect(episodes).toHaveLength(2 * (strategy.passes ?? 1));
  await Promise.all([strategy.close?.(), problem.close()]);
});
