import { basename, dirname, extname, resolve } from 'node:path';
import { z } from 'zod';
import { InputError, type Where } from '../errors.js';
import { isRecord, keySchema } from '../run/config/key-schema.js';
import { readSources, type Source } from '../run/config/sources.js';
import { validateSource } from '../run/index.js';

const settings = z.record(z.string(), z.unknown());

const axes = z.record(z.string(), z.union([z.array(z.unknown()).min(1), z.record(z.string(), z.unknown())]));

const seeds = z
  .union([z.int().min(1), z.array(z.int().min(0)).min(1)])
  .describe('Seeds of all runs: a list, or a number n for 1, 2, …, n.');

const after = z
  .array(z.string().regex(/^(evaluate|export|forecast)( |$)/))
  .describe('Commands to run after a training, with their flags, such as "evaluate --k 1,3".');

export const groupSchema = z.strictObject({
  name: z
    .string()
    .regex(/^\w[\w.=+-]*$/)
    .describe('Name of the group; the names of its runs begin with it.'),
  base: z
    .string()
    .min(1)
    .optional()
    .describe("Path, relative to this file, of a training configuration for this group instead of the grid's."),
  set: settings
    .default({})
    .describe('Keys of the training configuration, with dots, and their values in all runs of the group.'),
  grid: axes
    .default({})
    .describe('Keys and the values they take, in every combination: a list, or a map of labels to values.'),
  seeds: seeds.optional(),
  after: after.optional(),
  select: z
    .strictObject({
      over: axes.describe('Keys and the values to choose from, for each combination of the grid.'),
      seeds: z.array(z.int().min(0)).min(1).optional().describe("Seeds to choose with. Default: the group's first."),
      search: z
        .enum(['all', 'halving'])
        .default('all')
        .describe(
          'all: every candidate is trained to the end. halving: all for a short time, then the best of them for longer, and so on; survivors are resumed.',
        ),
      factor: z
        .int()
        .min(2)
        .default(3)
        .describe('halving: one in this many candidates continues, for this many times as long.'),
      episodes: z
        .int()
        .min(1)
        .optional()
        .describe(
          'halving: episodes of the first round. Default: such that the last round is at most the whole training.',
        ),
    })
    .optional()
    .describe('Settings to choose by validation performance; the group is then run with them and all its seeds.'),
  atBestWait: z
    .string()
    .min(1)
    .optional()
    .describe("Key that is set to the k* of a run's main task; the group runs once waitKStar is known."),
  warmStart: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Group whose run with the same main task and seed provides the initial parameters; it runs first. If its problem is ' +
        'of another kind, with other main tasks, it must have one run for each seed.',
    ),
});

/** A sweep, as a file describes it. */
export const gridSchema = z.strictObject({
  name: z
    .string()
    .regex(/^\w[\w.=,+-]*$/)
    .optional()
    .describe('Name of the folder that will contain the run folders. Default: the name of the file.'),
  out: z.string().min(1).default('runs').describe('Folder that will contain that folder.'),
  base: z
    .string()
    .min(1)
    .describe(
      'Path, relative to this file, of the training configuration that everything is based on, unless a group has its own.',
    )
    .meta({ examples: ['../toy.yaml'] }),
  set: settings
    .default({})
    .describe(
      'Keys of the training configuration, with dots, and their values in all runs. {data} in a string, here and in groups, stands for the folder given with --data.',
    ),
  seeds: seeds.default(1),
  after: after.optional().describe(`${after.description} Default: evaluate, if there is something to evaluate.`),
  groups: z
    .array(groupSchema)
    .min(1)
    .describe('Grids of runs.')
    .meta({ examples: [[{ name: 'wait', set: { 'strategy.name': 'fixed' }, grid: { 'problem.main': [1, 3] } }]] }),
  waitKStar: z
    .strictObject({
      among: z
        .string()
        .describe('Name of the group of runs to choose from, each trained on one wait.')
        .meta({ examples: ['wait'] }),
      for: z
        .array(z.int().min(1))
        .min(1)
        .describe('Main tasks k.')
        .meta({ examples: [[1, 3]] }),
      split: z.string().min(1).default('valid').describe('Split whose loss decides the choice.'),
      beam: z.int().min(1).default(5).describe('Beam size for the test.'),
    })
    .optional()
    .describe("The paper's wait-k*: for each k, the model trained on one wait that validates best on wait-k."),
});

