import { isDeepStrictEqual } from 'node:util';
import { groupBy } from '../../metrics/statistics.js';
import { strategyNamed } from '../../schedule/index.js';
import { fixed as fixedStrategy } from '../../schedule/strategies/fixed.js';
import { mtl } from '../../schedule/strategies/mtl.js';
import { oracle } from '../../schedule/strategies/oracle.js';
import { staticMix } from '../../schedule/strategies/static.js';
import {
  absent,
  type Block,
  formatP,
  type Row,
  type Section,
  seedEstimate,
  signed,
  slug,
  type Table,
  textColumn,
  toDigits,
} from '../document.js';
import { forestFigure } from '../figures/bars.js';
import { shownValue, varyingKeys } from '../labels.js';
import { bySeed, estimateOf, type Measure, type Tested, testComparisons } from '../measures.js';
import type { SeriesReader } from '../reader.js';
import { type DataSet, type Setting, taskTitle } from '../settings.js';

/** What scheduling gains: for each problem every strategy against the better of `fixed` and `mtl`, paired by seeds. */
export function schedulingSection(sets: readonly DataSet[], reader: SeriesReader): Section[] {
  const problems = scheduledProblems(sets);
  if (problems.length === 0) return [];
  return [{ title: 'Scheduling', blocks: problems.flatMap((problem) => problemBlocks(problem, reader)) }];
}

function problemBlocks({ title, arms, baseline }: ScheduledProblem, reader: SeriesReader): Block[] {
  if (baseline === undefined) {
    return [absent(`${title}: fixed and mtl have no seed in common that both have a test loss of.`)];
  }
  const pairs = arms.filter((arm) => arm !== baseline).map((candidate) => ({ candidate, baseline }));
  // An arm without a common seed cannot be compared.
  const tested = testComparisons(pairs, testLoss, () => Number.NaN).filter(({ seeds }) => seeds > 0);
  const id = `scheduling-${slug(title)}`;
  const table: Table = {
    id,
    title: `What scheduling gains, ${title}`,
    caption: captionOf(baseline, arms, tested),
    columns: [
      ...['Strategy', 'Seeds'].map(textColumn),
      { title: 'Test loss', measures: ['test loss'] },
      ...[`Against ${baseline.label}`, 'p (Holm)', "Of the oracle's gain"].map(textColumn),
      { title: 'Validation loss', measures: ['validation loss'] },
      textColumn('Time per update'),
    ],
    rows: arms.map((arm) => rowOf(arm, baseline, arms, tested, reader)),
  };
  return [{ kind: 'table', table }, forestOf(title, id, baseline, tested)];
}

function rowOf(
  arm: Setting,
  baseline: Setting,
  arms: readonly Setting[],
  tested: readonly Tested[],
  reader: SeriesReader,
): Row {
  const compared = tested.find(({ candidate }) => candidate === arm);
  const seeds = arm === baseline ? bySeed(arm, testLoss).size : (compared?.seeds ?? 0);
  return {
    cells: [
      arm.label,
      String(seeds),
      [estimateOf(arm, testLoss)],
      arm === baseline ? '' : differenceText(compared),
      arm === baseline ? '' : formatP(compared?.tTest),
      arm === baseline ? '' : gainText(arm, baseline, arms),
      [estimateOf(arm, validationLoss)],
      costText(arm, arms, reader),
    ],
  };
}

/** `−0.0743 ± 0.0100`, or why there is no interval. */
function differenceText(compared: Tested | undefined): string {
  if (compared === undefined) return 'no seed in common';
  const { difference, high, seeds } = compared;
  if (seeds < 2) return `${signed(difference, 4)} (one seed, no interval)`;
  return `${signed(difference, 4)} ± ${toDigits(high - difference, 4)}`;
}

/** The share of the oracle's gain over the baseline, on the seeds that all three have. */
function gainText(arm: Setting, baseline: Setting, arms: readonly Setting[]): string {
  const bound = armCalled(arms, oracle.name);
  if (bound === undefined) return '–';
  const [own, base, best] = [arm, baseline, bound].map((setting) => bySeed(setting, testLoss));
  const seeds = [...own.keys()].filter((seed) => base.has(seed) && best.has(seed));
  const gainOf = (losses: ReadonlyMap<number, number>) =>
    seeds.reduce((sum, seed) => sum + base.get(seed)! - losses.get(seed)!, 0);
  const all = gainOf(best);
  // If the oracle itself gains nothing there is no share.
  return all > 0 ? `${toDigits((100 * gainOf(own)) / all, 0)} %` : '–';
}

/** Against `mtl`; the best static mix costs the training of all mixes it was chosen from. */
function costText(arm: Setting, arms: readonly Setting[], reader: SeriesReader): string {
  const secondsOf = ({ runs }: Setting) =>
    seedEstimate(
      runs.map((run) => reader.updateSeconds(run) ?? Number.NaN),
      2,
    )?.mean;
  const own = secondsOf(arm);
  const uniform = secondsOf(armCalled(arms, mtl.name)!);
  return own === undefined || uniform === undefined ? '–' : `${toDigits(own / uniform, 2)} ×`;
}

