import { describe, expect, it } from 'vitest';
import { Random } from '../../src/random.js';
import {
  type Branch,
  type Effect,
  knownAnswer,
  LinearProblem,
  planProbe,
  probeArms,
  probeEffects,
  probeSeed,
  ratioOfMeans,
  recommend,
  strategySchema,
} from '../../src/schedule/index.js';

type Make = (random: Random) => LinearProblem;

async function branchesOf(make: Make, plan: ReturnType<typeof planProbe>, done = new Set<string>()): Promise<Branch[]> {
  const branches: Branch[] = [];
  for (const seed of plan.seeds) {
    const random = new Random(seed);
    const steps = probeSeed(make(random.fork('problem')), plan, seed, random.fork('probe'), done);
    for await (const { branch } of steps) if (branch !== undefined) branches.push(branch);
  }
  return branches;
}

async function probe(make: Make, seed: number, budget = 1600) {
  const plan = planProbe(make(new Random(seed)), { budget, seed });
  const branches = await branchesOf(make, plan);
  const effects = probeEffects(branches, plan);
  return { plan, branches, effects, recommendation: recommend(effects, plan) };
}

/** Teachers at angles to the main one, in the plane of the first two of four inputs. */
function teachers(
  siblings: readonly (readonly [name: string, degrees: number, noise: number])[],
  mainNoise: number,
): Make {
  const at = (degrees: number) => {
    const angle = (degrees * Math.PI) / 180;
    return [[1.5 * Math.cos(angle), 1.5 * Math.sin(angle), 0, 0]];
  };
  return (random) =>
    new LinearProblem({
      random,
      main: 'main',
      teachers: [
        { name: 'main', slopes: at(0), noise: mainNoise },
        ...siblings.map(([name, degrees, noise]) => ({ name, slopes: at(degrees), noise })),
      ],
    });
}

const tasks = (...names: string[]) => names.map((name, i) => ({ name, number: i + 1 }));

describe('the arms', () => {
  it('are main alone, all, main with each sibling, and all but each sibling', () => {
    expect(probeArms(tasks('a', 'b', 'c', 'd'), 1)).toEqual([
      { name: 'main', distribution: [0, 1, 0, 0] },
      { name: 'uniform', distribution: [1 / 4, 1 / 4, 1 / 4, 1 / 4] },
      { name: 'main + a', distribution: [1 / 2, 1 / 2, 0, 0] },
      { name: 'main + c', distribution: [0, 1 / 2, 1 / 2, 0] },
      { name: 'main + d', distribution: [0, 1 / 2, 0, 1 / 2] },
      { name: 'uniform − a', distribution: [0, 1 / 3, 1 / 3, 1 / 3] },
      { name: 'uniform − c', distribution: [1 / 3, 1 / 3, 0, 1 / 3] },
      { name: 'uniform − d', distribution: [1 / 3, 1 / 3, 1 / 3, 0] },
    ]);
  });

  it('that are the same mix are one', () => {
    // Of three tasks, main + b is all but c; of two, main + b is all and all but b is main.
    expect(probeArms(tasks('a', 'b', 'c'), 0).map(({ name }) => name)).toEqual([
      'main',
      'uniform',
      'main + b',
      'main + c',
    ]);
    expect(probeArms(tasks('a', 'b'), 0).map(({ name }) => name)).toEqual(['main', 'uniform']);
  });
});

