import { describe, expect, it } from 'vitest';
import { type ForecastBatch, openForecastData } from '../../src/forecast/data/dataset.js';
import type { ForecastProblem } from '../../src/forecast/problem.js';
import { copySnapshot, remainingGroups } from '../../src/schedule/index.js';
import { STATUS, smallConfig, smallProblem } from './small-market.js';

const every = (problem: ForecastProblem, batch: ForecastBatch, task: number) => ({
  tasks: new Int32Array(problem.sizeOf(batch)).fill(task),
  weights: new Float32Array(problem.sizeOf(batch)).fill(1),
});

/** The columns of some feature groups, one row per sample. */
async function featuresOf(problem: ForecastProblem, batch: ForecastBatch, groups: readonly string[]) {
  const width = remainingGroups(problem.features, [])
    .filter(({ name }) => groups.includes(name))
    .reduce((sum, group) => sum + group.width, 0);
  const size = problem.sizeOf(batch);
  const out = new Float32Array(size * width);
  await problem.writeFeatures(batch, STATUS, groups, out);
  return Array.from({ length: size }, (_, i) => out.subarray(i * width, (i + 1) * width));
}

const SETTINGS = [
  ['gru, heads, replace', {}],
  ['gru, shared, add', { sharing: 'shared', chosen: 'add' }],
  ['gru, embedding, add', { sharing: 'embedding', chosen: 'add' }],
  ['mlp with dropout', { model: { name: 'mlp', hidden: [8], dropout: 0.2 } }],
  ['gat', { model: { name: 'gat', hidden: 4, layers: 1 } }],
  ['linear, embedding', { model: { name: 'linear' }, sharing: 'embedding' }],
] as const;

it('gives the scheduler each sample field by field, the days of a field in order, whatever the layout of the model', async () => {
  const rows: Float32Array[][] = [];
  for (const name of ['gru', 'linear'] as const) {
    const problem = await smallProblem({ model: { name } });
    rows.push(await featuresOf(problem, problem.nextBatch(), ['sample', 'labels']));
    await problem.close();
  }
  // A linear model takes samples in this form.
  expect(rows[0]).toEqual(rows[1]);
});

describe.each(SETTINGS)('the problem with %s', (_, over) => {
  it('goes on exactly from a captured state', async () => {
    const [one, other] = [await smallProblem(over), await smallProblem(over, 2)];
    const steps = async (problem: ForecastProblem, count: number) => {
      const losses: number[] = [];
      for (let step = 0; step < count; step++) {
        const batch = problem.nextBatch();
        const tasks = Int32Array.from({ length: problem.sizeOf(batch) }, (_unused, i) => (i + step) % 3);
        losses.push(await problem.train(batch, { tasks, weights: new Float32Array(tasks.length).fill(1) }));
      }
      return [...losses, await problem.validate()];
    };
    await steps(one, 3);
    const saved = copySnapshot(one.capture());
    const expected = await steps(one, 30);
    // By way of JSON, as a checkpoint has it.
    other.restore({ tensors: saved.tensors, state: JSON.parse(JSON.stringify(saved.state)) });
    expect(await steps(other, 30)).toEqual(expected);
    await one.close();
    await other.close();
  });

  it('becomes better on its main task by training it', async () => {
    const problem = await smallProblem(over);
    const before = await problem.validate();
    for (let step = 0; step < 60; step++) {
      const batch = problem.nextBatch();
      await problem.train(batch, every(problem, batch, problem.main));
    }
    expect(await problem.validate()).toBeGreaterThan(before);
    const { RankIC } = await problem.test();
    // The planted signal has the correlation .6 with the own part of a return.
    expect(RankIC).toBeGreaterThan(0.1);
    await problem.close();
  });

  it('trains a blend with all weight on one task as it trains that task', async () => {
    const [one, other] = [await smallProblem(over), await smallProblem(over)];
    const batch = one.nextBatch();
    const assignment = every(one, batch, 2);
    const loss = await one.train(batch, assignment);
    const blend = Float32Array.from({ length: 3 * one.sizeOf(batch) }, (_unused, at) => (at % 3 === 2 ? 1 : 0));
    expect(await other.trainBlend(batch, blend)).toBe(loss);
    expect(await other.validate()).toBe(await one.validate());
    await one.close();
    await other.close();
  });
});

describe('a training step', () => {
  it('returns the weighted mean loss of the chosen tasks', async () => {
    const problem = await smallProblem();
    const batch = problem.nextBatch();
    const size = problem.sizeOf(batch);
    const rows = await featuresOf(problem, batch, ['forecasts', 'labels']);
    const tasks = Int32Array.from({ length: size }, (_, i) => i % 3);
    const weights = Float32Array.from({ length: size }, (_, i) => i % 2);
    // forecasts are columns 0 to 2, labels columns 3 to 5.
    let [sum, total] = [0, 0];
    rows.forEach((row, i) => {
      sum += weights[i] * (row[tasks[i]] - row[3 + tasks[i]]) ** 2;
      total += weights[i];
    });
    expect(await problem.train(batch, { tasks, weights })).toBeCloseTo(sum / total, 5);
    await problem.close();
  });

  it('adds the chosen task to the main one if asked to', async () => {
    const problem = await smallProblem({ chosen: 'add', auxiliaryWeight: 0.5 });
    const batch = problem.nextBatch();
    const rows = await featuresOf(problem, batch, ['forecasts', 'labels']);
    const loss = (row: Float32Array, k: number) => (row[k] - row[3 + k]) ** 2;
    const expected = rows.reduce((sum, row) => sum + loss(row, 0) + 0.5 * loss(row, 2), 0) / rows.length;
    expect(await problem.train(batch, every(problem, batch, 2))).toBeCloseTo(expected, 5);
    await problem.close();
  });

  it('is the same with two workers as with one, but for rounding', async () => {
    const [one, two] = [await smallProblem(), await smallProblem({}, 1, 2)];
    const batch = one.nextBatch();
    const loss = await one.train(batch, every(one, batch, 1));
    expect(await two.train(two.nextBatch(), every(one, batch, 1))).toBeCloseTo(loss, 5);
    expect(await two.validate()).toBeCloseTo(await one.validate(), 5);
    await one.close();
    await two.close();
  });

  it('with one shared output pulls every forecast, with heads only its own', async () => {
    const change = async (sharing: string) => {
      const problem = await smallProblem({ sharing, model: { name: 'linear' } });
      const batch = problem.nextBatch();
      const before = (await featuresOf(problem, batch, ['forecasts'])).map((row) => row[0]);
      await problem.train(batch, every(problem, batch, 2));
      const after = (await featuresOf(problem, batch, ['forecasts'])).map((row) => row[0]);
      await problem.close();
      return Math.max(...after.map((value, i) => Math.abs(value - before[i])));
    };
    expect(await change('heads')).toBe(0);
    expect(await change('shared')).toBeGreaterThan(1e-3);
  });
});

