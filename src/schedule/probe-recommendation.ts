import { added, type Branch, MAIN, type ProbePlan, UNIFORM } from './probe.js';
import { type Effect, gainsBySeed, type Interval, isCertain, isVisible, ratioOfMeans } from './probe-statistics.js';

/** What a probe advises. */
export interface Recommendation {
  /** `strategy` of a configuration. */
  readonly strategy: { readonly name: string } & Readonly<Record<string, unknown>>;
  /** The arm of the probe that comes nearest to it. */
  readonly arm: string;
  /** Why, in sentences. */
  readonly reason: string;
  /** Whether any difference between the arms can be seen. */
  readonly visible: boolean;
  /** Siblings that visibly help the main task. */
  readonly helps: readonly string[];
  /** Siblings that visibly hurt it. */
  readonly hurts: readonly string[];
}

/**
 * The cheapest strategy that the visible effects ask for. Choosing among tasks is worth its cost only where some help
 * and others hurt; where none does either, nothing that costs more than `fixed` and `mtl` can be justified.
 */
export function recommend(effects: readonly Effect[], plan: ProbePlan): Recommendation {
  const { tasks, main } = plan;
  const seen = effects.filter(isVisible);
  const [helps, hurts] = [1, -1].map((sign) => tasks.filter((task) => hasSign(task, sign, effects)));
  const uniform = effects.find(({ kind }) => kind === 'uniform')!;
  const together = isVisible(uniform) ? Math.sign(uniform.mean) : 0;
  const found = { visible: seen.length > 0, helps, hurts };
  const fixed = { ...found, strategy: { name: 'fixed', task: null }, arm: MAIN };
  const mtl = { ...found, strategy: { name: 'mtl' }, arm: UNIFORM };

  if (seen.length === 0) {
    const better = uniform.mean > 0 ? mtl : fixed;
    const certain = effects.some(isCertain) ? `: what is beyond chance is too small to matter` : '';
    const reason = `No difference can be seen${certain}. ${better.strategy.name} has the better mean and costs nothing extra; nothing that was measured depends on the choice, and a strategy that learns would cost time for no visible gain.`;
    return { ...better, reason };
  }
  if (helps.length === 0 && together <= 0) {
    const what = hurts.length > 0 ? listed(hurts, 'hurt') : 'all siblings together do not help';
    return { ...fixed, reason: `${capital(what)}, and no sibling visibly helps.${undecided(effects)}` };
  }
  if (together > 0 && hurts.length === 0) {
    return { ...mtl, reason: 'All siblings together help, and none visibly hurts.' };
  }
  const best = helps.toSorted((a, b) => meanAdded(b, effects) - meanAdded(a, effects)).at(0);
  const arm = best === undefined ? UNIFORM : added(best);
  if (hurts.length > 0 || together < 0) {
    const against = hurts.length > 0 ? listed(hurts, 'hurt') : 'all siblings together hurt';
    const inFavour = helps.length > 0 ? listed(helps, 'help') : 'all siblings together help';
    return { ...found, strategy: { name: 'influence' }, arm, reason: `${capital(inFavour)}, but ${against}.` };
  }
  const places = helps.map((task) => tasks.indexOf(task));
  const radius = windowRadius(places, main, tasks.length);
  const [strategy, where] =
    radius !== undefined
      ? [{ name: 'window', around: null, radius }, ' next to the main task']
      : [{ name: 'static', main: 0.5, rest: nearer(places, plan) ? 'near' : 'uniform', until: 0.67 }, ''];
  const reason = `${capital(listed(helps, 'help'))}${where}, and no sibling visibly hurts; all together do not visibly help.`;
  return { ...found, strategy, arm, reason };
}

/** What the recommended arm is expected to save or cost, if the training goes on as the branches did. */
export interface Expectation {
  /** The arm it is compared with: the main task alone, or all tasks where that is what is recommended. */
  readonly against: string;
  /** Updates for the same improvement, relative to the other; undefined where the branches do not tell. */
  readonly updates?: Interval;
}

export function expectation({ arm }: Recommendation, branches: readonly Branch[], plan: ProbePlan): Expectation {
  const against = arm === MAIN ? UNIFORM : MAIN;
  const gains = gainsBySeed(branches, plan);
  return { against, updates: ratioOfMeans(gains.get(against)!, gains.get(arm)!) };
}

/**
 * Whether a sibling helps (1) or hurts (−1): visibly so when added to the main task. What it does in the mix counts only
 * where both agree, as there it is compared with the other siblings: the least harmful one does well.
 */
function hasSign(task: string, sign: number, effects: readonly Effect[]): boolean {
  const [added, mixed] = (['added', 'mixed'] as const).map((kind) =>
    effects.find((effect) => effect.kind === kind && effect.task === task),
  );
  if (added === undefined || sign * added.mean <= 0) return false;
  return isVisible(added) || (mixed !== undefined && isVisible(mixed) && sign * mixed.mean > 0);
}

/** r, if the tasks at most r places from the main one are just these. */
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

/** Siblings that may help: what a larger budget is for. */
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