describe('the plan', () => {
  const problem = { tasks: tasks('a', 'b', 'c', 'd', 'e'), main: 2 };

  it.each([60, 100, 161, 777, 5000, 100_000])('of %i updates keeps to them and uses most of them', (budget) => {
    const { updates, seeds, checkpoints, trunk, length, arms } = planProbe(problem, { budget, seed: 7 });
    expect(updates).toBe(seeds.length * checkpoints * (trunk + length * arms.length));
    expect(updates).toBeLessThanOrEqual(budget);
    expect(updates).toBeGreaterThan(budget - seeds.length * checkpoints);
    expect(seeds).toEqual(seeds.map((_, i) => 7 + i));
  });

  it('has what it is asked for', () => {
    expect(planProbe(problem, { budget: 1000, seed: 1, seeds: 3, checkpoints: 4 })).toMatchObject({
      seeds: [1, 2, 3],
      checkpoints: 4,
    });
    // 1000 updates, 5 seeds: 150 of 200 go into the trunk; 10 branches share the rest.
    expect(planProbe(problem, { budget: 1000, seed: 1, seeds: 5, trunk: 0.75 })).toMatchObject({
      trunk: 150,
      length: 5,
    });
  });

  it('refuses a budget without room for a branch, and a single task', () => {
    // 6 branches of one update are three quarters of 8 updates; 5 seeds.
    expect(() => planProbe(problem, { budget: 39, seed: 1 })).toThrow(
      'budget: 39 updates are too few for 6 branches with 5 seeds, expected at least 40',
    );
    expect(planProbe(problem, { budget: 40, seed: 1 })).toMatchObject({ length: 1, updates: 40 });
    expect(() => planProbe({ tasks: tasks('a'), main: 0 }, { budget: 100, seed: 1 })).toThrow('there is only a');
  });
});

describe('branches', () => {
  const plan = planProbe(knownAnswer(new Random(1)), { budget: 300, seed: 5, seeds: 3, checkpoints: 2 });

  it('are paired: the same mix gives the same bits, whatever ran before', async () => {
    const twice = { ...plan, arms: [...plan.arms, { ...plan.arms[0], name: 'again' }] };
    const branches = await branchesOf(knownAnswer, twice);
    const of = (name: string) => branches.filter(({ arm }) => arm === name).map(({ start, end }) => [start, end]);
    expect(of('again')).toEqual(of('main'));
    expect(of('uniform')).not.toEqual(of('main'));
    expect(new Set(branches.map(({ start }) => start)).size).toBe(3 * 2);
  });

  it('that are done are left out, and the others are the same', async () => {
    const all = (await branchesOf(knownAnswer, plan)).map(({ seconds: _, ...branch }) => branch);
    const done = all.filter((_, i) => i % 3 === 0 || i < 7);
    const keys = new Set(done.map(({ seed, checkpoint, arm }) => `${seed}/${checkpoint}/${arm}`));
    const rest = (await branchesOf(knownAnswer, plan, keys)).map(({ seconds: _, ...branch }) => branch);
    expect(rest).toEqual(all.filter((branch) => !done.includes(branch)));
    expect(rest.length).toBeLessThan(all.length);
  });

  it('end with an error where the training diverges', async () => {
    const make: Make = (random) =>
      new LinearProblem({
        random,
        main: 'a',
        learningRate: 1e200,
        teachers: ['a', 'b'].map((name) => ({ name, slopes: [[1]], noise: 0 })),
      });
    await expect(probe(make, 1, 200)).rejects.toThrow(/the validation performance with seed 1 is (-Infinity|NaN)/);
  });
});

