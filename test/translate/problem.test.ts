import { afterAll, describe, expect, it } from 'vitest';
import { Random } from '../../src/random.js';
import type { Snapshot } from '../../src/run/index.js';
import {
  algorithm1,
  Course,
  copySnapshot,
  createStrategy,
  strategies,
  strategySchema,
} from '../../src/schedule/index.js';
import { type TranslationConfig, translationSchema } from '../../src/translate/config.js';
import { pairCount } from '../../src/translate/corpus/batches.js';
import { TranslationProblem } from '../../src/translate/problem.js';

const opened = new Map<string, { problem: TranslationProblem; start: Snapshot }>();
afterAll(async () => {
  for (const { problem } of opened.values()) await problem.close();
});

/**
 * A problem small enough that an update takes milliseconds, in the state in which it begins. Compiling takes longer: the
 * same problem is handed out again, unless another `copy` is asked for.
 */
async function smallProblem(keys: object = {}, copy = 1): Promise<TranslationProblem> {
  const key = JSON.stringify([keys, copy]);
  const known = opened.get(key);
  if (known !== undefined) {
    known.problem.restore(copySnapshot(known.start));
    return known.problem;
  }
  const { model, ...others } = keys as { model?: object };
  const config: TranslationConfig = translationSchema.parse({
    kind: 'translation',
    data: { from: 'toy', pairs: 60 },
    waits: 4,
    main: 2,
    model: { preset: 'tiny', encoderLayers: 1, decoderLayers: 1, width: 16, ffn: 16, heads: 2, ...model },
    batch: { tokens: 160 },
    learning: { peak: 0.01, warmup: 1 },
    ...others,
  });
  const problem = await TranslationProblem.create(config, { random: new Random(1) });
  opened.set(key, { problem, start: copySnapshot(problem.capture()) });
  return problem;
}

const status = { update: 3, updates: 12, performance: -5, meanPerformance: -6 };

function every(size: number, task: number) {
  return { tasks: new Int32Array(size).fill(task), weights: new Float32Array(size).fill(1) };
}

async function featuresOf(
  problem: TranslationProblem,
  batch: ReturnType<TranslationProblem['nextBatch']>,
  groups: string[],
) {
  const width = problem.features
    .filter(({ name }) => groups.includes(name))
    .reduce((sum, group) => sum + group.width, 0);
  const out = new Float32Array(pairCount(batch) * width);
  await problem.writeFeatures(batch, status, groups, out);
  return { out, width };
}

const parametersOf = (problem: TranslationProblem) =>
  [...copySnapshot(problem.capture()).tensors].filter(([name]) => name.startsWith('model/') && !name.includes('slot.'));

describe('tasks', () => {
  it('are wait-1 … wait-M, the main one among them', async () => {
    const { tasks, main } = await smallProblem();
    expect(tasks.map(({ name }) => name)).toEqual(['wait-1', 'wait-2', 'wait-3', 'wait-4']);
    expect(tasks[main]).toEqual({ name: 'wait-2', number: 2 });
    await expect(smallProblem({ main: 5 })).rejects.toThrow(/problem\.main: there is no task 5/);
  });

  it('are one for whole sentences', async () => {
    const problem = await smallProblem({ waits: 'full', model: { encoder: 'bidirectional' } });
    expect(problem.tasks.map(({ name }) => name)).toEqual(['full']);
    const start = await problem.validate();
    for (let i = 0; i < 5; i++) {
      const batch = problem.nextBatch();
      await problem.train(batch, every(pairCount(batch), 0));
    }
    expect(await problem.validate()).toBeGreaterThan(start);
  });
});

