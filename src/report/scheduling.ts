import { isDeepStrictEqual } from 'node:util';
import { groupBy } from '../groups.js';
import { strategySchema } from '../schedule/config.js';
import { shownValue, varyingKeys } from './labels.js';
import { bySeed, type Measure } from './measures.js';
import { type DataSet, type Setting, taskTitle } from './settings.js';

/** A problem on which several strategies were trained, `fixed` and `mtl` among them: what scheduling gains on it. */
export interface ScheduledProblem {
  /** Unique in the report. */
  readonly title: string;
  /** Of each strategy and its options, called by their names in the configuration: `static (near)`. */
  readonly arms: readonly Setting[];
  /** That of `fixed` and `mtl` which is better on test data, over the seeds that both have; undefined if there are none. */
  readonly baseline: Setting | undefined;
}

/** Loss of the best model on test data, on the main task. */
export const testLoss: Measure = {
  name: 'test loss',
  digits: 4,
  better: 'lower',
  of: ({ result }) => result?.test?.loss ?? Number.NaN,
};

/** Loss on validation data where it was lowest; NaN where something else was validated. */
export const validationLoss: Measure = {
  name: 'validation loss',
  digits: 4,
  better: 'lower',
  of: ({ result }, { keys }) =>
    keys.get('problem.validation.measure') === 'RankIC' ? Number.NaN : -(result?.best?.performance ?? Number.NaN),
};

/**
 * The problems of a report that were trained with `fixed`, `mtl` and perhaps more. A problem is everything in a
 * configuration but strategy and seed. Runs that lack `fixed` or `mtl`, and differ from a problem in `training.episodes`
 * alone, are further arms of it, as are those of a strategy that is given the time of another one.
 */
export function scheduledProblems(sets: readonly DataSet[]): ScheduledProblem[] {
  const groups = sets.flatMap((data) =>
    [...groupBy(data.settings, problemKey)].map(([key, settings]) => ({ key, settings, data })),
  );
  const isWhole = ({ settings }: (typeof groups)[number]) => BASELINES.every((name) => mainArm(settings, name));
  const whole = groups.filter(isWhole);
  const rest = groups.filter((group) => !isWhole(group)).flatMap(({ settings }) => settings);
  const titles = titlesOf(whole);
  return whole.map(({ settings }, i) => {
    const others = rest.filter((one) => lengthless(one) === lengthless(settings[0]));
    const arms = namedArms(settings, others);
    const [fixed, mtl] = BASELINES.map((name) => armCalled(arms, name)!);
    return { title: titles[i], arms, baseline: better(fixed, mtl) };
  });
}

const BASELINES = ['fixed', 'mtl'] as const;
const EPISODES = 'training.episodes';

/** The setting of a strategy; of `fixed` the one that trains the main task. */
function mainArm(settings: readonly Setting[], name: string): Setting | undefined {
  return settings.find(({ strategy, keys }) => strategy === name && (keys.get('strategy.task') ?? null) === null);
}

export function armCalled(arms: readonly Setting[], label: string): Setting | undefined {
  return arms.find((arm) => arm.label === label);
}

function better(a: Setting, b: Setting): Setting | undefined {
  const [one, other] = [a, b].map((setting) => bySeed(setting, testLoss));
  const seeds = [...one.keys()].filter((seed) => other.has(seed));
  if (seeds.length === 0) return undefined;
  const difference = seeds.reduce((sum, seed) => sum + one.get(seed)! - other.get(seed)!, 0);
  return difference < 0 ? a : b;
}

