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
import { fixed } from './strategies/fixed.js';
import { influence } from './strategies/influence.js';
import { mtl } from './strategies/mtl.js';
import { staticMix } from './strategies/static.js';
import { window } from './strategies/window.js';

export type { Interval } from '../metrics/index.js';

/** What a probe recommends. */
export interface Recommendation {
  /** `strategy` of a configuration. */
  readonly strategy: { readonly name: string } & Readonly<Record<string, unknown>>;
  /** The arm of the probe nearest to it. */
  readonly arm: string;
  /** The reasons, in sentences. */
  readonly reason: string;
  /** Whether any difference between the arms can be seen. */
  readonly visible: boolean;
  /** Siblings that visibly help the main task. */
  readonly helps: readonly string[];
  /** Siblings that visibly hurt it. */
  readonly hurts: readonly string[];
}

/**
 * The cheapest strategy that the visible effects justify. Choosing among tasks is worth its cost only if some help and
 * others hurt; if none does either, nothing that costs more than `fixed` and `mtl` can be justified.
 */
export function recommend(effects: readonly Effect[], plan: ProbePlan): Recommendation {
  const { tasks, main } = plan;
  const seen = effects.filter(isVisible);
  const [helps, hurts] = [1, -1].map((sign) => tasks.filter((task) => hasSign(task, sign, effects)));
  const uniform = effects.find(({ kind }) => kind === 'uniform')!;
  const together = isVisible(uniform) ? Math.sign(uniform.mean) : 0;
  const found = { visible: seen.length > 0, helps, hurts };
  const alone = { ...found, strategy: { name: fixed.name, task: null }, arm: MAIN };
  const uniformly = { ...found, strategy: { name: mtl.name }, arm: UNIFORM };

  if (seen.length === 0) {
    const better = uniform.mean > 0 ? uniformly : alone;
    const certain = effects.some(isCertain) ? `: what is beyond chance is too small to matter` : '';
    const reason = `No difference can be seen${certain}. ${better.strategy.name} has the better mean and costs nothing extra; nothing that was measured depends on the choice, and a strategy that learns would cost time for no visible gain.`;
    return { ...better, reason };
  }
  if (helps.length === 0 && together <= 0) {
    const what = hurts.length > 0 ? listed(hurts, 'hurt') : 'all siblings together do not help';
    return { ...alone, reason: `${capital(what)}, and no sibling visibly helps.${undecided(effects)}` };
  }
  if (together > 0 && hurts.length === 0) {
    return { ...uniformly, reason: 'All siblings together help, and none visibly hurts.' };
  }
  const best = helps.toSorted((a, b) => meanAdded(b, effects) - meanAdded(a, effects)).at(0);
  const arm = best === undefined ? UNIFORM : added(best);
  if (hurts.length > 0 || together < 0) {
    const against = hurts.length > 0 ? listed(hurts, 'hurt') : 'all siblings together hurt';
    const inFavour = helps.length > 0 ? listed(helps, 'help') : 'all siblings together help';
    return { ...found, strategy: { name: influence.name }, arm, reason: `${capital(inFavour)}, but ${against}.` };
  }
  const places = helps.map((task) => tasks.indexOf(task));
  const radius = windowRadius(places, main, tasks.length);
  const [strategy, where] =
    radius !== undefined
      ? [{ name: window.name, around: null, radius }, ' next to the main task']
      : [{ name: staticMix.name, main: 0.5, rest: nearer(places, plan) ? 'near' : 'uniform', until: 0.67 }, ''];
  const reason = `${capital(listed(helps, 'help'))}${where}, and no sibling visibly hurts; all together do not visibly help.`;
  return { ...found, strategy, arm, reason };
}

/** What the recommended arm is expected to save or cost, if the whole training behaves like the branches. */
export interface Expectation {
  /** The arm it is compared with: the main task alone, or all tasks if the main task alone is recommended. */
  readonly against: string;
  /** Updates for the same improvement, relative to the other arm; undefined if the branches cannot tell. */
  readonly updates?: Interval;
}

/** How many updates the recommended arm is expected to save. */
export function expectation({ arm }: Recommendation, branches: readonly Branch[], plan: ProbePlan): Expectation {
  const against = arm === MAIN ? UNIFORM : MAIN;
  const gains = gainsBySeed(branches, plan);
  return { against, updates: ratioOfMeans(gains.get(against)!, gains.get(arm)!) };
}

