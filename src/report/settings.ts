import { basename, extname } from 'node:path';
import { groupBy } from '../metrics/statistics.js';
import { kindOf as problemKindOf } from '../problems/index.js';
import { type ConfigValues, freeOnResume } from '../run/index.js';
import { isAblation, labelsFor, strategyOrder, taskSet } from './labels.js';
import type { ReportedRun } from './runs.js';
import { isChosen } from './runs.js';

/** Runs that differ only in their seed. */
export interface Setting {
  /** The method in the paper's terms, with what distinguishes it from the others, without the main task. */
  readonly label: string;
  readonly strategy: string;
  /** Number of the main task; undefined if the problem has only one. */
  readonly main: number | undefined;
  /** The main task that its runs were trained for, if they stand for another one. */
  readonly trainedFor?: number;
  /** Leaves of the configuration by their dotted keys, without those that cannot change a result. */
  readonly keys: ReadonlyMap<string, unknown>;
  /** By seed, ascending. */
  readonly runs: readonly ReportedRun[];
}

/** Settings whose results can be compared: the same problem on the same data. */
export interface DataSet {
  readonly kind: string;
  /** Unique in the report. */
  readonly title: string;
  /** In the order of the paper's tables. */
  readonly settings: readonly Setting[];
  /** Keys whose values a sweep has chosen by validation or taken from other runs: they do not make another method. */
  readonly chosenKeys: readonly string[];
}

/** Groups runs by data, then by configuration without the seed, and gives the groups names from what differs. */
export function groupRuns(runs: readonly ReportedRun[]): DataSet[] {
  const bySource = groupBy(runs, ({ config }) => JSON.stringify(sourceOf(leaves(config))));
  const titles = new Map<string, number>();
  return [...bySource.values()].map((members) => {
    const kind = kindOf(members[0].config);
    const title = dataTitle(members[0].config);
    const used = (titles.get(title) ?? 0) + 1;
    titles.set(title, used);
    const chosenKeys = [...new Set(members.flatMap(({ sweep }) => sweep?.chosenKeys ?? []))];
    const settings = settingsOf(kind, members, chosenKeys);
    return { kind, title: used === 1 ? title : `${title} (${used})`, settings, chosenKeys };
  });
}

/** Number of the main tasks of a data set, ascending; `[undefined]` if there are none. */
export function mainsOf({ settings }: DataSet): (number | undefined)[] {
  return [...new Set(settings.map(({ main }) => main))].sort((a, b) => (a ?? 0) - (b ?? 0));
}

/** The labels of a data set, each once, in order. */
export function labelsOf({ settings }: DataSet): string[] {
  return [...new Set(settings.map(({ label }) => label))];
}

/** The setting of a method for a main task. */
export function settingOf({ settings }: DataSet, label: string, main: number | undefined): Setting | undefined {
  return settings.find((setting) => setting.label === label && setting.main === main);
}

/** Leaves of the configuration that name the data. */
export function corpusOf({ settings }: DataSet): string {
  return JSON.stringify([...settings[0].keys].filter(([key]) => key.startsWith('problem.data.')).sort());
}

/** Names of tasks in the applications. */
export function taskTitle(kind: string, main: number | undefined): string {
  return main === undefined ? 'main task' : (problemKindOf({ kind })?.taskTitle?.(main) ?? `Task-${main}`);
}

function settingsOf(kind: string, runs: readonly ReportedRun[], chosenKeys: readonly string[]): Setting[] {
  const groups = [...groupBy(runs, (run) => JSON.stringify([...comparedLeaves(run)].sort())).values()];
  const plain = groups.map((members) => {
    const keys = comparedLeaves(members[0]);
    const main = keys.get('problem.main');
    return {
      keys,
      strategy: String(keys.get('strategy.name') ?? 'unknown'),
      main: typeof main === 'number' ? main : undefined,
      runs: members.toSorted((a, b) => a.info.seed - b.info.seed || (a.name < b.name ? -1 : 1)),
    };
  });
  const labels = methodLabels(kind, plain, chosenKeys);
  return plain
    .map((setting, i) => ({ ...setting, label: labels[i] }))
    .sort(
      (a, b) =>
        byNumberAndName(taskSet(a) ?? '', taskSet(b) ?? '') ||
        strategyOrder(a.strategy) - strategyOrder(b.strategy) ||
        Number(isAblation(a)) - Number(isAblation(b)) ||
        byNumberAndName(a.label, b.label) ||
        (a.main ?? 0) - (b.main ?? 0),
    );
}