/** All arms with their names, in the order of the table, and the best of the static mixes where there are several. */
function namedArms(settings: readonly Setting[], others: readonly Setting[]): Setting[] {
  const isOwn = ({ keys }: Setting) => keys.get(EPISODES) === settings[0].keys.get(EPISODES);
  const named = [...groupBy([...settings, ...others], ({ strategy }) => strategy).values()].flatMap((alike) => {
    const keys = varyingKeys(alike).filter((key) => key.startsWith('strategy.'));
    return alike.map((setting) => {
      const details = keys.flatMap((key) => detailOf(setting, key));
      if (!isOwn(setting)) details.push(`${String(setting.keys.get(EPISODES))} episodes`);
      return {
        ...setting,
        label: [setting.strategy, ...(details.length > 0 ? [`(${details.join(', ')})`] : [])].join(' '),
      };
    });
  });
  const mixes = named.filter((arm) => arm.strategy === 'static' && isOwn(arm));
  return [...named, ...bestOfEachSeed(mixes)].sort(
    (a, b) => placeOf(a) - placeOf(b) || (a.label < b.label ? -1 : Number(a.label > b.label)),
  );
}

/**
 * The static mix that a user would end up with who tried them all: for each seed the one with the best validation. Seeds
 * that some of the mixes lack would have had a smaller choice and are left out.
 */
function bestOfEachSeed(mixes: readonly Setting[]): Setting[] {
  if (mixes.length < 2) return [];
  const runs = mixes[0].runs.flatMap(({ info: { seed } }) => {
    const tried = mixes.map((mix) => mix.runs.find(({ info, result }) => info.seed === seed && result?.best));
    if (tried.includes(undefined)) return [];
    return tried
      .map((run) => run!)
      .reduce((a, b) => (b.result!.best!.performance > a.result!.best!.performance ? b : a));
  });
  return runs.length === 0 ? [] : [{ ...mixes[0], label: BEST_STATIC, runs }];
}

export const BEST_STATIC = 'best static';

function placeOf({ strategy, label }: Setting): number {
  if (label === BEST_STATIC) return ORDER.indexOf('static') + 0.5;
  const place = ORDER.indexOf(strategy);
  return place >= 0 ? place : strategy === 'oracle' ? ORDER.length + 1 : ORDER.length;
}

const ORDER = ['fixed', 'mtl', 'static'];

/** An option that is not as it is by default: `near`, `shuffle`, `main 0.2`. */
function detailOf({ strategy, keys }: Setting, key: string): string[] {
  const value = keys.get(key);
  const name = key.slice('strategy.'.length);
  const defaults = strategySchema.safeParse({ name: strategy });
  const usual = defaults.success ? (defaults.data as Record<string, unknown>)[name] : undefined;
  if (value === undefined || isDeepStrictEqual(value, usual)) return [];
  if (value === true) return [name];
  if (typeof value === 'string') return [value];
  return [`${name} ${typeof value === 'number' ? Number(value.toPrecision(3)) : shownValue(value)}`];
}

function problemKey({ keys }: Setting): string {
  return JSON.stringify([...keys].filter(([key]) => !key.startsWith('strategy.')).sort());
}

function lengthless({ keys }: Setting): string {
  return JSON.stringify([...keys].filter(([key]) => !key.startsWith('strategy.') && key !== EPISODES).sort());
}

/** Names of problems: their groups of a sweep where each has its own, else their data and what tells them apart. */
function titlesOf(problems: readonly { readonly settings: readonly Setting[]; readonly data: DataSet }[]): string[] {
  const groups = problems.map(({ settings }) => {
    const names = new Set(settings.flatMap(({ runs }) => runs.flatMap(({ sweep }) => sweep?.group ?? [])));
    return names.size === 1 ? [...names][0] : undefined;
  });
  if (!groups.includes(undefined) && new Set(groups).size === problems.length) return groups.map((name) => name!);
  const plain = problems.map(({ settings: [{ main }], data: { kind, title } }) =>
    main === undefined ? title : `${title}, ${taskTitle(kind, main)}`,
  );
  return problems.map(({ settings: [own] }, i) => {
    const alike = problems.filter((_, other) => plain[other] === plain[i]).map(({ settings: [first] }) => first);
    const keys = varyingKeys(alike).filter((key) => !key.startsWith('strategy.'));
    return [plain[i], ...keys.map((key) => `${key} ${shownValue(own.keys.get(key))}`)].join(', ');
  });
}