describe('the effects', () => {
  const plan = {
    ...planProbe({ tasks: tasks('a', 'b'), main: 0 }, { budget: 100, seed: 1, seeds: 4, checkpoints: 2 }),
  };
  /** Two checkpoints a seed, whose gains average to the given ones. */
  const branchesWith = (gains: Record<string, readonly number[]>): Branch[] =>
    Object.entries(gains).flatMap(([arm, values]) =>
      values.flatMap((gain, i) =>
        [-1, 1].map((side, c) => ({
          seed: i + 1,
          checkpoint: c + 1,
          arm,
          start: 10,
          end: 10 + gain + side,
          seconds: 0,
        })),
      ),
    );

  it('are t-tests over the seeds, not over the branches', () => {
    const effects = probeEffects(branchesWith({ main: [0, 0, 0, 0], uniform: [1, 2, 3, 4] }), plan);
    // d = 1, 2, 3, 4: mean 2.5, s = √(5/3), s/√4 = 0.6455, t = 3.873, and with 3 degrees of freedom p = 0.0305; the
    // quantile of the interval is 3.1824. For two tasks all three comparisons are one, so that Holm changes nothing.
    expect(effects.map(({ kind }) => kind)).toEqual(['uniform', 'added', 'mixed']);
    for (const { mean, low, high, p } of effects) {
      expect(mean).toBeCloseTo(2.5, 12);
      expect(low).toBeCloseTo(2.5 - 3.1824 * 0.6455, 3);
      expect(high).toBeCloseTo(2.5 + 3.1824 * 0.6455, 3);
      expect(p).toBeCloseTo(0.0305, 4);
    }
  });

  it('that are certain but tiny do not count', () => {
    const tiny = branchesWith({ main: [1, 1.2, 0.8, 1], uniform: [1.001, 1.2012, 0.8011, 1.0009] });
    const effects = probeEffects(tiny, plan);
    expect(effects[0].p).toBeLessThan(0.001);
    expect(effects[0].share).toBeCloseTo(0.00105, 4);
    const advice = recommend(effects, plan);
    expect(advice).toMatchObject({ visible: false, helps: [] });
    expect(advice.reason).toMatch(/^No difference can be seen: what is beyond chance is too small to matter\. mtl/);
  });

  it('have a ratio with the interval of Fieller', () => {
    // With a constant denominator it is the t-interval of the numerator, divided.
    const constant = ratioOfMeans([1, 2, 3, 4], [2, 2, 2, 2])!;
    expect(constant.mean).toBeCloseTo(1.25, 12);
    expect(constant.low).toBeCloseTo((2.5 - 3.1824 * 0.6455) / 2, 3);
    expect(constant.high).toBeCloseTo((2.5 + 3.1824 * 0.6455) / 2, 3);
    // Values in proportion leave no doubt about it.
    const exact = ratioOfMeans([12, 15, 18], [4, 5, 6])!;
    for (const value of [exact.mean, exact.low, exact.high]) expect(value).toBeCloseTo(3, 6);
    // No improvement, or one that may be none, is nothing to divide by.
    expect(ratioOfMeans([1, 2, 3, 4], [-2, 3, -1, 2])).toBeUndefined();
    expect(ratioOfMeans([1, 2, 3, 4], [-2, -2, -2, -2])).toBeUndefined();
  });
});

describe('on problems with a known answer, a probe', () => {
  it.each([1, 1001])('finds the clean task and the harmful ones (seed %i)', { timeout: 60_000 }, async (seed) => {
    const { recommendation, effects } = await probe(knownAnswer, seed);
    expect(recommendation).toMatchObject({ visible: true, strategy: { name: 'influence' } });
    expect(recommendation.helps).toEqual(['clean']);
    expect(recommendation.hurts).toEqual(expect.arrayContaining(['off-120', 'off-180']));
    const added = effects.filter(({ kind }) => kind === 'added').sort((a, b) => b.mean - a.mean);
    expect(added.map(({ task }) => task)).toEqual(['clean', 'off-60', 'off-120', 'off-180']);
  });

  it('advises the main task alone where every sibling hurts', async () => {
    const { recommendation } = await probe(
      teachers(
        [
          ['left', 90, 0],
          ['back', 180, 0],
          ['right', 270, 0],
        ],
        0,
      ),
      3,
    );
    expect(recommendation).toMatchObject({ strategy: { name: 'fixed' }, helps: [], hurts: ['left', 'back', 'right'] });
  });

  it('advises all tasks where every sibling is right and only the main one is noisy', async () => {
    const { recommendation } = await probe(
      teachers(
        [
          ['b', 0, 0],
          ['c', 0, 0],
          ['d', 0, 0],
        ],
        4,
      ),
      3,
    );
    expect(recommendation).toMatchObject({ strategy: { name: 'mtl' }, hurts: [] });
    expect(recommendation.helps.length).toBeGreaterThan(0);
  });

  it('sees exactly nothing where all tasks are the same', async () => {
    const { effects, recommendation } = await probe(
      teachers(
        [
          ['b', 0, 0],
          ['c', 0, 0],
          ['d', 0, 0],
        ],
        0,
      ),
      3,
    );
    for (const { mean, low, high, p } of effects) expect([mean, low, high, p].map(Math.abs)).toEqual([0, 0, 0, 1]);
    expect(recommendation.reason).toMatch(/^No difference can be seen\. fixed/);
  });

  it('raises few false alarms where tasks differ by noise alone', { timeout: 60_000 }, async () => {
    // Holm keeps the chance of any false alarm in a probe at 5 %: more than 3 of 20 have a chance of 1.6 %.
    const same = teachers(
      [
        ['b', 0, 2],
        ['c', 0, 2],
        ['d', 0, 2],
        ['e', 0, 2],
      ],
      2,
    );
    let alarms = 0;
    for (let i = 0; i < 20; i++) {
      const { effects } = await probe(same, 100 * i, 800);
      if (effects.some(({ p }) => p < 0.05)) alarms++;
    }
    expect(alarms).toBeLessThanOrEqual(3);
  });

  it('sees nothing once the names of the arms are shuffled', { timeout: 60_000 }, async () => {
    const { plan, branches } = await probe(knownAnswer, 1);
    const random = new Random('shuffle');
    let alarms = 0;
    for (let i = 0; i < 20; i++) {
      // One permutation a seed, for all of its checkpoints.
      const names = plan.seeds.map(() => random.shuffle(plan.arms.map(({ name }) => name)));
      const shuffled = branches.map((branch) => {
        const place = plan.arms.findIndex(({ name }) => name === branch.arm);
        return { ...branch, arm: names[plan.seeds.indexOf(branch.seed)][place] };
      });
      if (probeEffects(shuffled, plan).some(({ p }) => p < 0.05)) alarms++;
    }
    expect(alarms).toBeLessThanOrEqual(3);
  });
});

