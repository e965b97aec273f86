import { basename, dirname, extname, join, resolve } from 'node:path';
import { z } from 'zod';
import { type DeviceChoice, deviceChoices } from '../../devices.js';
import { InputError, type Where } from '../../errors.js';
import { dotted, inWords, isRecord, type KeySchema, keySchema, knownKeys, membersFor, schemaAt } from './key-schema.js';
import { overlay, readAssignment, readSources, type Source } from './sources.js';

/** A part of a configuration: a strict map that defaults to an empty one. */
export function section<Shape extends z.ZodRawShape>(shape: Shape) {
  const map = z.strictObject(shape);
  return map.prefault({} as z.input<typeof map> & Record<string, unknown>);
}

/**
 * The keys that every run has. An application spreads them into its own schema:
 * `z.strictObject({ ...commonKeys, data: section({ … }) })`.
 */
export const commonKeys = {
  seed: z.int().min(0).max(0xffffffff).default(1).describe('Seed of all random numbers of the run.'),
  out: z.string().min(1).default('runs').describe('Folder that will contain the run folder.'),
  name: z
    .string()
    .regex(/^\w[\w.=,+-]*$/)
    .optional()
    .describe('Name of the run folder. Default: the name of the configuration file.'),
  threads: z
    .int()
    .min(1)
    .max(1024)
    .default(2)
    .describe('Cores that a process keeps busy. Like the number of workers, it may change the results.'),
  workers: z
    .union([z.literal('auto'), z.int().min(1).max(1024)])
    .default('auto')
    .describe(
      'Threads that share each batch, each with its own copy of the model and dropout masks: a different number ' +
        'changes the last bits of the results, and with dropout all of them. auto: as many as threads, which is faster ' +
        'than several threads in each operation. 1: one model, which needs less memory.',
    ),
  device: z
    .enum(deviceChoices)
    .default('cpu')
    .describe(
      'What computes: the processor, or a graphics card through WebGPU (any vendor) or CUDA. auto: WebGPU if there is a ' +
        'card and the model is large enough to benefit. Devices round differently; dropout masks are the same.',
    ),
  saving: section({
    everySteps: z
      .int()
      .min(1)
      .nullable()
      .default(null)
      .describe('Save a checkpoint after this many steps; null: by time only.'),
    everySeconds: z
      .number()
      .positive()
      .nullable()
      .default(300)
      .describe('Save a checkpoint after this many seconds; null: by steps only. It never changes the results.'),
    keep: z.int().min(2).max(1000).default(2).describe('Checkpoints kept, besides the best one.'),
  }).describe('When the state of the run is saved, so that it can be resumed. It is always saved at the end.'),
  earlyStopping: section({
    patience: z
      .int()
      .min(1)
      .nullable()
      .default(null)
      .describe(
        'Validations without improvement after which the run ends; null: never. Where the strategy follows a plan in ' +
          'time, as a curriculum does, they count from the end of that plan.',
      ),
    minDelta: z.number().min(0).default(0).describe('Smallest change that counts as an improvement.'),
  }).describe('Ending a run that no longer improves on the main task.'),
  logging: section({
    everySteps: z
      .int()
      .min(1)
      .default(100)
      .describe(
        'Steps between two lines of training figures in metrics.jsonl; at first fewer: 1, 2, 5, 10, and so on.',
      ),
    tensorboard: z.boolean().default(true).describe('Write TensorBoard event files besides metrics.jsonl.'),
    progressSeconds: z
      .number()
      .positive()
      .default(10)
      .describe('Seconds between progress lines if the output is not a terminal.'),
  }).describe('What is recorded and shown during the run.'),
};

/** Keys that change results at most by rounding and may therefore differ when a run is resumed. */
export const freeOnResume: readonly string[] = [
  'device',
  'out',
  'name',
  'saving',
  'logging.tensorboard',
  'logging.progressSeconds',
];

/** How a configuration divides the work of a process. */
export interface Division {
  readonly threads: number;
  readonly workers: number | 'auto';
  /** Default cpu. */
  readonly device?: DeviceChoice;
}

/** The number of workers; it never depends on the machine, otherwise the results would. */
export function workersOf({ threads, workers, device = 'cpu' }: Division): number {
  if (workers !== 'auto') return workers;
  return device === 'webgpu' || device === 'cuda' ? 1 : threads;
}

/** Cores used by a run. */
export function coresOf({ threads, workers }: Division): number {
  return workers === 'auto' ? threads : threads * workers;
}

/** The run folder of a configuration read from `file`. */
export function runPath(config: { out: string; name?: string }, file: string): string {
  return join(config.out, config.name ?? basename(file, extname(file)));
}

/** What overrides a configuration file. */
export interface LoadOptions {
  /** Assignments `a.b=c` that override the file, in order; the value is read as YAML. Default none. */
  readonly set?: readonly string[];
  /** Assignments that the file overrides. Default none. */
  readonly under?: readonly string[];
}

/** All that is wrong with a configuration, one sentence per line. */
export class ConfigError extends InputError {
  override readonly name = 'ConfigError';
  readonly problems: readonly InputError[];

  constructor(problems: readonly InputError[]) {
    super(problems.map((problem) => problem.message).join('\n'));
    this.problems = problems;
  }
}

/**
 * Reads a YAML configuration with all it `extends`, applies `--set` assignments, fills in defaults and validates.
 * Objects of the schema must be strict (`z.strictObject`, `section`). Every problem names the file and line (or the
 * `--set`) the offending value came from, and its dotted key.
 */
