import { join } from 'node:path';
import type { z } from 'zod';
import { InputError } from '../errors.js';
import { keySchema } from '../run/config/key-schema.js';
import { nearest } from '../run/config/load.js';
import { overlay, readAssignment, readSources, type Source } from '../run/config/sources.js';
import { coresOf, type Division, resolvedYaml, validateSource } from '../run/index.js';
import { strategyNamed } from '../schedule/index.js';
import type { Grid, GridConfig, GroupConfig } from './grid.js';
import {
  type Axes,
  axisNames,
  combinations,
  countCombinations,
  type Point,
  settingLayer,
  settingLayers,
  withDataFolder,
} from './grid.js';
import type { Job } from './job.js';

/** What a sweep needs from a training configuration. */
export interface RunConfig extends Division {
  readonly problem: { readonly kind: string; readonly main?: number };
  readonly strategy: { readonly name: string; readonly task?: string | number | null };
  readonly training: { readonly episodes: number; readonly steps: number };
  readonly earlyStopping?: { readonly patience: number | null };
}

/** How configurations are checked, and what overrides them. */
export interface PlanOptions {
  /** Of training configurations. */
  readonly schema: z.ZodType<RunConfig>;
  /** Assignments that override the base and what the grid sets for all runs. Default none. */
  readonly set?: readonly string[];
  /** What `{data}` stands for in the values of the grid. Default nothing: a grid that has it is rejected. */
  readonly data?: string;
  /** Parent folder of the sweep's. Default that of the grid. */
  readonly out?: string;
  /** Whether runs of a problem are evaluated unless the grid says otherwise. Default: none are. */
  readonly evaluated?: (problem: RunConfig['problem']) => boolean;
  /** Whether a problem is trained as several runs, which cannot be paused. Default: none is. */
  readonly isSeveralRuns?: (problem: RunConfig['problem']) => boolean;
}

/** What a sweep will do. */
export interface Plan {
  readonly grid: Grid;
  /** Assignments that override what the grid sets for all runs. */
  readonly set: readonly string[];
  /** What `{data}` stands for. */
  readonly data: string | undefined;
  /** The folder of the run folders. */
  readonly folder: string;
  readonly groups: readonly PlannedGroup[];
  readonly waitKStar: GridConfig['waitKStar'];
}

/** A group of a grid with its runs. */
export interface PlannedGroup {
  readonly name: string;
  readonly seeds: readonly number[];
  /** Seeds used to choose settings. */
  readonly selectSeeds: readonly number[];
  /** How settings are chosen, if not by training all candidates to the end. */
  readonly halving: Pick<NonNullable<GroupConfig['select']>, 'factor' | 'episodes'> | undefined;
  readonly settings: readonly PlannedSetting[];
  /** Key that is set to the k* of the main task. */
  readonly atBestWait: string | undefined;
  /** Group of the runs that provide the initial parameters. */
  readonly warmStart: string | undefined;
}

/** A combination of the grid. */
export interface PlannedSetting {
  readonly labels: Point['labels'];
  /** Its variants, from which validation chooses one; a single one if there is nothing to choose. */
  readonly variants: readonly PlannedVariant[];
}

export interface PlannedVariant {
  /** Of what is chosen. */
  readonly labels: Point['labels'];
  /** The run with a seed; `filled` holds keys whose values are known only once other runs have ended. */
  run(seed: number, filled?: Readonly<Record<string, unknown>>): PlannedRun;
}

/** A run of a sweep, before it is started. */
export interface PlannedRun {
  readonly name: string;
  readonly group: string;
  readonly labels: Point['labels'];
  readonly seed: number;
  readonly config: RunConfig;
  readonly job: Job;
}