describe('what the scheduler sees', () => {
  it('is the sample, its loss, the forecasts and the labels, in this order', async () => {
    const problem = await smallProblem();
    expect(problem.features).toEqual([
      { name: 'sample', width: 30 },
      { name: 'loss', width: 1, costly: true },
      { name: 'forecasts', width: 3, costly: true },
      { name: 'labels', width: 3, outcome: true },
    ]);
    const batch = problem.nextBatch();
    const all = await featuresOf(problem, batch, ['sample', 'loss', 'forecasts', 'labels']);
    const losses = await problem.mainLosses(batch);
    all.forEach((row, i) => {
      // Features are stored by field, oldest day first; the model has them by day.
      expect(row[0]).toBe(batch.x[i * 5]);
      expect(row[30]).toBeCloseTo((row[31] - row[34]) ** 2, 5);
      expect(row[30]).toBe(losses[i]);
      expect([...row.subarray(34)]).toEqual([...batch.labels.subarray(3 * i, 3 * i + 3)]);
    });
    const [labels] = await featuresOf(problem, batch, ['labels']);
    expect([...labels]).toEqual([...all[0].subarray(34)]);
    await problem.close();
  });

  it('has no gap where a validation sample has no label', async () => {
    const problem = await smallProblem({ data: { format: 'synthetic', stocks: 20, days: 160 } });
    let unknown = 0;
    for (const batch of problem.validationBatches()) {
      unknown += batch.labels.filter(Number.isNaN).length;
      for (const row of await featuresOf(problem, batch, ['sample', 'loss', 'forecasts', 'labels'])) {
        expect(row.every(Number.isFinite)).toBe(true);
      }
      expect((await problem.mainLosses(batch)).every(Number.isFinite)).toBe(true);
    }
    expect(unknown).toBeGreaterThan(0);
    await problem.close();
  });
});

describe('validation', () => {
  it('is minus the mean main-task loss of all labelled samples, and does not change the problem', async () => {
    const problem = await smallProblem({ main: 2, validation: { measure: 'loss' } });
    const before = copySnapshot(problem.capture());
    let [sum, count] = [0, 0];
    for (const batch of problem.validationBatches()) {
      const losses = await problem.mainLosses(batch);
      losses.forEach((loss, i) => {
        if (Number.isNaN(batch.labels[3 * i + 1])) return;
        sum += loss;
        count++;
      });
    }
    expect(await problem.validate()).toBeCloseTo(-sum / count, 6);
    expect(problem.capture()).toEqual(before);
    await problem.close();
  });

  it('as a rank correlation lies between -1 and 1, and every n-th day is fewer days', async () => {
    const [all, some] = [
      await openForecastData(smallConfig()),
      await openForecastData(smallConfig({ validation: { everyDays: 3 } })),
    ];
    const days = (data: typeof all) => data.validation.samples.dayStarts.length - 1;
    expect(days(some)).toBe(Math.ceil(days(all) / 3));
    const problem = await smallProblem({ validation: { measure: 'RankIC' } });
    const value = await problem.validate();
    expect(Math.abs(value)).toBeLessThan(1);
    await problem.close();
  });
});

it('gradients of a task are those that a step follows', async () => {
  const problem = await smallProblem();
  const batch = problem.nextBatch();
  const [main, last] = [0, 2].map(() => new Float32Array(problem.gradients.size));
  await problem.gradients.ofTask(batch, 0, main);
  await problem.gradients.ofTask(batch, 2, last);
  expect(main).not.toEqual(last);
  const again = new Float32Array(problem.gradients.size);
  await problem.gradients.ofTask(batch, 0, again);
  expect(again).toEqual(main);
  await problem.gradients.ofValidation(again);
  const dot = again.reduce((sum, value, i) => sum + value * main[i], 0);
  // Same task, other samples of one market: the two gradients agree.
  expect(dot).toBeGreaterThan(0);
  await problem.close();
});

it('a main task that is not among the tasks is refused', async () => {
  await expect(openForecastData(smallConfig({ main: 7 }))).rejects.toThrow(
    'problem.main: 7 is not among the tasks 1, 2, 3',
  );
});

it('a state of other prices is refused', async () => {
  const one = await smallProblem();
  const other = await smallProblem({ data: { format: 'synthetic', stocks: 20, days: 160, seed: 2 } });
  expect(() => other.restore(one.capture())).toThrow(
    'problem.data: the prices of the training part have changed since',
  );
  await one.close();
  await other.close();
});
