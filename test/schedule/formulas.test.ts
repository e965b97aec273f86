import { expect, test } from 'vitest';
import { Random } from '../../src/random.js';
import {
  createStrategy,
  type Problem,
  type Status,
  type Strategy,
  strategyNamed,
  taskWeights,
} from '../../src/schedule/index.js';
import { annealedDistribution } from '../../src/schedule/strategies/annealing.js';
import { curriculumTask } from '../../src/schedule/strategies/curriculum.js';
import { withoutHardest } from '../../src/schedule/strategies/self-paced.js';
import { advance, start, strategyConfig } from './trainings.js';

/** Makes a strategy at once, its other options at their defaults. */
const maker =
  (name: string) =>
  (problem: Problem, random: Random, given: Record<string, unknown> = {}) => {
    const description = strategyNamed(name)!;
    return description.create(description.options.parse(given), problem, { random, threads: 1 }) as Strategy;
  };
const [annealing, curriculum, window] = ['annealing', 'curriculum', 'window'].map(maker);

/** Tasks wait-1, …, wait-M with main task wait-k, and batches of one sample. */
function waits(M: number, k: number): Problem {
  const tasks = Array.from({ length: M }, (_, i) => ({ name: `wait-${i + 1}`, number: i + 1 }));
  const curriculum = { easiest: 'last', until: 'main' };
  return { tasks, main: k - 1, curriculum, sizeOf: () => 1 } as unknown as Problem;
}

/** The same as days ahead, as the paper goes through them. */
const days = (M: number, k: number): Problem => ({
  ...waits(M, k),
  curriculum: { easiest: 'first', until: 'hardest' },
});

const at = (update: number, updates: number): Status => ({ update, updates, performance: 0, meanPerformance: 0 });

/** m of each update of a strategy that leaves no choice. */
async function course(
  strategy: { probabilities(batch: unknown, status: Status): Promise<Float32Array> },
  updates: number,
) {
  const rows = await Promise.all(
    Array.from({ length: updates }, (_, i) => strategy.probabilities(null, at(i + 1, updates))),
  );
  return rows.map((row) => row.indexOf(1) + 1);
}

// Appendix A.2: m = M − ⌊(t − 1)/t_max · (M − k + 1)⌋.
test('the curriculum goes from the easiest task to the main task in equal stages', async () => {
  const random = new Random(1);
  // M = 5, k = 3, t_max = 9: (t − 1)/9 · 3 = 0, 1/3, 2/3 | 1, 4/3, 5/3 | 2, 7/3, 8/3
  expect(await course(curriculum(waits(5, 3), random), 9)).toEqual([5, 5, 5, 4, 4, 4, 3, 3, 3]);
  // M = 4, k = 1, t_max = 6: (t − 1)/6 · 4 = 0, 0.67, 1.33, 2, 2.67, 3.33
  expect(await course(curriculum(waits(4, 1), random), 6)).toEqual([4, 4, 3, 2, 2, 1]);
  // The paper's M = 13, k = 9, t_max = 10: (t − 1)/10 · 5 = 0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5
  expect(await course(curriculum(waits(13, 9), random), 10)).toEqual([13, 13, 12, 12, 11, 11, 10, 10, 9, 9]);
});

test('the curriculum can begin at the other end, and go on to the hardest task', async () => {
  const random = new Random(1);
  // The mirror image of M = 5, k = 3: day 1 is the easiest.
  const first = { easiest: 'first' } as const;
  expect(await course(curriculum(waits(5, 3), random, first), 9)).toEqual([1, 1, 1, 2, 2, 2, 3, 3, 3]);
  // Main task day 1, until the hardest, t_max = 7, 5 stages: (t − 1)/7 · 5 = 0, 0.71, 1.43, 2.14, 2.86, 3.57, 4.29
  const on = { ...first, until: 'hardest' } as const;
  expect(await course(curriculum(waits(5, 1), random, on), 7)).toEqual([1, 1, 2, 3, 3, 4, 5]);
});

// Section 5: "In CL, we start from the easiest task T₁, and then gradually move to the most difficult one."
test('for stocks the curriculum goes from day 1 to the last day, whatever the main task', async () => {
  const random = new Random(1);
  for (const main of [1, 2, 3]) {
    expect(await course(curriculum(days(3, main), random), 6)).toEqual([1, 1, 2, 2, 3, 3]);
  }
  const config = strategyConfig({ name: 'curriculum' });
  const made = await createStrategy(config, days(3, 3), random);
  expect(await course(made, 6)).toEqual([1, 1, 2, 2, 3, 3]);
});

test('a curriculum that would never leave the main task is refused', () => {
  const random = new Random(1);
  expect(() => curriculum(waits(5, 5), random)).toThrow(
    'strategy.until: the main task wait-5 is the easiest one, so a curriculum that ends there trains nothing else',
  );
  expect(() => curriculum(days(3, 1), random, { until: 'main' })).toThrow('strategy.until: the main task');
  const silent = { ...waits(3, 1), curriculum: undefined };
  expect(() => curriculum(silent, random)).toThrow('strategy.easiest: this problem does not say');
});

