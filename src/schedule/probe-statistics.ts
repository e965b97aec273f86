import {
  holm,
  type Interval,
  interval,
  mean,
  standardDeviation,
  studentCritical,
  studentTwoSided,
} from '../metrics/index.js';
import { added, type Branch, MAIN, type ProbePlan, UNIFORM, without } from './probe.js';

export type { Interval } from '../metrics/index.js';

/** How much better the main task does with one arm than with another, on validation data. */
export interface Effect {
  /**
   * - `uniform`: all tasks alike, against the main task alone
   * - `added`: half of the samples on a sibling, against the main task alone
   * - `mixed`: all tasks alike, against the same without the sibling
   */
  readonly kind: 'uniform' | 'added' | 'mixed';
  /** The sibling; undefined for `uniform`. */
  readonly task?: string;
  /** Mean over the seeds; positive where the first arm helps. */
  readonly mean: number;
  /** The mean relative to the largest change of the performance over a branch, of whichever arm. */
  readonly share: number;
  /** 95 % interval of this difference alone. */
  readonly low: number;
  readonly high: number;
  /** Two-sided, corrected for all effects of the probe with Holm's method. */
  readonly p: number;
}

const LEVEL = 0.05;
/** Pairing makes even differences certain that nobody would train otherwise for. */
const SMALLEST_SHARE = 0.02;

/** Whether the effect is beyond chance. */
export function isCertain({ p }: Effect): boolean {
  return p < LEVEL;
}

/** Whether it is beyond chance, and large enough to matter. */
export function isVisible(effect: Effect): boolean {
  return isCertain(effect) && Math.abs(effect.share) >= SMALLEST_SHARE;
}

/**
 * All effects of a probe. The seed is the unit: branches from several checkpoints of one seed share the start, the data
 * order and the trunk, and so are no independent observations. Their mean is one number a seed and effect, and the
 * t-tests and intervals have n − 1 degrees of freedom for n seeds. Variances are not pooled over the arms, which would
 * give many more degrees: a main task with noisy labels spreads far more than its siblings.
 */
export function probeEffects(branches: readonly Branch[], plan: ProbePlan): Effect[] {
  const gains = gainsBySeed(branches, plan);
  const siblings = plan.tasks.filter((_, i) => i !== plan.main);
  const asked = [
    { kind: 'uniform', arms: [UNIFORM, MAIN] },
    ...siblings.map((task) => ({ kind: 'added', task, arms: [added(task), MAIN] })),
    ...siblings.map((task) => ({ kind: 'mixed', task, arms: [UNIFORM, without(task)] })),
  ] as (Pick<Effect, 'kind' | 'task'> & { arms: [string, string] })[];
  const known = asked.filter(({ arms }) => arms.every((arm) => gains.has(arm)));
  const differences = known.map(({ arms: [a, b] }) => gains.get(a)!.map((gain, i) => gain - gains.get(b)![i]));
  // With two or three tasks some of these are one and the same comparison, which is tested once.
  const test = known.map(({ arms: [a, b] }) =>
    known.findIndex(({ arms: [c, d] }) => gains.get(a) === gains.get(c) && gains.get(b) === gains.get(d)),
  );
  const distinct = [...new Set(test)];
  const corrected = holm(distinct.map((i) => testOfMean(differences[i])));
  const largest = Math.max(...[...gains.values()].map((values) => Math.abs(mean(values))));
  return known.map(({ kind, task }, i) => ({
    kind,
    ...(task !== undefined && { task }),
    ...interval(differences[i]),
    share: largest === 0 ? 0 : mean(differences[i]) / largest,
    p: corrected[distinct.indexOf(test[i])],
  }));
}

/** The change of the performance over a branch for each seed, averaged over the checkpoints, by arm. */
export function gainsBySeed(branches: readonly Branch[], plan: ProbePlan): Map<string, number[]> {
  const gains = plan.arms.map(({ name }) => {
    const own = branches.filter(({ arm }) => arm === name);
    const values = plan.seeds.map((seed) =>
      mean(own.filter((b) => b.seed === seed).map(({ start, end }) => end - start)),
    );
    return [name, values] as const;
  });
  return new Map(aliased(gains, plan));
}

/** With few tasks one arm is two: of three, the main one with T is all without the other. Both names lead to it. */
function* aliased(gains: readonly (readonly [string, number[]])[], { tasks, main }: ProbePlan) {
  yield* gains;
  const siblings = tasks.filter((_, i) => i !== main);
  const of = new Map(gains);
  if (siblings.length === 1) {
    yield [added(siblings[0]), of.get(UNIFORM)!] as const;
    yield [without(siblings[0]), of.get(MAIN)!] as const;
  }
  if (siblings.length === 2) {
    for (const [i, task] of siblings.entries()) yield [without(task), of.get(added(siblings[1 - i]))!] as const;
  }
}

/**
 * The ratio of two means of paired values with its 95 % interval by Fieller's theorem (1954): all ρ for which the mean of
 * a − ρb is within t standard errors of 0. Undefined where b's mean is not above 0 for sure: then ρ has no bounds, or no meaning as a ratio of two improvements.
 */
export function ratioOfMeans(a: readonly number[], b: readonly number[]): Interval | undefined {
  const n = a.length;
  const [meanA, meanB] = [mean(a), mean(b)];
  const square = studentCritical(0.05, n - 1) ** 2 / n;
  const [varianceA, varianceB] = [standardDeviation(a) ** 2, standardDeviation(b) ** 2];
  const covariance = a.reduce((sum, value, i) => sum + (value - meanA) * (b[i] - meanB), 0) / (n - 1);
  const q = meanB ** 2 - square * varianceB;
  if (!(q > 0 && meanB > 0)) return undefined;
  const middle = meanA * meanB - square * covariance;
  const root = Math.sqrt(Math.max(0, middle ** 2 - q * (meanA ** 2 - square * varianceA)));
  return { mean: meanA / meanB, low: (middle - root) / q, high: (middle + root) / q };
}

/** About the smallest effect that could have been seen: t standard errors, at the level of the strictest of the tests. */
export function smallestVisible(effects: readonly Effect[], seeds: number): number {
  const errors = effects.map(({ low, high }) => (high - low) / 2 / studentCritical(0.05, seeds - 1));
  return mean(errors) * studentCritical(LEVEL / effects.length, seeds - 1);
}

/** p of the t-test of mean 0. Values that are all 0, as where arms do the very same, are no evidence of anything. */
function testOfMean(values: readonly number[]): number {
  if (values.every((value) => value === 0)) return 1;
  const n = values.length;
  return studentTwoSided(mean(values) / (standardDeviation(values) / Math.sqrt(n)), n - 1);
}
