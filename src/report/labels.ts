import { basename } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { models } from '../forecast/models/index.js';
import { groupBy } from '../metrics/statistics.js';
import { kindOf } from '../problems/index.js';
import { strategies, strategyNamed } from '../schedule/index.js';
import { fixed } from '../schedule/strategies/fixed.js';
import { attentionLabel } from '../translate/policies/index.js';

/** What a label is made of. */
export interface Labelled {
  readonly strategy: string;
  /** Leaves of the configuration by their dotted keys. */
  readonly keys: ReadonlyMap<string, unknown>;
  /** Name of its group in a sweep. */
  readonly group?: string;
}

/**
 * A name for each setting, in the paper's terms: the strategy or, for forecasts that train one task, the model. If
 * that does not distinguish settings, keys in which they differ are added, or instead of several keys the group of
 * a sweep. The main task is not part of it.
 */
export function labelsFor(kind: string, settings: readonly Labelled[]): string[] {
  const names = settings.map((setting) => plainLabel(kind, setting));
  const keys = new Map(
    [...groupBy(settings, (_, i) => names[i])].map(([name, group]) => [name, tellingKeys(group)] as const),
  );
  const groups = new Set(
    [...groupBy(settings, (_, i) => names[i])].flatMap(([name, group]) =>
      isToldByGroup(group, keys.get(name)!) ? [name] : [],
    ),
  );
  return settings.map((setting, i) => {
    const varying = keys.get(names[i])!;
    if (groups.has(names[i])) return detailed(names[i], [setting.group!]);
    const details = varying
      .filter((key) => setting.keys.has(key) && !(isNamedByTasks(kind, setting) && TASKS.includes(key)))
      .filter((key) => key !== WITHOUT || isAblation(setting))
      .map((key) => inWords(key, setting.keys.get(key), varying));
    return detailed(names[i], details);
  });
}

/** `MTL (3 tasks)` becomes `MTL (3 tasks, GRU)`. */
function detailed(name: string, details: readonly string[]): string {
  if (details.length === 0) return name;
  return name.endsWith(')') ? `${name.slice(0, -1)}, ${details.join(', ')})` : `${name} (${details.join(', ')})`;
}

/** Whether sweep groups distinguish settings of one name that would otherwise need several keys. */
function isToldByGroup(settings: readonly Labelled[], keys: readonly string[]): boolean {
  if (keys.length < 2 || keys.includes(WITHOUT) || settings.some(({ group }) => group === undefined)) return false;
  const pairs = settings.map(({ group, keys: own }) =>
    JSON.stringify([group, keys.map((key) => own.get(key) ?? null)]),
  );
  const kinds = new Set(pairs.map((pair) => JSON.stringify(JSON.parse(pair)[1])));
  return new Set(pairs).size === kinds.size && new Set(settings.map(({ group }) => group)).size === kinds.size;
}

/** Keys whose values are not the same in all settings, the main task's and the strategy's name aside. */
export function varyingKeys(settings: readonly Labelled[]): string[] {
  const all = [...new Set(settings.flatMap(({ keys }) => [...keys.keys()]))];
  return all.filter((key) => key !== 'problem.main' && key !== 'strategy.name' && varies(key, settings));
}

/** A few keys that are enough to distinguish settings: each splits most of the rest. */
function tellingKeys(settings: readonly Labelled[]): string[] {
  const varying = varyingKeys(settings);
  const kinds = (keys: readonly string[]): number =>
    new Set(settings.map((setting) => JSON.stringify(keys.map((key) => setting.keys.get(key) ?? null)))).size;
  // Hidden features are what an ablation is about.
  const chosen = varying.filter((key) => key === WITHOUT);
  while (kinds(chosen) < kinds(varying)) {
    const [best] = varying
      .filter((key) => !chosen.includes(key))
      .map((key) => ({ key, kinds: kinds([...chosen, key]) }))
      .sort((a, b) => b.kinds - a.kinds);
    chosen.push(best.key);
  }
  return chosen;
}