export function loadConfig<S extends z.ZodType>(schema: S, file: string, options: LoadOptions = {}): z.output<S> {
  const { set = [], under = [] } = options;
  const keys = keySchema(schema);
  const layers = [...under.map(readAssignment), readSources(file, set, keys)];
  return validateSource(
    schema,
    keys,
    layers.reduce((below, above) => overlay(below, above, keys)),
  );
}

/** Validates given values, such as those of a run folder's `config.yaml`. */
export function parseConfig<S extends z.ZodType>(
  schema: S,
  values: Record<string, unknown>,
  file: string,
): z.output<S> {
  return validateSource(schema, keySchema(schema), { values, places: new Map([['', { file }]]) });
}

/** As `loadConfig`, with values instead of a file; their relative paths are relative to the working directory. */
export function loadValues<S extends z.ZodType>(
  schema: S,
  values: object,
  set: readonly string[] = [],
  under: readonly string[] = [],
): z.output<S> {
  const keys = keySchema(schema);
  const base: Source = { values: { ...values }, places: new Map() };
  const layers = [...under.map(readAssignment), base, ...set.map(readAssignment)];
  return validateSource(
    schema,
    keys,
    layers.reduce((below, above) => overlay(below, above, keys)),
  );
}

/** Validates merged layers; `keys` are those of the schema. */
export function validateSource<S extends z.ZodType>(schema: S, keys: KeySchema, source: Source): z.output<S> {
  const result = schema.safeParse(withPaths(source.values, keys, '', source.places));
  if (result.success) return result.data;
  throw new ConfigError(result.error.issues.flatMap((issue) => problems(issue, keys, source)));
}

/** The values with paths relative to their file made absolute; paths in `--set` are relative to the working directory. */
function withPaths(value: unknown, keys: KeySchema | undefined, path: string, places: Source['places']): unknown {
  if (typeof value === 'string' && keys?.relativeTo === 'file' && /^\.\.?\//.test(value)) {
    const file = places.get(path)?.file;
    return file === undefined || file.startsWith('--set ') ? resolve(value) : resolve(dirname(file), value);
  }
  if (!isRecord(value) || keys === undefined) return value;
  const entries = Object.entries(value).map(([key, inner]) => [
    key,
    withPaths(inner, schemaAt(keys, [key], value), dotted(path, key), places),
  ]);
  return Object.fromEntries(entries);
}

type Issue = z.core.$ZodIssue;

function problems(issue: Issue, keys: KeySchema, source: Source): InputError[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((name) => unknownKey(issue.path, name, keys, source));
  }
  const where = whereIs(issue.path, source);
  if (issue.code === 'custom') return [new InputError(issue.message, where)];
  const schema = schemaAt(keys, issue.path, source.values);
  if (schema === undefined) return [new InputError(issue.message, where)];
  const value = valueAt(source.values, issue.path);
  if (value === undefined) return [new InputError(`missing, expected ${inWords(schema)}`, where)];
  const choices = (schema.enum ?? []).filter((choice) => typeof choice === 'string');
  const near = typeof value === 'string' ? nearest(value, choices) : undefined;
  const hint = near === undefined ? '' : `; did you mean ${JSON.stringify(near)}?`;
  return [new InputError(`expected ${inWords(schema)}, found ${shown(value)}${hint}`, where)];
}

function unknownKey(path: readonly PropertyKey[], name: string, keys: KeySchema, source: Source): InputError {
  const schema = schemaAt(keys, path, source.values);
  const siblings = membersFor(schema ?? {}, valueAt(source.values, path)).flatMap((member) =>
    Object.keys(member.properties ?? {}),
  );
  const near = nearest(name, siblings);
  const prefix = path.map(String).join('.');
  // Do not suggest a key of another member of the union.
  const elsewhere = knownKeys(keys).filter((key) => key.split('.').at(-1) === name && key !== dotted(prefix, name));
  const guess = near !== undefined ? dotted(prefix, near) : elsewhere[0];
  const advice = guess === undefined ? `the keys here are ${siblings.join(', ')}` : `did you mean ${guess}?`;
  return new InputError(`unknown key; ${advice}`, whereIs([...path, name], source));
}

/** The place of the key or, if it is missing, of the nearest enclosing map. */
function whereIs(path: readonly PropertyKey[], source: Source): Where {
  const key = path.map(String).join('.');
  for (let length = path.length; length >= 0; length--) {
    const place = source.places.get(path.slice(0, length).map(String).join('.'));
    if (place !== undefined) return { ...place, key };
  }
  return { key };
}

function valueAt(values: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (at, key) => (isRecord(at) || Array.isArray(at) ? (at as Record<PropertyKey, unknown>)[key] : undefined),
    values,
  );
}

function shown(value: unknown): string {
  // JSON has no infinity and would show it as null.
  const json = (typeof value === 'number' ? undefined : JSON.stringify(value)) ?? String(value);
  return json.length <= 60 ? json : `${json.slice(0, 57)}...`;
}

/** The candidate that a typo could have turned into `word`, if there is one. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const allowed = Math.max(1, Math.floor(word.length / 3));
  let best: string | undefined;
  let bestDistance = allowed + 1;
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment) between two words. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      row[j] = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) row[j] = Math.min(row[j], beforeLast[j - 2] + 1);
    }
    [beforeLast, last] = [last, row];
  }
  return last[b.length];
}