test('no rounding moves the border of a stage', () => {
  // 49 stages of one update: (t − 1)/49 · 49 is 1 for t = 2, but 0.9999999999999999 in floating point.
  expect((1 / 49) * 49).toBeLessThan(1);
  expect(curriculumTask(48, 0, 2, 49)).toBe(47);
  for (let stages = 1; stages <= 13; stages++) {
    for (const length of [1, 7, 33, 1000]) {
      for (let stage = 0; stage < stages; stage++) {
        expect(curriculumTask(stages - 1, 0, stage * length + 1, stages * length)).toBe(stages - 1 - stage);
        expect(curriculumTask(stages - 1, 0, (stage + 1) * length, stages * length)).toBe(stages - 1 - stage);
      }
    }
  }
});

// Appendix E.2 (3): p_t(m) = (1 − t/t_max)/4 + t/t_max · m/(1 + 2 + 3 + 4).
test('annealing goes from uniform to a preference of larger m', async () => {
  const strategy = annealing(waits(4, 2), new Random(1));
  const table = [
    [1, [0.2125, 0.2375, 0.2625, 0.2875]], // ¾·¼ + ¼·m/10
    [2, [0.175, 0.225, 0.275, 0.325]], // ½·¼ + ½·m/10
    [3, [0.1375, 0.2125, 0.2875, 0.3625]],
    [4, [0.1, 0.2, 0.3, 0.4]],
  ] as const;
  for (const [t, expected] of table) {
    const policy = await strategy.probabilities(null, at(t, 4));
    expected.forEach((p, i) => {
      expect(policy[i]).toBeCloseTo(p, 7);
    });
  }
  expect(annealedDistribution([1, 2, 3, 4], 0)).toEqual([0.25, 0.25, 0.25, 0.25]);
  const smaller = await annealing(waits(4, 2), new Random(1), { prefer: 'smaller' }).probabilities(null, at(4, 4));
  expect([...smaller].map((p) => Number(p.toFixed(6)))).toEqual([0.4, 0.3, 0.2, 0.1]);
});

test('a window is cut where the tasks end', async () => {
  const policy = async (around: number, radius: number) => [
    ...(await window(waits(6, 3), new Random(1), { around, radius }).probabilities(null, at(1, 1))),
  ];
  expect(await policy(4, 1)).toEqual([0, 0, 1 / 3, 1 / 3, 1 / 3, 0].map(Math.fround));
  expect(await policy(6, 2)).toEqual([0, 0, 0, 1 / 3, 1 / 3, 1 / 3].map(Math.fround));
  expect([...(await window(waits(6, 3), new Random(1), { radius: 0 }).probabilities(null, at(1, 1)))]).toEqual([
    0, 0, 1, 0, 0, 0,
  ]);
});

test('self-paced learning leaves out the largest losses, fewer and fewer', async () => {
  // 40 % of 5 is 2: the losses 9 and 7. Of equal losses the later goes first.
  expect([...withoutHardest([1, 9, 3, 7, 2], 40)]).toEqual([1, 0, 1, 0, 1]);
  expect([...withoutHardest([5, 5, 5, 5, 5], 40)]).toEqual([1, 1, 1, 0, 0]);
  expect([...withoutHardest([1, 9, 3, 7, 2], 19.9)]).toEqual([1, 1, 1, 1, 1]);

  // Batches of 16, t_max = 8: τ = 40, 35, …, 5, of which ⌊τ · 16 / 100⌋ samples.
  const { problem, strategy } = await start(strategyConfig({ name: 'self-paced' }), 1);
  const dropped = [];
  for (let t = 1; t <= 8; t++) {
    const choice = await strategy.choose(await problem.nextBatch(), at(t, 8));
    dropped.push(choice.weights.filter((weight) => weight === 0).length);
  }
  expect(dropped).toEqual([6, 5, 4, 4, 3, 2, 1, 0]);
});

test('best-fixed trains one model a task from the same start and ends with the best of them', async () => {
  const extent = { episodes: 4, steps: 10 };
  const alone = [];
  for (const task of ['clean', 'main', 'off-60', 'off-120', 'off-180']) {
    alone.push(await advance(await start(strategyConfig({ name: 'fixed', task }), 7), extent));
  }
  const subject = await start(strategyConfig({ name: 'best-fixed' }), 7);
  const records = await advance(subject, extent);
  const performances = alone.flat().map(({ performance }) => performance);
  expect(records.map(({ performance }) => performance)).toEqual(performances);
  expect(records.map(({ distribution }) => distribution.indexOf(1))).toEqual(
    [0, 1, 2, 3, 4].flatMap((k) => [k, k, k, k]),
  );
  expect(await subject.problem.validate()).toBe(Math.max(...performances));
  // `clean` has the labels of the main task without their noise.
  expect(performances.indexOf(Math.max(...performances))).toBeLessThan(4);
});

test('the weights of samples stand in the columns of their tasks', () => {
  expect([...taskWeights([2, 0], 3, (sample) => sample + 0.5)]).toEqual([0, 0, 0.5, 1.5, 0, 0]);
});