/**
 * What a sweep has chosen for each main task is not part of a method's name, unless two settings of a main task would then
 * have the same name, as with runs of several sweeps.
 */
function methodLabels(
  kind: string,
  settings: readonly Omit<Setting, 'label'>[],
  chosenKeys: readonly string[],
): string[] {
  const grouped = settings.map(({ strategy, keys, runs }) => ({ strategy, keys, group: runs[0].sweep?.group }));
  const designed = grouped.map((setting) => ({
    ...setting,
    keys: new Map([...setting.keys].filter(([key]) => !isChosen(key, chosenKeys))),
  }));
  const labels = labelsFor(kind, designed);
  const distinct = new Set(labels.map((label, i) => `${settings[i].main} ${label}`));
  return distinct.size === settings.length ? labels : labelsFor(kind, grouped);
}

function kindOf(config: ConfigValues): string {
  const { problem } = config as { problem?: { kind?: unknown } };
  return typeof problem?.kind === 'string' ? problem.kind : 'unknown';
}

/** Keys that say what is learned from which data and how it is scored. */
function sourceOf(all: ReadonlyMap<string, unknown>): [string, unknown][] {
  const own = [
    'problem.kind',
    'problem.module',
    'problem.data',
    'problem.split',
    'problem.labels.kind',
    'problem.labels.shift',
  ];
  return [...all].filter(([key]) => own.some((name) => key === name || key.startsWith(`${name}.`))).sort();
}

function dataTitle(config: ConfigValues): string {
  const all = leaves(config);
  const name = ['problem.data.market', 'problem.data.folder', 'problem.data.path', 'problem.data']
    .map((key) => all.get(key))
    .find((value) => typeof value === 'string');
  if (name !== undefined) return basename(String(name));
  const { problem = {} } = config as { problem?: { kind?: unknown; data?: object } };
  const madeUp = problemKindOf(problem)?.madeUpData?.({ ...problem.data });
  if (madeUp !== undefined) return madeUp;
  const module = all.get('problem.module');
  if (typeof module === 'string') return basename(module, extname(module));
  return String(all.get('problem.kind') ?? 'unknown problem');
}

/** The configuration without what cannot change a result, and without the seed. */
function comparedLeaves({ config, info }: ReportedRun): Map<string, unknown> {
  const kept = [...leaves(config)].filter(
    ([key]) => !NOT_COMPARED.some((name) => key === name || key.startsWith(`${name}.`)),
  );
  return new Map(kept.map(([key, value]) => [key, key.endsWith('.warmStart') ? seedless(value, info.seed) : value]));
}

const NOT_COMPARED = [...freeOnResume, 'seed', 'threads', 'workers', 'logging', 'problem.test'];

/** Runs that start from a run of their own seed are one setting: `gru-s3` of seed 3 becomes `gru-s*`. */
function seedless(value: unknown, seed: number): unknown {
  if (typeof value !== 'string') return value;
  return value.replace(new RegExp(`(s|seed)([=_-]?)${seed}(?![0-9])`, 'g'), '$1$2*');
}

function leaves(value: unknown, path = ''): Map<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return new Map([[path, value]]);
  return new Map(
    Object.entries(value).flatMap(([key, item]) => [...leaves(item, path === '' ? key : `${path}.${key}`)]),
  );
}

const byNumberAndName = new Intl.Collator('en', { numeric: true }).compare;
