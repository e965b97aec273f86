import { describe, expect, test } from 'vitest';
import { Random } from '../../src/random.js';
import type { Snapshot } from '../../src/run/index.js';
import {
  createStrategy,
  Learned,
  type LearnedOptions,
  PAPER,
  type Problem,
  type Status,
} from '../../src/schedule/index.js';
import { SchedulerNetwork } from '../../src/schedule/strategies/scheduler.js';
import { stored, strategyConfig } from './trainings.js';

/** A problem of which nothing is needed but features: one batch whose rows are given. */
function fromFeatures(rows: readonly (readonly number[])[], tasks: number): Problem {
  return {
    tasks: Array.from({ length: tasks }, (_, i) => ({ name: `T${i + 1}`, number: i + 1 })),
    main: 0,
    features: [
      { name: 'first', width: 1 },
      { name: 'rest', width: rows[0].length - 1 },
    ],
    sizeOf: () => rows.length,
    writeFeatures: (_batch: unknown, _status: Status, groups: readonly string[], out: Float32Array) => {
      const first = groups.includes('first') ? 0 : 1;
      const last = groups.includes('rest') ? rows[0].length : 1;
      out.set(rows.flatMap((row) => row.slice(first, last)));
    },
  } as unknown as Problem;
}

const STATUS: Status = { update: 1, updates: 10, performance: 0, meanPerformance: 0 };
const ROWS = [
  [1, 0, -0.5],
  [0.3, 1, 2],
];

/** ω by name, in double precision. */
function parameters(strategy: Learned<unknown>): Record<string, number[]> {
  const { tensors } = strategy.capture();
  const own = [...tensors].filter(([name]) => /^policy\/\d\.(weight|bias)$/.test(name));
  return Object.fromEntries(own.map(([name, { data }]) => [name.slice(7), Array.from(data as Float32Array)]));
}

/** softmax(W₁ tanh(W₀ x + b₀) + b₁), written out. */
function probabilities(omega: Record<string, number[]>, x: readonly number[]): number[] {
  const layer = (weight: number[], bias: number[], input: readonly number[]) =>
    bias.map((b, o) => input.reduce((sum, value, i) => sum + weight[o * input.length + i] * value, b));
  const hidden = layer(omega['0.weight'], omega['0.bias'], x).map(Math.tanh);
  const powers = layer(omega['1.weight'], omega['1.bias'], hidden).map(Math.exp);
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}