describe('features', () => {
  it.each([
    ['exact', 1e-5],
    // Products in 8 bits: right to a few hundredths of a nat.
    ['estimated', 0.05],
  ])('are seven, in the groups of the ablation study (%s)', async (mainLoss, tolerance) => {
    const problem = await smallProblem({ mainLoss });
    const batch = problem.nextBatch();
    const { out, width } = await featuresOf(problem, batch, ['lengths', 'training', 'validation', 'step']);
    expect(width).toBe(7);
    const losses = await problem.mainLosses(batch);
    const [{ sourceLengths, targetLengths }] = batch;
    for (let i = 0; i < pairCount(batch); i++) {
      const [source, target, loss, meanLoss, validation, meanValidation, step] = out.subarray(i * 7, i * 7 + 7);
      // Both languages have the same sentence lengths up to order, so both ratios have the same mean.
      expect(source / target).toBeCloseTo(sourceLengths[i] / targetLengths[i], 1);
      expect(Math.abs(loss - losses[i])).toBeLessThan(tolerance);
      // Nothing has been trained on: the validation loss stands for the mean.
      expect(meanLoss).toBe(5);
      expect([validation, meanValidation, step]).toEqual([5, 6, 0.25]);
    }
  });

  it('that are switched off leave no column', async () => {
    const problem = await smallProblem();
    const batch = problem.nextBatch();
    const { out, width } = await featuresOf(problem, batch, ['step', 'validation']);
    expect(width).toBe(3);
    expect([...out.subarray(0, 3)]).toEqual([5, 6, 0.25]);
  });

  it('have a mean of 1 over the training data where they are lengths', async () => {
    const problem = await smallProblem();
    let [sums, count] = [[0, 0], 0];
    for (let i = problem.batchesPerEpoch; i > 0; i--) {
      const batch = problem.nextBatch();
      const { out } = await featuresOf(problem, batch, ['lengths']);
      for (let b = 0; b < pairCount(batch); b++) sums = [sums[0] + out[2 * b], sums[1] + out[2 * b + 1]];
      count += pairCount(batch);
    }
    expect(count).toBe(60);
    expect(sums[0] / count).toBeCloseTo(1, 5);
    expect(sums[1] / count).toBeCloseTo(1, 5);
  });

  it('remember the mean of the losses of sentences that were trained on', async () => {
    const problem = await smallProblem({ mainLoss: 'estimated' });
    const first = problem.nextBatch();
    await featuresOf(problem, first, ['training']);
    const losses = await problem.mainLosses(first);
    await problem.train(first, every(pairCount(first), 3));
    const { out } = await featuresOf(problem, problem.nextBatch(), ['training']);
    expect(out[1]).toBeCloseTo(losses.reduce((a, b) => a + b) / losses.length, 1);
  });

  it('take the loss from memory with `cached`, from the last time the sentence had the main task', async () => {
    const problem = await smallProblem({ mainLoss: 'cached', model: { dropout: 0 } });
    const batch = problem.nextBatch();
    const fresh = await featuresOf(problem, batch, ['training']);
    expect(fresh.out[0]).toBe(5);
    const known = await problem.mainLosses(batch);
    const { tasks, weights } = every(pairCount(batch), problem.main);
    tasks[1] = 0;
    await problem.train(batch, { tasks, weights });
    const { out } = await featuresOf(problem, batch, ['training']);
    // Without dropout the loss of the update is the loss before it.
    expect(out[0]).toBeCloseTo(known[0], 5);
    const others = [...known].filter((_, i) => i !== 1);
    const mean = others.reduce((a, b) => a + b) / others.length;
    expect(out[2]).toBeCloseTo(mean, 5);
    expect(out[3]).toBeCloseTo(mean, 5);
  });

  it('take the losses of all batches of an update from memory', async () => {
    const batches = { batch: { tokens: 160, accumulate: 3 } };
    const problem = await smallProblem({ mainLoss: 'cached', model: { dropout: 0 }, ...batches });
    const batch = problem.nextBatch();
    expect(batch).toHaveLength(3);
    const before = await problem.mainLosses(batch);
    await problem.train(batch, every(pairCount(batch), problem.main));
    const { out } = await featuresOf(problem, batch, ['training']);
    for (const [i, loss] of before.entries()) expect(out[2 * i]).toBeCloseTo(loss, 5);
  });
});