function captionOf(baseline: Setting, arms: readonly Setting[], tested: readonly Tested[]): string {
  const sentences = [
    'Main-task test loss of the model with the best validation, lower is better; mean ± standard deviation over the seeds.',
    `Against ${baseline.label}, the better of fixed and mtl: mean difference over the seeds that both have (Seeds), negative is better, with its 95 % t interval.`,
    `p: paired t-test, corrected for ${tested.filter(({ tTest }) => !Number.isNaN(tTest)).length} comparisons with Holm's method.`,
    armCalled(arms, oracle.name)
      ? "Of the oracle's gain: 100 % is the loss of the strategy that knows the answer, 0 % that of the baseline."
      : '',
    'Time per update: against mtl, validations included; comparable only for runs that had the same kind of machine to themselves.',
    armCalled(arms, BEST_STATIC)
      ? `${BEST_STATIC}: for each seed the static mix with the best validation; all of them have to be trained for it.`
      : '',
  ];
  return sentences.filter((sentence) => sentence !== '').join(' ');
}

function forestOf(title: string, id: string, baseline: Setting, tested: readonly Tested[]): Block {
  if (tested.every(({ seeds }) => seeds < 2)) {
    return absent(`${title}: no forest plot, as no strategy has two seeds in common with ${baseline.label}.`);
  }
  const arms = tested.map(({ candidate, difference, low, high, seeds, tTest }) => ({
    label: candidate.label,
    ...{ difference, low, high, seeds, p: tTest },
  }));
  const single = tested.some(({ seeds }) => seeds < 2) ? ' Strategies with one seed have no interval.' : '';
  const figure = forestFigure(
    arms,
    {
      id: `${id}-forest`,
      title: `Test loss against ${baseline.label}, ${title}`,
      caption: `Mean difference of the main task's test loss from ${baseline.label} over paired seeds, with its 95 % t interval; left of the line is better. Filled: p < 0.05 after Holm's correction.${single}`,
    },
    `test loss minus that of ${baseline.label}`,
  );
  return { kind: 'figure', figure };
}

/** A problem on which several strategies were trained, `fixed` and `mtl` among them: what scheduling gains on it. */
export interface ScheduledProblem {
  /** Unique in the report. */
  readonly title: string;
  /** One for each strategy and its options, called as in the configuration: `static (near)`. */
  readonly arms: readonly Setting[];
  /** The better of `fixed` and `mtl` on test data, on the seeds that both have; undefined if there are none. */
  readonly baseline: Setting | undefined;
}

/** Loss of the best model on test data, on the main task. */
export const testLoss: Measure = {
  name: 'test loss',
  digits: 4,
  better: 'lower',
  of: ({ result }) => result?.test?.loss ?? Number.NaN,
};

/** The lowest loss on validation data; NaN if validation measured something else. */
export const validationLoss: Measure = {
  name: 'validation loss',
  digits: 4,
  better: 'lower',
  of: ({ result }, { keys }) =>
    (keys.get('problem.validation.measure') ?? 'loss') === 'loss'
      ? -(result?.best?.performance ?? Number.NaN)
      : Number.NaN,
};

/**
 * The problems of a report that were trained with `fixed`, `mtl` and perhaps more. A problem is everything in a
 * configuration but strategy and seed. Runs that lack `fixed` or `mtl`, and differ from a problem in `training.episodes`
 * only, are additional arms of it, such as a strategy that is given the time of another one.
 */
function scheduledProblems(sets: readonly DataSet[]): ScheduledProblem[] {
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

const BASELINES = [fixedStrategy.name, mtl.name];
const EPISODES = 'training.episodes';

/** The setting of a strategy; of `fixed` the one that trains the main task. */
function mainArm(settings: readonly Setting[], name: string): Setting | undefined {
  return settings.find(({ strategy, keys }) => strategy === name && (keys.get('strategy.task') ?? null) === null);
}

function armCalled(arms: readonly Setting[], label: string): Setting | undefined {
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
  const mixes = named.filter((arm) => arm.strategy === staticMix.name && isOwn(arm));
  return [...named, ...bestOfEachSeed(mixes)].sort(
    (a, b) => placeOf(a) - placeOf(b) || (a.label < b.label ? -1 : Number(a.label > b.label)),
  );
}

/**
 * The static mix that a user who tried all would choose: for each seed the one with the best validation. Seeds that
 * some of the mixes do not have are left out.
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

const BEST_STATIC = 'best static';

function placeOf({ strategy, label }: Setting): number {
  if (label === BEST_STATIC) return ORDER.indexOf(staticMix.name) + 0.5;
  const place = ORDER.indexOf(strategy);
  return place >= 0 ? place : strategy === oracle.name ? ORDER.length + 1 : ORDER.length;
}

const ORDER = [fixedStrategy.name, mtl.name, staticMix.name];

/** An option that differs from its default: `near`, `shuffle`, `main 0.2`. */
function detailOf({ strategy, keys }: Setting, key: string): string[] {
  const value = keys.get(key);
  const name = key.slice('strategy.'.length);
  const usual = strategyNamed(strategy)?.options.safeParse({}).data?.[name];
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

/** Names of problems: the group of a sweep if each has one, else the data and what distinguishes them. */
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