describe('line 11', () => {
  test('moves ω by η₂ (R_e − R_{e−1}) Σ ∇ log P with the preset `paper`', async () => {
    // Before the first update P is 1/K everywhere, so that ∂ Σ log P(Tᵢ) / ∂ b_T = n_T − N/K.
    const options = { ...PAPER, hidden: [4], learningRate: 0.125 };
    const strategy = await Learned.create(fromFeatures(ROWS, 3), new Random(1), options);
    const counts = [0, 0, 0];
    for (let s = 0; s < 5; s++) {
      const { tasks } = await strategy.choose(null, STATUS);
      for (const task of tasks) counts[task]++;
    }
    const { gradNorm } = await strategy.endEpisode(-2, { ...STATUS, performance: -5 });
    const bias = parameters(strategy)['1.bias'];
    counts.forEach((n, task) => {
      expect(bias[task]).toBeCloseTo(0.125 * 3 * (n - 10 / 3), 5);
    });
    expect(gradNorm).toBeGreaterThan(3 * Math.hypot(...counts.map((n) => n - 10 / 3)) - 1e-4);
  });

  test('of a mean or of a sum over √N is as much smaller', async () => {
    const steps = await Promise.all(
      (['sum', 'mean', 'root'] as const).map(async (reduction) => {
        const options = { ...PAPER, hidden: [4], learningRate: 1, reduction };
        const strategy = await Learned.create(fromFeatures(ROWS, 3), new Random(1), options);
        for (let s = 0; s < 8; s++) await strategy.choose(null, STATUS);
        await strategy.endEpisode(1, STATUS);
        return parameters(strategy)['1.bias'];
      }),
    );
    steps[0].forEach((whole, task) => {
      expect(steps[1][task]).toBeCloseTo(whole / 16, 5);
      expect(steps[2][task]).toBeCloseTo(whole / 4, 5);
    });
  });

  test('is, on average over the decisions, the gradient of the expected reward', { timeout: 60_000 }, async () => {
    // Two decisions among three tasks with a reward for each of the nine outcomes: everything can be enumerated.
    const rewards = [
      [1, -2, 0.5],
      [0, 3, -1],
      [2, 0.25, -1.5],
    ];
    const options: LearnedOptions = {
      ...PAPER,
      hidden: [3],
      learningRate: 1,
      reward: 'performance',
    };
    const strategy = await Learned.create(fromFeatures(ROWS, 3), new Random(5), options);
    // Some updates, so that no layer is at its special start.
    for (const reward of [0.9, -0.7, 0.8]) {
      await strategy.choose(null, STATUS);
      await strategy.endEpisode(reward, STATUS);
    }
    const omega = parameters(strategy);
    const expected = (at: Record<string, number[]>) => {
      const [p, q] = ROWS.map((x) => probabilities(at, x));
      return rewards.flat().reduce((sum, reward, i) => sum + reward * p[Math.floor(i / 3)] * q[i % 3], 0);
    };
    const names = Object.keys(omega);
    const exact = names.flatMap((name) =>
      omega[name].map((value, i) => {
        const at = (x: number) => expected({ ...omega, [name]: omega[name].with(i, x) });
        return (at(value + 1e-5) - at(value - 1e-5)) / 2e-5;
      }),
    );

    const begin = stored(strategy.capture());
    const episodes = 4000;
    const sums = exact.map(() => ({ sum: 0, squares: 0 }));
    const random = new Random('Monte Carlo');
    for (let e = 0; e < episodes; e++) {
      strategy.restore(withRandom(begin, random.fork(`episode ${e}`)));
      const { tasks } = await strategy.choose(null, STATUS);
      await strategy.endEpisode(rewards[tasks[0]][tasks[1]], STATUS);
      const moved = parameters(strategy);
      names
        .flatMap((name) => moved[name].map((value, i) => value - omega[name][i]))
        .forEach((step, i) => {
          sums[i].sum += step;
          sums[i].squares += step * step;
        });
    }
    // Every component within 4.5 standard errors: of 24 components one in 6000 runs would miss by chance.
    const errors = sums.map(({ sum, squares }, i) => {
      const mean = sum / episodes;
      return (mean - exact[i]) / Math.sqrt((squares / episodes - mean ** 2) / episodes);
    });
    expect(exact.length).toBe(3 * 3 + 3 + 3 * 3 + 3);
    expect(Math.max(...exact.map(Math.abs))).toBeGreaterThan(0.1);
    expect(Math.max(...errors.map(Math.abs))).toBeLessThan(4.5);
  });
});

test.each([32, 256])(
  'with rewards that are noise the preset `stable` goes on trying all tasks, with %d units',
  async (width) => {
    const [K, N] = [13, 40];
    const random = new Random('rewards');
    const rows = Array.from({ length: N }, () => [random.normal(), 1, random.normal()]);
    const config = strategyConfig({ name: 'learned', hidden: [width] });
    const strategy = (await createStrategy(config, fromFeatures(rows, K), new Random(3))) as Learned<unknown>;
    for (let episode = 0; episode < 60; episode++) {
      await strategy.choose(null, STATUS);
      await strategy.endEpisode(random.normal(), STATUS);
    }
    const probabilities = Array.from(await strategy.probabilities(null, STATUS));
    const entropy = -probabilities.reduce((sum, p) => sum + p * Math.log(p), 0) / N;
    expect(entropy).toBeGreaterThan(0.8 * Math.log(K));
    expect(entropy).toBeLessThan(0.999 * Math.log(K));
  },
);

test('the policy starts uniform and agrees with the formula of the network afterwards', async () => {
  const strategy = await Learned.create(fromFeatures(ROWS, 3), new Random(2), {
    ...PAPER,
    hidden: [5],
    learningRate: 2,
  });
  for (const p of await strategy.probabilities(null, STATUS)) expect(p).toBeCloseTo(1 / 3, 6);
  await strategy.choose(null, STATUS);
  await strategy.endEpisode(1, STATUS);
  await strategy.choose(null, STATUS);
  await strategy.endEpisode(-0.5, STATUS);
  const policy = await strategy.probabilities(null, STATUS);
  const omega = parameters(strategy);
  ROWS.flatMap((x) => probabilities(omega, x)).forEach((p, i) => {
    expect(policy[i]).toBeCloseTo(p, 5);
  });
  expect(Math.abs(policy[0] - 1 / 3)).toBeGreaterThan(0.01);
});