it('remembers losses unless told otherwise, which costs no pass of the model', async () => {
  const problem = await smallProblem();
  expect(problem.features.filter(({ costly }) => costly)).toEqual([]);
});

describe('an update', () => {
  it('lowers the validation loss on the main task', async () => {
    const problem = await smallProblem();
    const start = await problem.validate();
    expect(await problem.validate()).toBe(start);
    for (let i = 0; i < 20; i++) {
      const batch = problem.nextBatch();
      await problem.train(batch, every(pairCount(batch), problem.main));
    }
    expect(await problem.validate()).toBeGreaterThan(start + 1);
  });

  it('is that of the batch without the sentences of weight 0', async () => {
    const keys = { model: { dropout: 0 }, batch: { tokens: 160, sentences: 2 } };
    const [weighted, without] = [await smallProblem(keys), await smallProblem(keys, 2)];
    const batch = weighted.nextBatch();
    const [part] = batch;
    const { tasks, weights } = every(2, 1);
    weights[1] = 0;
    const loss = await weighted.train(batch, { tasks, weights });

    const column = (ids: Int32Array) => ids.filter((_, i) => i % 2 === 0);
    const alone = {
      ...part,
      source: column(part.source),
      target: column(part.target),
      sourceLengths: part.sourceLengths.slice(0, 1),
      targetLengths: part.targetLengths.slice(0, 1),
      indices: part.indices.slice(0, 1),
      size: 1,
    };
    expect(await without.train([alone], every(1, 1))).toBeCloseTo(loss, 5);
  });

  it('with accumulated batches is the mean over all their tokens', async () => {
    const problem = await smallProblem({ model: { dropout: 0 }, smoothing: 0, batch: { tokens: 160, accumulate: 3 } });
    const batch = problem.nextBatch();
    expect(batch).toHaveLength(3);
    const losses = await problem.mainLosses(batch);
    const lengths = batch.flatMap(({ targetLengths }) => [...targetLengths]);
    const tokens = lengths.reduce((a, b) => a + b);
    const expected = lengths.reduce((sum, length, i) => sum + length * losses[i], 0) / tokens;
    expect(await problem.train(batch, every(pairCount(batch), problem.main))).toBeCloseTo(expected, 4);
  });

  it('on all tasks at once is that on one task, if that has all the weight', async () => {
    const keys = { model: { dropout: 0 } };
    const [single, blended] = [await smallProblem(keys), await smallProblem(keys, 2)];
    const batch = single.nextBatch();
    const loss = await single.train(batch, every(pairCount(batch), 2));
    const weights = Float32Array.from({ length: pairCount(batch) * 4 }, (_, i) => (i % 4 === 2 ? 1 : 0));
    expect(await blended.trainBlend(batch, weights)).toBeCloseTo(loss, 6);
  });

  it('follows the gradient that is handed out', async () => {
    const problem = await smallProblem({ model: { dropout: 0 }, smoothing: 0 });
    const batch = problem.nextBatch();
    const gradient = new Float32Array(problem.gradients.size);
    await problem.gradients.ofTask(batch, problem.main, gradient);
    const square = gradient.reduce((sum, g) => sum + g * g, 0);

    const loss = async () => {
      const losses = await problem.mainLosses(batch);
      const [{ targetLengths }] = batch;
      return losses.reduce((sum, l, i) => sum + l * targetLengths[i], 0) / targetLengths.reduce((a, b) => a + b);
    };
    // d/dε L(θ + ε·g) = ‖g‖². The arena holds the parameters in their order, each padded to 16 elements.
    const moved = async (by: number) => {
      const snapshot = copySnapshot(problem.capture());
      const original = copySnapshot(snapshot);
      let start = 0;
      for (const [name, { data }] of snapshot.tensors) {
        if (!name.startsWith('model/') || name.includes('slot.')) continue;
        for (let i = 0; i < data.length; i++) (data as Float32Array)[i] += by * gradient[start + i];
        start += Math.ceil(data.length / 16) * 16;
      }
      problem.restore(snapshot);
      const value = await loss();
      problem.restore(original);
      return value;
    };
    const step = 0.01 / Math.sqrt(square);
    const slope = ((await moved(step)) - (await moved(-step))) / (2 * step);
    expect(slope / square).toBeCloseTo(1, 1);
  });
});