/**
 * Whether a sibling helps (1) or hurts (−1): visibly so when added to the main task. What it does in the mix counts only
 * if both agree, because there it is compared with the other siblings: the least harmful one does well.
 */
function hasSign(task: string, sign: number, effects: readonly Effect[]): boolean {
  const [added, mixed] = (['added', 'mixed'] as const).map((kind) =>
    effects.find((effect) => effect.kind === kind && effect.task === task),
  );
  if (added === undefined || sign * added.mean <= 0) return false;
  return isVisible(added) || (mixed !== undefined && isVisible(mixed) && sign * mixed.mean > 0);
}

/** r, if these are exactly the tasks at most r places from the main one. */
function windowRadius(helping: readonly number[], main: number, count: number): number | undefined {
  const radius = Math.max(...helping.map((i) => Math.abs(i - main)));
  const inside = Math.min(main, radius) + Math.min(count - 1 - main, radius);
  return inside === helping.length ? radius : undefined;
}

/** Whether the tasks are nearer to the main one than the other siblings, on average. */
function nearer(helping: readonly number[], { tasks, main }: ProbePlan): boolean {
  const others = tasks.map((_, i) => i).filter((i) => i !== main && !helping.includes(i));
  const distance = (all: readonly number[]) => all.reduce((sum, i) => sum + Math.abs(i - main), 0) / all.length;
  return distance(helping) < distance(others);
}

/** Siblings that may help, which a larger budget could show. */
function undecided(effects: readonly Effect[]): string {
  const names = effects.filter(({ kind, mean }) => kind === 'added' && mean > 0).map(({ task }) => task);
  return names.length === 0
    ? ''
    : ` A larger budget may settle whether ${names.join(' or ')} does: the mean is positive.`;
}

function meanAdded(task: string, effects: readonly Effect[]): number {
  return effects.find((effect) => effect.kind === 'added' && effect.task === task)!.mean;
}

/** `the sibling a helps`, `the siblings a and b help`. */
function listed(names: readonly string[], verb: 'help' | 'hurt'): string {
  if (names.length === 1) return `the sibling ${names[0]} ${verb}s`;
  return `the siblings ${names.slice(0, -1).join(', ')} and ${names.at(-1)} ${verb}`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** How much better the main task does with one arm than with another, on validation data. */
export interface Effect {
  /**
   * - `uniform`: all tasks equally, against the main task alone
   * - `added`: half of the samples on a sibling, against the main task alone
   * - `mixed`: all tasks equally, against the same without the sibling
   */
  readonly kind: 'uniform' | 'added' | 'mixed';
  /** The sibling; undefined for `uniform`. */
  readonly task?: string;
  /** Mean over the seeds; positive if the first arm helps. */
  readonly mean: number;
  /** The mean relative to the largest change in performance over a branch of any arm. */
  readonly share: number;
  /** 95 % interval of this difference alone. */
  readonly low: number;
  readonly high: number;
  /** Two-sided, corrected for all effects of the probe with Holm's method. */
  readonly p: number;
}

const LEVEL = 0.05;
/** Pairing makes even tiny differences significant; smaller ones are not worth acting on. */
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
 * order and the trunk, so they are not independent observations. Their mean is one number per seed and effect, and the
 * t-tests and intervals have n − 1 degrees of freedom for n seeds. Variances are not pooled over the arms, although that
 * would give many more degrees: a main task with noisy labels varies far more than its siblings.
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
  // With two or three tasks some of these are the same comparison, which is tested once.
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

/** With few tasks two arms coincide: of three, the main one with T is all without the other. Both names lead to it. */
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
 * The ratio of two means of paired values with its 95 % interval by Fieller's theorem (1954): all ρ for which the mean
 * of a − ρb is within t standard errors of 0. Undefined unless b's mean is significantly above 0: otherwise ρ is
 * unbounded or meaningless.
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

/** About the smallest effect that could have been detected: t standard errors, at the level of the strictest of the tests. */
export function smallestVisible(effects: readonly Effect[], seeds: number): number {
  const errors = effects.map(({ low, high }) => (high - low) / 2 / studentCritical(0.05, seeds - 1));
  return mean(errors) * studentCritical(LEVEL / effects.length, seeds - 1);
}

/** p of the t-test of mean 0. Values that are all 0, as for identical arms, are no evidence. */
function testOfMean(values: readonly number[]): number {
  if (values.every((value) => value === 0)) return 1;
  const n = values.length;
  return studentTwoSided(mean(values) / (standardDeviation(values) / Math.sqrt(n)), n - 1);
}