test('an entropy bonus alone brings the policy back to uniform', async () => {
  const options = { ...PAPER, hidden: [4], learningRate: 0.5, entropy: 1 };
  const strategy = await Learned.create(fromFeatures(ROWS, 3), new Random(3), options);
  await strategy.choose(null, STATUS);
  await strategy.endEpisode(4, STATUS);
  const largest = async () => Math.max(...(await strategy.probabilities(null, STATUS)));
  const before = await largest();
  expect(before).toBeGreaterThan(0.5);
  for (let e = 0; e < 200; e++) {
    await strategy.choose(null, STATUS);
    await strategy.endEpisode(0, STATUS);
  }
  expect(await largest()).toBeLessThan(0.36);
});

test('features that are switched off are not seen', async () => {
  const seen: (readonly string[])[] = [];
  const problem = fromFeatures(ROWS, 3);
  const write = problem.writeFeatures;
  problem.writeFeatures = (batch, status, groups, out) => {
    seen.push(groups);
    return write(batch, status, groups, out);
  };
  const strategy = await Learned.create(problem, new Random(1), { ...PAPER, hidden: [4], without: ['rest'] });
  await strategy.choose(null, STATUS);
  expect(seen).toEqual([['first']]);
  expect(parameters(strategy)['0.weight']).toHaveLength(4 * 1);
});

test('a scale of the features is the same as scaled features', async () => {
  const options = {
    hidden: [6],
    activation: 'relu',
    optimizer: { name: 'sgd' },
    startUniform: false,
    threads: 1,
  } as const;
  const [scaled, plain] = await Promise.all([1, 2].map(() => SchedulerNetwork.create(3, 4, new Random(9), options)));
  const scale = { mean: Float32Array.of(3, -1, 0.5), inverseStd: Float32Array.of(0.5, 4, 1) };
  const none = { mean: new Float32Array(3), inverseStd: new Float32Array(3).fill(1) };
  const features = Float32Array.of(1, 2, 3, 4, -1, 0.25);
  const z = features.map((x, i) => (x - scale.mean[i % 3]) * scale.inverseStd[i % 3]);
  const tasks = Int32Array.of(3, 1);
  for (let update = 0; update < 3; update++) {
    const found = await scaled.evaluate(features, scale);
    const expected = await plain.evaluate(z, none);
    expected.probabilities.forEach((p, i) => {
      expect(found.probabilities[i]).toBeCloseTo(p, 5);
    });
    const ascent = { gain: 0.3, entropy: 0.1, learningRate: 0.2 };
    const norm = await scaled.ascend([{ features, tasks }], scale, ascent);
    expect(norm).toBeCloseTo(await plain.ascend([{ features: z, tasks }], none, ascent), 4);
  }
});

test('chunks add up to the gradient of the whole', async () => {
  const options = {
    hidden: [6],
    activation: 'tanh',
    optimizer: { name: 'sgd' },
    startUniform: false,
    threads: 1,
  } as const;
  const random = new Random(4);
  const [features, tasks] = [new Float32Array(30 * 3), Int32Array.from({ length: 30 }, (_, i) => i % 4)];
  random.fillNormal(features, 0, 1);
  const scale = { mean: new Float32Array(3), inverseStd: new Float32Array(3).fill(1) };
  const ascent = { gain: 0.5, entropy: 0.1, learningRate: 0.1 };
  const [whole, parts] = await Promise.all([1, 2].map(() => SchedulerNetwork.create(3, 4, new Random(9), options)));
  const norm = await whole.ascend([{ features, tasks }], scale, ascent);
  const pieces = [0, 7, 19].map((from, i) => {
    const to = [7, 19, 30][i];
    return { features: features.subarray(3 * from, 3 * to), tasks: tasks.subarray(from, to) };
  });
  expect(await parts.ascend(pieces, scale, ascent)).toBeCloseTo(norm, 4);
  const [a, b] = [whole, parts].map((policy) =>
    [...policy.capture().tensors.values()].flatMap(({ data }) => [...data]),
  );
  a.forEach((value, i) => {
    expect(b[i]).toBeCloseTo(Number(value), 5);
  });
});

test('a feature that is not a number is named', async () => {
  const strategy = await Learned.create(
    fromFeatures(
      [
        [1, 2, 3],
        [4, Number.NaN, 6],
      ],
      3,
    ),
    new Random(1),
    { ...PAPER, hidden: [4] },
  );
  await expect(strategy.choose(null, STATUS)).rejects.toThrow('feature 2 of sample 2 of the batch is NaN');
});

function withRandom(snapshot: Snapshot, random: Random): Snapshot {
  const state = snapshot.state as { own: object };
  return { ...snapshot, state: { ...state, own: { ...state.own, random: random.state() } } };
}