describe('validation', () => {
  it('is minus the mean loss per token, plain or smoothed', async () => {
    const [plain, smoothed] = [await smallProblem(), await smallProblem({ validation: { loss: 'smoothed' } })];
    let [sum, tokens] = [0, 0];
    for (const batch of plain.validationBatches()) {
      const losses = await plain.mainLosses(batch);
      const [{ targetLengths }] = batch;
      losses.forEach((loss, i) => {
        sum += loss * targetLengths[i];
      });
      tokens += targetLengths.reduce((a, b) => a + b);
    }
    expect(await plain.validate()).toBeCloseTo(-sum / tokens, 4);
    // Before training every token has about the probability 1/V, so that smoothing changes little, but something.
    const difference = (await smoothed.validate()) - (await plain.validate());
    expect(Math.abs(difference)).toBeLessThan(0.5);
    expect(difference).not.toBe(0);
    const figures = await smoothed.test();
    expect(figures['smoothed validation loss']).toBeCloseTo(-(await smoothed.validate()), 6);
    expect(Object.keys(figures)).toContain('loss');
  });
});

describe('a state that is put back', () => {
  it.each(['exact', 'estimated', 'cached'])('goes on bit for bit as it would have gone (%s)', async (mainLoss) => {
    const problem = await smallProblem({ mainLoss });
    const update = async (subject: TranslationProblem) => {
      const batch = subject.nextBatch();
      const { out } = await featuresOf(subject, batch, ['lengths', 'training']);
      const loss = await subject.train(batch, every(pairCount(batch), subject.main));
      return [...out, loss];
    };
    // Beyond the end of the first epoch.
    for (let i = 0; i < 3; i++) await update(problem);
    const snapshot = copySnapshot(problem.capture());
    const expected = [];
    for (let i = 0; i < problem.batchesPerEpoch + 2; i++) expected.push(await update(problem));

    const other = await smallProblem({ mainLoss }, 2);
    other.restore(snapshot);
    const found = [];
    for (let i = 0; i < other.batchesPerEpoch + 2; i++) found.push(await update(other));
    expect(found).toEqual(expected);
    expect(parametersOf(other)).toEqual(parametersOf(problem));
  });
});

describe('every strategy', () => {
  it.each(strategies.map(({ name }) => name))('%s trains it', async (name) => {
    // What some of them need: reward data, a known answer.
    const problem = await smallProblem({ validation: { reward: 0.5 }, corruption: { scrambled: 0.5 } });
    const strategy = await createStrategy(strategySchema.parse({ name }), problem, new Random(2));
    const losses: number[] = [];
    for await (const { loss } of algorithm1(problem, strategy, { episodes: 2, steps: 2 }, new Course(4)))
      losses.push(loss);
    expect(losses).toHaveLength(4 * (strategy.passes ?? 1));
    expect(losses.every(Number.isFinite)).toBe(true);
    await strategy.close?.();
  });
});

describe('what cannot be', () => {
  it('is refused with the key', async () => {
    await expect(smallProblem({ model: { maxPositions: 5 } })).rejects.toThrow(/maxPositions: the split train/);
    await expect(smallProblem({ data: { from: 'corpus', folder: 'nowhere' } })).rejects.toThrow(/nowhere/);
    await expect(smallProblem({ warmStart: 'nowhere' })).rejects.toThrow(/nowhere: not a run folder/);
    await expect(smallProblem({ validation: { split: 'other' } })).rejects.toThrow(/no split "other"/);
  });
});
