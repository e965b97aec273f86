import { expect, test } from 'vitest';
import { Random } from '../../src/random.js';
import { createStrategy, type Problem, type Status } from '../../src/schedule/index.js';
import { cosineSimilarity } from '../../src/schedule/strategies/aligned.js';
import { advance, start, strategyConfig } from './trainings.js';

const STATUS: Status = { update: 1, updates: 10, performance: 0, meanPerformance: 0 };
const nothing = { capture: () => ({ tensors: new Map(), state: null }), restore: () => {} };

test('the bandit weighs tasks by their share of the reward', async () => {
  const problem = {
    ...nothing,
    tasks: [1, 2].map((number) => ({ name: `T${number}`, number })),
    main: 0,
    sizeOf: () => 50,
  } as unknown as Problem;
  const plain = { skipFirst: false, baseline: null, normalise: null };
  const config = strategyConfig({ name: 'bandit', learningRate: 0.4, explore: 0.2, ...plain });
  const bandit = await createStrategy(config, problem, new Random(1));
  const choice = await bandit.choose(null, STATUS);
  const n = choice.kind === 'sampled' ? choice.tasks.filter((task) => task === 0).length : 0;
  await bandit.endEpisode(3, STATUS);
  // p = ½ each at first: w₁ − w₂ = η A (n₁ − n₂)/√N, and p₁ = 0.8/(1 + exp(w₂ − w₁)) + 0.1.
  const difference = (0.4 * 3 * (n - (50 - n))) / Math.sqrt(50);
  const policy = await bandit.probabilities(null, STATUS);
  expect(policy[0]).toBeCloseTo(0.8 / (1 + Math.exp(-difference)) + 0.1, 6);
});

/**
 * The policy's share of the first task after episodes of 100 updates with 400 samples each. An episode is rewarded by how
 * often that task came up beyond what the policy before it says: by ±√(p(1 − p)/40,000) ≈ .002
 * as long as all samples are drawn from one distribution.
 */
async function shareOfFirst(given: Record<string, unknown>, episodes: number): Promise<number> {
  const problem = {
    ...nothing,
    tasks: [1, 2, 3, 4].map((number) => ({ name: `T${number}`, number })),
    main: 1,
    sizeOf: () => 400,
  } as unknown as Problem;
  const bandit = await createStrategy(strategyConfig({ name: 'bandit', ...given }), problem, new Random(7));
  let performance = 0;
  for (let episode = 0; episode < episodes; episode++) {
    const expected = (await bandit.probabilities(null, STATUS))[0];
    await bandit.beginEpisode?.(STATUS);
    let first = 0;
    for (let update = 0; update < 100; update++) {
      const choice = await bandit.choose(null, STATUS);
      if (choice.kind === 'sampled') for (const task of choice.tasks) if (task === 0) first++;
    }
    const next = performance + first / 40_000 - expected;
    await bandit.endEpisode(next, { ...STATUS, performance });
    performance = next;
  }
  return (await bandit.probabilities(null, STATUS))[0];
}

test('the bandit learns from episodes of 40,000 samples', { timeout: 60_000 }, async () => {
  expect(await shareOfFirst({}, 150)).toBeGreaterThan(0.8);
  expect(await shareOfFirst({ method: 'thompson' }, 40)).toBeGreaterThan(0.9);
});

test('a static mix is what the configuration says, and in the end the main task alone', async () => {
  const problem = {
    ...nothing,
    tasks: [1, 2, 3, 4].map((number) => ({ name: `T${number}`, number })),
    main: 1,
    sizeOf: () => 1,
  } as unknown as Problem;
  const mix = async (given: Record<string, unknown>, update: number) => {
    const made = await createStrategy(strategyConfig({ name: 'static', ...given }), problem, new Random(1));
    return Array.from(await made.probabilities(null, { ...STATUS, update }));
  };
  const expectMix = (found: number[], expected: number[]) => {
    for (const [task, p] of expected.entries()) expect(found[task]).toBeCloseTo(p, 6);
  };
  expectMix(await mix({ main: 0.4 }, 1), [0.2, 0.4, 0.2, 0.2]);
  // Distances 1, 1 and 2: the rest of ½ goes as 2 : 2 : 1.
  expectMix(await mix({ rest: 'near' }, 10), [0.2, 0.5, 0.2, 0.1]);
  expectMix(await mix({ until: 0.5 }, 5), [1 / 6, 0.5, 1 / 6, 1 / 6]);
  expectMix(await mix({ until: 0.5 }, 6), [0, 1, 0, 0]);
});

test('aligned ascends the expected cosine of the gradients', async () => {
  // In the plane: the validation gradient points along x, the tasks at 0°, 60° and 180° of it.
  const directions = [
    [2, 0],
    [1, Math.sqrt(3)],
    [-5, 0],
  ];
  const problem = {
    ...nothing,
    tasks: [1, 2, 3].map((number) => ({ name: `T${number}`, number })),
    main: 0,
    sizeOf: () => 4,
    gradients: {
      size: 2,
      ofTask: async (_batch: unknown, task: number, out: Float32Array) => out.set(directions[task]),
      ofValidation: async (out: Float32Array) => out.set([0.1, 0]),
    },
  } as unknown as Problem;
  const aligned = await createStrategy(strategyConfig({ name: 'aligned', learningRate: 3 }), problem, new Random(1));
  await aligned.choose(null, STATUS);
  // R = 1, ½, −1 with mean 1/6, p = ⅓: ψ = 3 · ⅓ · (5/6, 2/6, −7/6).
  const powers = [5 / 6, 2 / 6, -7 / 6].map(Math.exp);
  const policy = await aligned.probabilities(null, STATUS);
  powers.forEach((power, task) => {
    expect(policy[task]).toBeCloseTo(power / (powers[0] + powers[1] + powers[2]), 6);
  });
  const { gradNorm } = await aligned.endEpisode(0, STATUS);
  expect(gradNorm).toBeCloseTo(Math.hypot(5, 2, 7) / 18, 6);
  expect(cosineSimilarity(Float32Array.of(0, 0), Float32Array.of(1, 0))).toBe(0);
});

test('aligned and bandit find the helpful task too', { timeout: 60_000 }, async () => {
  for (const config of [{ name: 'aligned', every: 1 }, { name: 'bandit' }]) {
    const records = await advance(await start(strategyConfig(config), 1), { episodes: 800, steps: 2 });
    const wrong = records
      .at(-1)!
      .distribution.slice(2)
      .reduce((sum, share) => sum + share, 0);
    expect(wrong).toBeLessThan(0.2);
  }
});

test("qlib's update can only lower the probability of the chosen task", async () => {
  for (const name of ['greedy', 'soft']) {
    const { problem, strategy, course } = await start(strategyConfig({ name, hidden: [8], learningRate: 0.01 }), 3);
    const batch = await problem.nextBatch();
    course.begin(-1);
    const largest = async () => {
      const policy = await strategy.probabilities(batch, course.status(10));
      const rows = Array.from({ length: 16 }, (_, i) => Math.max(...policy.subarray(5 * i, 5 * i + 5)));
      return rows.reduce((sum, p) => sum + p, 0) / 16;
    };
    const before = await largest();
    for (let e = 0; e < 40; e++) await strategy.endEpisode(e, course.status(10));
    expect(before).toBeGreaterThan(0.25);
    expect(await largest()).toBeLessThan(before - 0.02);
    await strategy.close?.();
  }
});
