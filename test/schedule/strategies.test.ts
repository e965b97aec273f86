import { describe, expect, test } from 'vitest';
import { Random } from '../../src/random.js';
import { createStrategy, knownAnswer, type Problem, totalUpdates } from '../../src/schedule/index.js';
import { advance, bits, start, stored, strategyConfig } from './trainings.js';

const CONFIGS = {
  fixed: { name: 'fixed' },
  'fixed on another task': { name: 'fixed', task: 'clean' },
  'best-fixed': { name: 'best-fixed' },
  mtl: { name: 'mtl' },
  oracle: { name: 'oracle' },
  curriculum: { name: 'curriculum' },
  annealing: { name: 'annealing' },
  window: { name: 'window', radius: 1 },
  'self-paced': { name: 'self-paced' },
  'learned, preset stable': { name: 'learned', hidden: [8] },
  'learned, preset paper': { name: 'learned', preset: 'paper', hidden: [8], learningRate: 0.05 },
  'learned in minibatches': { name: 'learned', hidden: [8], minibatch: 24, entropy: 0.1 },
  'learned without a feature': { name: 'learned', hidden: [8], activation: 'relu', without: ['loss'] },
  greedy: { name: 'greedy', hidden: [8, 8], learningRate: 0.01 },
  soft: { name: 'soft', hidden: [8], learningRate: 0.01 },
  aligned: { name: 'aligned', every: 3 },
  bandit: { name: 'bandit' },
  'bandit, Thompson sampling': { name: 'bandit', method: 'thompson' },
  static: { name: 'static', rest: 'near', until: 0.5 },
  influence: { name: 'influence', every: 3, hidden: [8] },
  'influence with features shuffled': { name: 'influence', every: 2, shuffle: true, memory: 4 },
};

/** Strategies without a random number: another seed changes the data alone. */
const DETERMINISTIC = new Set(['fixed', 'best-fixed', 'curriculum', 'self-paced']);
const EXTENT = { episodes: 6, steps: 5 };