/** The checked content of a grid file. */
export type GridConfig = z.output<typeof gridSchema>;
export type GroupConfig = GridConfig['groups'][number];

/** A grid file, read and checked. */
export interface Grid {
  readonly file: string;
  readonly config: GridConfig;
  /** Where each key was set. */
  readonly places: Source['places'];
  readonly name: string;
  /** Path of the training configuration of each group. */
  readonly bases: readonly string[];
}

/**
 * Reads and checks a grid; its keys of the training configuration are checked when the sweep is planned.
 *
 * @param seeds instead of those that the grid and its groups name
 */
export function loadGrid(file: string, seeds?: readonly number[]): Grid {
  const keys = keySchema(gridSchema);
  const source = readSources(file, [], keys, { dottedKeys: true });
  const read = validateSource(gridSchema, keys, source);
  const config = seeds === undefined ? read : withSeeds(read, seeds);
  // The file that names a base may be one that the grid extends.
  const pathOf = (base: string, key: string) => resolve(dirname(source.places.get(key)?.file ?? file), base);
  return {
    file,
    config,
    places: source.places,
    name: config.name ?? basename(file, extname(file)),
    bases: config.groups.map(({ base }, g) =>
      base === undefined ? pathOf(config.base, 'base') : pathOf(base, `groups.${g}.base`),
    ),
  };
}

function withSeeds(config: GridConfig, seeds: readonly number[]): GridConfig {
  return { ...config, seeds: [...seeds], groups: config.groups.map((group) => ({ ...group, seeds: undefined })) };
}

/**
 * What a grid sets, in all runs or along an axis, with `{data}` in its strings replaced by a folder, so that one grid can
 * name several data sets in that folder.
 *
 * @param data undefined: none was given; a grid that needs one is rejected
 */
export function withDataFolder({ config, places, file }: Grid, data: string | undefined): GridConfig {
  let isUsed = false;
  const fill = <T>(value: T, at: string): T =>
    mapTexts(value, at, (text, key) => {
      if (!text.includes(PLACE)) return text;
      isUsed = true;
      return text.replaceAll(PLACE, data ?? missing(key, places));
    }) as T;
  const set = fill(config.set, 'set');
  const groups = config.groups.map((group, g) => ({
    ...group,
    set: fill(group.set, `groups.${g}.set`),
    grid: fill(group.grid, `groups.${g}.grid`),
    select: fill(group.select, `groups.${g}.select`),
  }));
  if (data !== undefined && !isUsed) {
    throw new InputError(`no value of ${file} contains ${PLACE}, so there is nothing to fill in`, { key: '--data' });
  }
  return { ...config, set, groups };
}

const PLACE = '{data}';

function missing(key: string, places: Source['places']): never {
  const sentence = `${PLACE} stands for the folder that --data names, but there is no --data`;
  throw new InputError(sentence, { ...places.get(key), key });
}

/** A value with every string in it replaced; `at` is its key in the grid. */
function mapTexts(value: unknown, at: string, replace: (text: string, key: string) => string): unknown {
  if (typeof value === 'string') return replace(value, at);
  if (Array.isArray(value)) return value.map((item, i) => mapTexts(item, `${at}.${i}`, replace));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapTexts(item, `${at}.${key}`, replace)]));
}

/** Keys of the training configuration and the values of each: a list, or a map of labels to values. */
export type Axes = Readonly<Record<string, readonly unknown[] | Readonly<Record<string, unknown>>>>;

/** One value for each axis. */
export interface Point {
  /** Short name of each axis, and label of its value. */
  readonly labels: Readonly<Record<string, string>>;
  /** What overrides the training configuration. */
  readonly layers: readonly Source[];
}

/**
 * Every combination of the values of some axes, the last axis changing fastest. `at` is their key in the grid; `names`
 * are the short names of their keys.
 */