describe('the recommendation', () => {
  const plan = planProbe({ tasks: tasks('a', 'b', 'c', 'd', 'e'), main: 2 }, { budget: 1000, seed: 1 });
  const given = (signs: Record<string, number>): Effect[] =>
    ['all', 'a', 'b', 'd', 'e'].flatMap((name) => {
      const sign = signs[name] ?? 0;
      const shape = { mean: sign || -0.01, low: 0, high: 0, share: sign, p: sign === 0 ? 0.5 : 0.01 };
      return name === 'all' ? { kind: 'uniform' as const, ...shape } : { kind: 'added' as const, task: name, ...shape };
    });

  it.each([
    [{}, { name: 'fixed', task: null }],
    [{ all: 1 }, { name: 'mtl' }],
    [{ all: -1 }, { name: 'fixed', task: null }],
    [
      { all: -1, a: -1, b: -1, d: -1, e: -1 },
      { name: 'fixed', task: null },
    ],
    [
      { b: 1, d: 1 },
      { name: 'window', around: null, radius: 1 },
    ],
    [{ b: 1 }, { name: 'static', main: 0.5, rest: 'near', until: 0.67 }],
    [{ a: 1 }, { name: 'static', main: 0.5, rest: 'uniform', until: 0.67 }],
    [{ a: 1, e: -1 }, { name: 'influence' }],
    [{ a: 1, all: -1 }, { name: 'influence' }],
    [{ all: 1, e: -1 }, { name: 'influence' }],
    [{ all: 1, a: 1 }, { name: 'mtl' }],
  ])('for %j is %j', (signs, strategy) => {
    expect(recommend(given(signs), plan).strategy).toEqual(strategy);
    // What a configuration accepts, where it has a strategy of this name.
    const { error } = strategySchema.safeParse(strategy);
    if (error !== undefined) expect(error.issues[0].path).toEqual(['name']);
  });

  it('does not take the least harmful sibling for a helpful one', () => {
    // In the mix it does well only because the others are worse.
    const mixed = { kind: 'mixed', task: 'b', mean: 1, low: 0, high: 0, share: 1, p: 0.01 } as const;
    const hurting = given({ all: -1, a: -1, b: -1, d: -1, e: -1 });
    expect(recommend([...hurting, mixed], plan)).toMatchObject({ strategy: { name: 'fixed' }, helps: [] });
  });

  it('says which siblings a larger budget might be for', () => {
    const effects = given({ e: -1 }).map((effect) => (effect.task === 'b' ? { ...effect, mean: 0.2 } : effect));
    expect(recommend(effects, plan).reason).toBe(
      'The sibling e hurts, and no sibling visibly helps. A larger budget may settle whether b does: the mean is positive.',
    );
  });
});