describe.each(Object.entries(CONFIGS))('%s', (_, given) => {
  const config = strategyConfig(given);

  test('gives every sample a distribution over the tasks, and looking at it changes nothing', async () => {
    const subject = await start(config, 1);
    await advance(subject, EXTENT, 12);
    const { problem, strategy, course } = subject;
    const batch = await problem.nextBatch();
    const before = bits(strategy.capture());
    const policy = await strategy.probabilities(batch, course.status(30));
    expect(bits(strategy.capture())).toEqual(before);

    const K = problem.tasks.length;
    expect(policy).toHaveLength(problem.sizeOf(batch) * K);
    for (let i = 0; i < policy.length; i += K) {
      const row = policy.subarray(i, i + K);
      expect(row.every((p) => p >= 0 && p <= 1)).toBe(true);
      expect(row.reduce((sum, p) => sum + p, 0)).toBeCloseTo(1, 5);
    }
    await strategy.close?.();
  });

  test('chooses for each sample by itself, as often as its policy says', async () => {
    const subject = await start(config, 2);
    await advance(subject, EXTENT, 11);
    const { problem, strategy, course } = subject;
    const K = problem.tasks.length;
    const [expected, variance, counted] = [new Float64Array(K), new Float64Array(K), new Float64Array(K)];
    for (let n = 0; n < 150; n++) {
      const batch = await problem.nextBatch();
      const status = course.status(30);
      const policy = await strategy.probabilities(batch, status);
      const choice = await strategy.choose(batch, status);
      if (choice.kind === 'blended') {
        expect(choice.weights).toEqual(policy);
        continue;
      }
      expect(choice.tasks).toHaveLength(problem.sizeOf(batch));
      choice.tasks.forEach((task, i) => {
        counted[task]++;
        // A greedy choice is the most probable task instead of a draw.
        const row = policy.subarray(i * K, (i + 1) * K);
        if (strategy.name === 'greedy') expect(row[task]).toBe(Math.max(...row));
        else expect(row[task]).toBeGreaterThan(0);
      });
      policy.forEach((p, i) => {
        expected[i % K] += p;
        variance[i % K] += p * (1 - p);
      });
    }
    if (strategy.name === 'soft' || strategy.name === 'greedy') return;
    for (let task = 0; task < K; task++) {
      expect(Math.abs(counted[task] - expected[task])).toBeLessThanOrEqual(4.5 * Math.sqrt(variance[task]) + 1e-2);
    }
    await strategy.close?.();
  });

  test('records shares that sum to one, and an entropy between 0 and log K', async () => {
    const subject = await start(config, 3);
    const records = await advance(subject, EXTENT);
    expect(records).toHaveLength(totalUpdates(EXTENT, subject.strategy) / EXTENT.steps);
    for (const { distribution, entropy, gradNorm } of records) {
      expect(distribution.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 9);
      expect(entropy).toBeGreaterThanOrEqual(0);
      expect(entropy).toBeLessThanOrEqual(Math.log(5) + 1e-6);
      expect(gradNorm === null || gradNorm >= 0).toBe(true);
    }
    await subject.strategy.close?.();
  });

  test('does the same with the same seed, and something else with another', async () => {
    const [one, two, other] = await Promise.all([start(config, 4), start(config, 4), start(config, 5)]);
    const records = await advance(one, EXTENT);
    expect(await advance(two, EXTENT)).toEqual(records);
    expect(bits(two.capture())).toEqual(bits(one.capture()));
    const elsewhere = await advance(other, EXTENT);
    expect(elsewhere).not.toEqual(records);
    if (!DETERMINISTIC.has(config.name))
      expect(bits(other.strategy.capture())).not.toEqual(bits(one.strategy.capture()));
    for (const { strategy } of [one, two, other]) await strategy.close?.();
  });

  test.each([1, 5, 13, 24])('goes on from update %i as if it had not been stopped', async (updates) => {
    const whole = await start(config, 6);
    const records = await advance(whole, EXTENT);

    const first = await start(config, 6);
    const before = await advance(first, EXTENT, updates);
    const saved = stored(first.capture());
    // What the first process does after the checkpoint is lost.
    await advance(first, EXTENT, 3);
    const second = await start(config, 6);
    second.restore(saved);
    const after = await advance(second, EXTENT);

    expect([...before, ...after]).toEqual(records);
    expect(bits(second.capture())).toEqual(bits(whole.capture()));
    for (const { strategy } of [whole, first, second]) await strategy.close?.();
  });
});

test.each([
  ['self-paced', 'mainLosses'],
  ['greedy', 'validationBatches'],
  ['soft', 'trainBlend'],
  ['aligned', 'gradients'],
  ['oracle', 'oracle'],
  ['influence', 'influence'],
])('%s refuses a problem that lacks %s, before it begins', async (name, ability) => {
  const random = new Random(1);
  const problem = Object.assign(knownAnswer(random), { [ability]: undefined }) as Problem;
  const made = createStrategy(strategyConfig({ name }), problem, random);
  await expect(made).rejects.toThrow(
    new RegExp(`^strategy\\.name: the strategy ${name} needs .*\\(${ability}\\), which this problem does not provide$`),
  );
});

test('unknown tasks and feature groups are refused with those that there are', async () => {
  const random = new Random(1);
  const problem = knownAnswer(random);
  const make = (given: { name: string } & Record<string, unknown>) =>
    createStrategy(strategyConfig(given), problem, random);
  await expect(make({ name: 'fixed', task: 'cleen' })).rejects.toThrow(
    'strategy.task: there is no task "cleen", expected the name or number of one of clean, main, off-60, off-120, off-180',
  );
  await expect(make({ name: 'window', around: 6 })).rejects.toThrow('strategy.around: there is no task 6');
  await expect(make({ name: 'learned', without: ['colour'] })).rejects.toThrow(
    'strategy.without: there is no feature group "colour", expected some of progress, kind, loss, validation',
  );
  await expect(make({ name: 'learned', without: ['loss', 'kind', 'progress', 'validation'] })).rejects.toThrow(
    'strategy.without: no feature group is left for the scheduler to see',
  );
});