/** The shortest suffix of a key that distinguishes it from the others. */
function shortKey(key: string, all: readonly string[]): string {
  const words = key.split('.');
  for (let count = 1; count < words.length; count++) {
    const short = words.slice(-count).join('.');
    if (all.filter((other) => `.${other}`.endsWith(`.${short}`)).length === 1) return short;
  }
  return key;
}

/** A value of a configuration in a table. */
export function shownValue(value: unknown): string {
  if (value === undefined) return '–';
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.join(' ');
  return typeof value === 'string' && value.includes('/') ? basename(value) : String(value);
}

/** The tasks that are trained: `3 tasks`; undefined for a strategy that trains one task at a time. */
export function taskSet({ strategy, keys }: Labelled): string | undefined {
  const tasks = TASKS.map((key) => keys.get(key)).find((value) => value !== undefined);
  if (tasks === undefined || strategyNamed(strategy)?.singleTask) return undefined;
  return tasksInWords(tasks);
}

/** Whether some of a scheduler's features are hidden. */
export function isAblation({ keys }: Labelled): boolean {
  const without = keys.get(WITHOUT);
  return Array.isArray(without) && without.length > 0;
}

export const WITHOUT: string = 'strategy.without';

/** Place of a strategy in the paper's tables, its own method last. */
export function strategyOrder(strategy: string): number {
  const place = strategies.findIndex(({ name }) => name === strategy);
  if (place >= 0 && strategies[place].role === 'method') return strategies.length + 1;
  return place < 0 ? strategies.length : place;
}

/** Keys that say which tasks are trained. */
const TASKS = ['problem.tasks', 'problem.waits'];

/** The label of a setting without what distinguishes it from others of the same name. */
export function plainLabel(kind: string, setting: Labelled): string {
  const { strategy, keys } = setting;
  const model = keys.get(MODEL);
  if (isForecast(kind) && strategy === fixed.name && typeof model === 'string') return modelTitle(model);
  if (keys.get('problem.waits') === 'full') return 'full sentence';
  const description = strategyNamed(strategy);
  const title = description?.titles?.[kind] ?? description?.title ?? strategy;
  const attention = keys.get('problem.attention');
  if (typeof attention === 'string') {
    const decision = attentionLabel(attention);
    return strategy === fixed.name ? decision : `${title} + ${decision}`;
  }
  return isNamedByTasks(kind, setting) ? `${title} (${taskSet(setting)})` : title;
}

/** Forecasts are, as in the paper, where the set of tasks is one of the things compared. */
function isNamedByTasks(kind: string, setting: Labelled): boolean {
  return isForecast(kind) && taskSet(setting) !== undefined;
}

function isForecast(kind: string): boolean {
  return kindOf({ kind })?.evaluations === 'forecasts';
}

/** Keys below a choice, such as the widths of a model, are compared only among settings with the same choice. */
function varies(key: string, settings: readonly Labelled[]): boolean {
  const choice = CHOICES.find((name) => key !== name && key.startsWith(name.slice(0, name.lastIndexOf('.') + 1)));
  const groups = choice === undefined ? [settings] : groupBy(settings, ({ keys }) => keys.get(choice)).values();
  return [...groups].some((group) =>
    group.some(({ keys }) => !isDeepStrictEqual(keys.get(key), group[0].keys.get(key))),
  );
}

const MODEL = 'problem.model.name';
const CHOICES = ['strategy.name', MODEL, 'problem.model.preset'];

function inWords(key: string, value: unknown, all: readonly string[]): string {
  if (key === MODEL) return modelTitle(String(value));
  if (TASKS.includes(key)) return tasksInWords(value);
  return `${shortKey(key, all)} ${shownValue(value)}`;
}

function tasksInWords(tasks: unknown): string {
  return Array.isArray(tasks) ? `tasks ${tasks.join(' ')}` : tasks === 'full' ? 'full' : `${tasks} tasks`;
}

function modelTitle(name: string): string {
  return models.find(({ schema }) => schema.shape.name.value === name)?.title ?? name;
}