export function combinations(
  axes: Axes,
  names: ReadonlyMap<string, string>,
  at: string,
  places: Source['places'],
): Point[] {
  return Object.entries(axes).reduce<Point[]>(
    (points, [key, values]) => {
      const options = labelled(values, `${at}.${key}`, places).map(({ label, value, from }) => ({
        label,
        layer: settingLayer(key, value, from, places),
      }));
      return points.flatMap((point) =>
        options.map(({ label, layer }) => ({
          labels: { ...point.labels, [names.get(key)!]: label },
          layers: [...point.layers, layer],
        })),
      );
    },
    [{ labels: {}, layers: [] }],
  );
}

/** How many combinations there are. */
export function countCombinations(axes: Axes): number {
  return Object.values(axes).reduce((product, values) => product * Object.keys(values).length, 1);
}

/** The shortest suffix of each key that distinguishes it from the others; `strategy.name` is called `strategy`. */
export function axisNames(keys: readonly string[]): Map<string, string> {
  const words = keys.map((key) => key.replace(/\.(name|kind|preset)$/, '').split('.'));
  return new Map(
    words.map((own, axis) => {
      for (let count = 1; count <= own.length; count++) {
        const short = own.slice(-count).join('.');
        const alike = words.filter((other) => other.slice(-count).join('.') === short);
        if (alike.length === 1) return [keys[axis], short];
      }
      return [keys[axis], keys[axis]];
    }),
  );
}

function labelled(values: Axes[string], at: string, places: Source['places']) {
  const isList = Array.isArray(values);
  const options = Object.entries(values).map(([index, value]) => {
    const from = `${at}.${index}`;
    const label = isList ? labelOf(value) : index;
    if (label !== undefined) return { label: label.replaceAll(/[^\w.+-]+/g, '-'), value, from };
    throw new InputError('a map needs a label: write the values as a map of labels to values', {
      ...places.get(from),
      key: from,
    });
  });
  for (const [i, { label, from }] of options.entries()) {
    if (options.findIndex((other) => other.label === label) === i) continue;
    const sentence = `two values are called ${JSON.stringify(label)}; each needs its own label`;
    throw new InputError(sentence, { ...places.get(from), key: from });
  }
  if (options.length === 0) throw new InputError('expected at least one value', { ...places.get(at), key: at });
  return options;
}

function labelOf(value: unknown): string | undefined {
  if (isRecord(value)) return undefined;
  if (!Array.isArray(value)) return String(value);
  if (value.length === 0) return 'none';
  const items = value.map(labelOf);
  return items.includes(undefined) ? undefined : items.join('+');
}

/**
 * A dotted key and its value as a layer of a training configuration. `from` is the place of the value in the grid:
 * errors name that line.
 */
export function settingLayer(key: string, value: unknown, from: string, places: Source['places']): Source {
  const place = places.get(from) ?? {};
  const words = key.split('.');
  if (words.some((word) => word === '' || word === '__proto__')) {
    throw new InputError('expected a key of the training configuration, with dots between its parts', {
      ...place,
      key: from,
    });
  }
  const owner = OWNED[key];
  if (owner !== undefined) throw new InputError(`${key} cannot be set here, ${owner}`, { ...place, key: from });

  const own = new Map<string, Where>();
  for (const [i] of words.entries()) own.set(words.slice(0, i + 1).join('.'), place);
  for (const [known, where] of places) if (known.startsWith(`${from}.`)) own.set(key + known.slice(from.length), where);
  const values = words.reduceRight<unknown>((inner, word) => ({ [word]: inner }), value);
  return { values: values as Record<string, unknown>, places: own };
}

/** The layers of a map of keys to values; `at` is its key in the grid. */
export function settingLayers(
  settings: Readonly<Record<string, unknown>>,
  at: string,
  places: Source['places'],
): Source[] {
  return Object.entries(settings).map(([key, value]) => settingLayer(key, value, `${at}.${key}`, places));
}

/** Keys that a sweep sets for each run, and how to set them instead. */
const OWNED: Readonly<Record<string, string>> = {
  seed: 'expected it under seeds',
  name: 'the sweep names its runs',
  out: 'expected it beside base, for the whole sweep',
};
