import { basename, dirname, extname, resolve } from 'node:path';
import { z } from 'zod';
import { InputError } from '../errors.js';
import { isRecord, keySchema } from '../run/config/key-schema.js';
import { readSources, type Source } from '../run/config/sources.js';
import { validateSource } from '../run/index.js';

const settings = z.record(z.string(), z.unknown());

const axes = z.record(z.string(), z.union([z.array(z.unknown()).min(1), z.record(z.string(), z.unknown())]));

const seeds = z
  .union([z.int().min(1), z.array(z.int().min(0)).min(1)])
  .describe('Seeds that everything is run with: a list, or a number n for 1, 2, …, n.');

const after = z
  .array(z.string().regex(/^(evaluate|export|forecast)( |$)/))
  .describe('Verbs of the tool that follow a training, with their flags, such as "evaluate --k 1,3".');

export const groupSchema = z.strictObject({
  name: z
    .string()
    .regex(/^\w[\w.=+-]*$/)
    .describe('Name of the group; the names of its runs begin with it.'),
  base: z
    .string()
    .min(1)
    .optional()
    .describe("Path, relative to this file, of a training configuration for this group in place of the grid's."),
  set: settings
    .default({})
    .describe('Keys of the training configuration, with dots, and their values in all runs of the group.'),
  grid: axes
    .default({})
    .describe(
      'Keys and the values that they take in turn, every combination of them: a list, or a map of labels to values.',
    ),
  seeds: seeds.optional(),
  after: after.optional(),
  select: z
    .strictObject({
      over: axes.describe('Keys and the values to choose among, for each combination of the grid.'),
      seeds: z
        .array(z.int().min(0))
        .min(1)
        .optional()
        .describe("Seeds to choose with. When left out: the group's first."),
      search: z
        .enum(['all', 'halving'])
        .default('all')
        .describe(
          'all: every candidate is trained to the end. halving: all for a short time, then the best of them for longer, and so on; those that go on are resumed.',
        ),
      factor: z
        .int()
        .min(2)
        .default(3)
        .describe('halving: of so many candidates one goes on, for as many times as long.'),
      episodes: z
        .int()
        .min(1)
        .optional()
        .describe(
          'halving: episodes of the first round. When left out: so that the last round is the whole training at most.',
        ),
    })
    .optional()
    .describe('Settings chosen by the validation performance, with which the group is then run with all its seeds.'),
  atBestWait: z
    .string()
    .min(1)
    .optional()
    .describe("Key that is given the k* of a run's main task; the group is run when waitKStar has been found."),
  warmStart: z
    .string()
    .min(1)
    .optional()
    .describe('Group whose run with the same main task and seed gives the start parameters; it is run first.'),
});

/** A sweep, as a file describes it. */
export const gridSchema = z.strictObject({
  name: z
    .string()
    .regex(/^\w[\w.=,+-]*$/)
    .optional()
    .describe('Name of the folder in which the run folders are made. When left out, the name of the file.'),
  out: z.string().min(1).default('runs').describe('Folder in which that folder is made.'),
  base: z
    .string()
    .min(1)
    .describe(
      'Path, relative to this file, of the training configuration that all is laid over, unless a group has its own.',
    )
    .meta({ examples: ['../toy.yaml'] }),
  set: settings
    .default({})
    .describe(
      'Keys of the training configuration, with dots, and their values in all runs. {data} in a text, here and in groups, stands for the folder that --data names.',
    ),
  seeds: seeds.default(1),
  after: after
    .optional()
    .describe(`${after.description} When left out: evaluate, where there is something to evaluate.`),
  groups: z
    .array(groupSchema)
    .min(1)
    .describe('Grids of runs.')
    .meta({ examples: [[{ name: 'wait', set: { 'strategy.name': 'fixed' }, grid: { 'problem.main': [1, 3] } }]] }),
  waitKStar: z
    .strictObject({
      among: z
        .string()
        .describe('Name of the group of runs to choose among, each trained on one wait.')
        .meta({ examples: ['wait'] }),
      for: z
        .array(z.int().min(1))
        .min(1)
        .describe('Main tasks k.')
        .meta({ examples: [[1, 3]] }),
      split: z.string().min(1).default('valid').describe('Split whose loss decides.'),
      beam: z.int().min(1).default(5).describe('Beam of the test.'),
    })
    .optional()
    .describe(
      "The paper's wait-k*: for each k, of the models trained on one wait, the one that is best on wait-k in validation.",
    ),
});

/** The checked content of a grid file. */
export type GridConfig = z.output<typeof gridSchema>;
export type GroupConfig = GridConfig['groups'][number];

/** A grid file, read and checked. */
export interface Grid {
  readonly file: string;
  readonly config: GridConfig;
  /** Where each key was said. */
  readonly places: Source['places'];
  readonly name: string;
  /** Path of the training configuration of each group. */
  readonly bases: readonly string[];
}

/**
 * Reads and checks a grid; what it says of the training configuration is checked when the sweep is planned.
 *
 * @param seeds in place of those that the grid and its groups name
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
 * What a grid sets, in all runs or along an axis, with `{data}` in its texts replaced by a folder, so that one grid can
 * name several data sets that lie beside each other, wherever they are.
 *
 * @param data undefined: none was given; a grid that needs one is refused
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

/** A value with every text in it replaced; `at` is its key in the grid. */
function mapTexts(value: unknown, at: string, replace: (text: string, key: string) => string): unknown {
  if (typeof value === 'string') return replace(value, at);
  if (Array.isArray(value)) return value.map((item, i) => mapTexts(item, `${at}.${i}`, replace));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapTexts(item, `${at}.${key}`, replace)]));
}