/** Number of runs of a grid, candidates included, without listing them. */
export function countRuns({ config }: Grid): number {
  const counts = config.groups.map((group) => {
    const { seeds, selectSeeds } = seedsOf(config, group);
    const settings = countCombinations(group.grid);
    const variants = group.select === undefined ? 1 : countCombinations(group.select.over);
    const again = seeds.filter((seed) => selectSeeds.includes(seed)).length;
    return group.select === undefined
      ? settings * seeds.length
      : settings * (variants * selectSeeds.length + seeds.length - again);
  });
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Works out and checks every run of a grid. */
export function planSweep(grid: Grid, options: PlanOptions): Plan {
  const { places } = grid;
  const count = countRuns(grid);
  if (count > MOST_RUNS) {
    throw new InputError(`the grid has ${count} runs, expected at most ${MOST_RUNS}`, { file: grid.file });
  }
  requireReferences(grid);
  const config = withDataFolder(grid, options.data);
  const keys = keySchema(options.schema);
  const lay = (under: Source, layers: readonly Source[]) => layers.reduce((a, b) => overlay(a, b, keys), under);
  const forAll = [...settingLayers(config.set, 'set', places), ...(options.set ?? []).map(readAssignment)];
  const common = new Map(
    [...new Set(grid.bases)].map((base) => [base, lay(readSources(base, [], keys), forAll)] as const),
  );
  const folder = join(options.out ?? config.out, grid.name);

  const groups = config.groups.map((group, g): PlannedGroup => {
    const at = `groups.${g}`;
    const base = lay(common.get(grid.bases[g])!, settingLayers(group.set, `${at}.set`, places));
    const { seeds, selectSeeds } = seedsOf(config, group);
    const over = group.select?.over ?? {};
    const names = axisNames([...Object.keys(group.grid), ...Object.keys(over)]);
    const points = combinations(group.grid, names, `${at}.grid`, places);
    const choices = combinations(over, names, `${at}.select.over`, places);
    const variant = (point: Point, choice: Point): PlannedVariant => {
      const source = lay(lay(base, point.layers), choice.layers);
      const labels = { ...point.labels, ...choice.labels };
      const make = (seed: number, filled: Readonly<Record<string, unknown>>): PlannedRun => {
        const fills = Object.entries(filled).map(([key, value]) => settingLayer(key, value, at, places));
        const layers = [...fills, { values: { seed }, places: new Map() }];
        const resolved = validateSource(options.schema, keys, lay(source, layers));
        const name = nameOf(group.name, labels, seed);
        const after = verbsOf(group.after ?? config.after, resolved, options.evaluated);
        const cores = coresOf(resolved);
        const job: Job = { name, folder: join(folder, name), config: resolvedYaml(resolved), after, cores };
        return { name, group: group.name, labels, seed, config: resolved, job };
      };
      if (group.select?.search === 'halving') {
        const example = make(seeds[0], {}).config;
        requireHalving(group.select.over, example, `${at}.select`, places);
        if (options.isSeveralRuns?.(example.problem)) {
          const key = `${at}.select.search`;
          const sentence = 'halving cannot pause a run that consists of others (problem.seeds, walkForward)';
          throw new InputError(`${sentence}: expected search: all`, { ...places.get(key), key });
        }
      }
      const bySeed = new Map(seeds.concat(selectSeeds).map((seed) => [seed, make(seed, {})]));
      const first = bySeed.get(seeds[0])!;
      requireShortName(first, grid);
      // Keys that are filled in later get a placeholder value, so that mistakes show before anything runs.
      if (group.atBestWait ?? group.warmStart) make(seeds[0], placeholders(group, first.config));
      const run = (seed: number, filled?: Readonly<Record<string, unknown>>) =>
        filled === undefined ? bySeed.get(seed)! : make(seed, filled);
      return { labels: choice.labels, run };
    };
    return {
      name: group.name,
      seeds,
      selectSeeds,
      halving: group.select?.search === 'halving' ? group.select : undefined,
      settings: points.map((point) => ({
        labels: point.labels,
        variants: choices.map((choice) => variant(point, choice)),
      })),
      atBestWait: group.atBestWait,
      warmStart: group.warmStart,
    };
  });
  requireStarts(groups, places);
  return { grid, set: options.set ?? [], data: options.data, folder, groups, waitKStar: config.waitKStar };
}

/**
 * Whether a run can provide another's initial parameters, judging by the main task: if the tasks of the two are of
 * one kind it must be the same, but a main wait says nothing about a latency weight.
 */
export function canStart(first: RunConfig, then: RunConfig): boolean {
  return first.problem.kind !== then.problem.kind || first.problem.main === then.problem.main;
}

/** Each run of a group with `warmStart` has exactly one run to start from. */
function requireStarts(groups: readonly PlannedGroup[], places: Source['places']): void {
  for (const [g, { name, warmStart, settings, seeds }] of groups.entries()) {
    const start = groups.find((other) => other.name === warmStart);
    if (start === undefined) continue;
    const { config } = settings[0].variants[0].run(seeds[0]);
    const from = start.settings.filter(({ variants: [{ run }] }) => canStart(run(start.seeds[0]).config, config));
    const key = `groups.${g}.warmStart`;
    const refuse = (sentence: string): never => {
      throw new InputError(sentence, { ...places.get(key), key });
    };
    if (from.length > 1) {
      refuse(`expected one run of ${warmStart} for each seed to start ${name} from, found ${from.length}`);
    }
    const missing = seeds.find((seed) => !start.seeds.includes(seed));
    if (missing !== undefined) refuse(`expected a run of ${warmStart} with seed ${missing}, which ${name} has`);
  }
}

/** Runs that are known before anything has been chosen, in the order in which they are started. */
export function plannedRuns({ groups }: Plan): { run: PlannedRun; candidate: boolean }[] {
  return groups.flatMap(({ settings, seeds, selectSeeds }) =>
    settings.flatMap(({ variants }) => {
      const candidate = variants.length > 1;
      const known = candidate ? selectSeeds : seeds;
      return variants.flatMap((variant) => known.map((seed) => ({ run: variant.run(seed), candidate })));
    }),
  );
}

function nameOf(group: string, labels: Point['labels'], seed: number): string {
  return [group, ...Object.entries(labels).map((pair) => pair.join('=')), `seed=${seed}`].join(',');
}

function seedsOf(config: GridConfig, group: GroupConfig) {
  const given = group.seeds ?? config.seeds;
  const seeds = typeof given === 'number' ? Array.from({ length: given }, (_, i) => i + 1) : [...new Set(given)];
  return { seeds, selectSeeds: [...new Set(group.select?.seeds ?? seeds.slice(0, 1))] };
}

/** The commands after a training; an evaluation uses as many cores as the training did. */
function verbsOf(given: readonly string[] | undefined, config: RunConfig, evaluated: PlanOptions['evaluated']) {
  const verbs = given ?? (evaluated?.(config.problem) ? ['evaluate'] : []);
  return verbs.map((text) => {
    const words = text.trim().split(/\s+/);
    const threads = ['--threads', String(coresOf(config))];
    return words[0] === 'evaluate' && !words.includes('--threads') ? [...words, ...threads] : words;
  });
}

function placeholders(group: GroupConfig, { problem }: RunConfig): Record<string, unknown> {
  return {
    ...(group.atBestWait && { [group.atBestWait]: problem.main ?? 1 }),
    ...(group.warmStart && { [WARM_START]: 'a run' }),
  };
}

/** Candidates of a halving search are compared after the same number of updates of one model. */
function requireHalving(over: Axes, { strategy }: RunConfig, at: string, places: Source['places']): void {
  const refuse = (sentence: string, key: string): never => {
    throw new InputError(`${sentence}: expected search: all`, { ...places.get(key), key });
  };
  const extent = Object.keys(over).find((key) => key.split('.')[0] === 'training');
  if (extent !== undefined) refuse('halving compares after equal numbers of updates', `${at}.over.${extent}`);
  if (strategyNamed(strategy.name)?.severalModels) {
    refuse(`halving cannot pause ${strategy.name}, which trains several models in sequence`, `${at}.search`);
  }
}

function requireShortName({ name }: PlannedRun, { file }: Grid): void {
  if (name.length <= LONGEST_NAME) return;
  throw new InputError(`the name ${name} has more than ${LONGEST_NAME} characters: give the values short labels`, {
    file,
  });
}

/** Groups have unique names and refer only to earlier ones; no key is on two axes. */
function requireReferences({ config, places }: Grid): void {
  const refuse = (sentence: string, at: string): never => {
    throw new InputError(sentence, { ...places.get(at), key: at });
  };
  const names = config.groups.map(({ name }) => name);
  const indexOf = (name: string, at: string): number => {
    if (names.includes(name)) return names.indexOf(name);
    const near = nearest(name, names);
    const hint = near === undefined ? `expected one of ${names.join(', ')}` : `did you mean ${near}?`;
    return refuse(`there is no group ${name}; ${hint}`, at);
  };
  const among = config.waitKStar && indexOf(config.waitKStar.among, 'waitKStar.among');
  for (const [g, { name, grid, select, warmStart, atBestWait }] of config.groups.entries()) {
    const at = `groups.${g}`;
    if (names.indexOf(name) !== g) refuse(`two groups are called ${name}`, `${at}.name`);
    const twice = Object.keys(select?.over ?? {}).find((key) => key in grid);
    if (twice !== undefined) refuse('the key is already in the grid', `${at}.select.over.${twice}`);
    if (warmStart !== undefined && indexOf(warmStart, `${at}.warmStart`) >= g) {
      refuse(`expected an earlier group, found ${warmStart}`, `${at}.warmStart`);
    }
    if (atBestWait !== undefined && (among === undefined || among >= g)) {
      refuse('expected waitKStar in this file, with an earlier group', `${at}.atBestWait`);
    }
  }
}

/** Key of the training configuration that names the run to start from. */
export const WARM_START = 'problem.warmStart';

/** File systems allow 255 bytes. */
const LONGEST_NAME = 200;

const MOST_RUNS = 100_000;
