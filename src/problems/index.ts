import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isAbsolute, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { InputError } from '../errors.js';
import { forecastKind } from '../forecast/config.js';
import { keySchema } from '../run/config/key-schema.js';
import { ConfigError, commonKeys, validateSource } from '../run/index.js';
import {
  contextualKind,
  knownAnswerKind,
  type MemberPlan,
  type Problem,
  type ProblemContext,
  type ProblemKind,
  strategySchema,
  trainingSchema,
  type Validation,
} from '../schedule/index.js';
import { seriesKind } from '../series/config.js';
import { translationKind } from '../translate/config.js';
import { monotonicKind } from '../translate/monotonic/config.js';

/** Every kind of problem, in the order shown to users. Each describes itself in its own file. */
const KINDS = [knownAnswerKind, contextualKind, translationKind, monotonicKind, forecastKind, seriesKind] as const;

/** The modules named by configurations: what each describes, or why it cannot be used. */
const modules = new Map<string, ProblemKind | InputError>();

const moduleSchema = z
  .looseObject({
    kind: z.literal('module').describe('Your own problem; the other keys are those that its module describes.'),
    module: z
      .string()
      .min(1)
      .describe('A file, relative to this one, or a package, whose default export describes the problem.')
      .meta({ examples: ['./weather.js'], relativeTo: 'file' }),
  })
  .transform((values, context) => {
    const kind = modules.get(values.module);
    if (kind === undefined) throw new UnknownModule(values.module);
    if (kind instanceof InputError) {
      context.issues.push({ code: 'custom', message: kind.message, path: ['module'], input: values.module });
      return z.NEVER;
    }
    try {
      const { kind: _, ...own } = ownValues(kind, values);
      return { ...own, kind: values.kind, module: values.module };
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      for (const { where, message } of error.problems) {
        const path = where.key?.split('.') ?? [];
        const sentence = where.key === undefined ? message : message.slice(where.key.length + 2);
        context.issues.push({ code: 'custom', message: sentence, path, input: values });
      }
      return z.NEVER;
    }
  });

type SchemasOf<T extends readonly { readonly schema: unknown }[]> = { readonly [I in keyof T]: T[I]['schema'] };

/** The configuration of a training run. */
export const trainConfigSchema = z.strictObject({
  ...commonKeys,
  problem: z
    .discriminatedUnion('kind', [
      ...(KINDS.map(({ schema }) => schema) as unknown as SchemasOf<typeof KINDS>),
      moduleSchema,
    ])
    .describe('What is learned, from which data.'),
  strategy: strategySchema,
  training: trainingSchema,
});

/** A checked training configuration. */
export type TrainConfig = z.output<typeof trainConfigSchema>;

/** The description behind the `problem` of a configuration that has been validated, or read from a run folder. */
export function kindOf(problem: { readonly kind?: unknown; readonly module?: unknown }): ProblemKind | undefined {
  if (problem.kind !== 'module')
    return KINDS.find(({ schema }) => schema.shape.kind.value === problem.kind) as ProblemKind | undefined;
  const found = modules.get(String(problem.module));
  return found instanceof InputError ? undefined : found;
}

/** What the validation of a run measures, as shown to users. */
export function validationOf(problem: { readonly kind?: unknown; readonly module?: unknown }): Validation {
  const kind = kindOf(problem);
  return kind?.validation?.(problem as never) ?? { name: 'loss', sign: -1 };
}

/** Commands worth trying with a trained run. */
export function nextCommands(
  problem: { readonly kind?: unknown; readonly module?: unknown },
  folder: string,
): string[] {
  const kind = kindOf(problem);
  const flags = { translate: '', forecast: ' --out forecast.csv', export: ' --onnx exported' };
  return [
    ...(kind?.evaluate === undefined ? [] : [`tcts evaluate ${folder}`]),
    ...(kind?.verbs ?? []).filter((verb) => verb !== 'export').map((verb) => `tcts ${verb} ${folder}${flags[verb]}`),
    `tcts report ${folder}`,
  ];
}

/** Names of the kinds that `tcts evaluate` supports. */
export function kindsWithEvaluation(): string[] {
  return KINDS.flatMap((kind) => ('evaluate' in kind && kind.evaluate ? [kind.schema.shape.kind.value] : []));
}

export async function createProblem(config: TrainConfig['problem'], context: ProblemContext): Promise<Problem> {
  const kind = kindOf(config)!;
  return kind.create(config.kind === 'module' ? ownValues(kind, config) : config, context);
}

/** The runs that a configuration stands for, if there are several. */
export async function memberPlan({ problem, seed }: TrainConfig): Promise<MemberPlan | undefined> {
  return problem.kind === 'module' ? undefined : kindOf(problem)?.members?.(problem, seed);
}

/** Reads configurations and the modules they name. */
export async function withModules<T>(read: () => T): Promise<T> {
  for (;;) {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof UnknownModule)) throw error;
      await loadModule(error.module);
    }
  }
}

/** Loads a module unless it is already loaded; an `InputError` says why it cannot be used. */
export async function loadModule(name: string): Promise<ProblemKind | InputError> {
  const known = modules.get(name);
  if (known !== undefined) return known;
  const found = await importKind(name).catch((error: unknown) =>
    error instanceof InputError ? error : new InputError(`${name} cannot be loaded: ${firstLine(error)}`),
  );
  modules.set(name, found);
  return found;
}

/** A configuration names a module that has not been loaded. */
class UnknownModule extends Error {
  constructor(readonly module: string) {
    super(`the module ${module} has not been loaded`);
  }
}

/** The values of the module's own keys, with its defaults. */
function ownValues(kind: ProblemKind, { kind: _, module: __, ...own }: Record<string, unknown>) {
  const values = { ...own, kind: kind.schema.shape.kind.value };
  return validateSource(kind.schema, keySchema(kind.schema), { values, places: new Map() });
}

async function importKind(name: string): Promise<ProblemKind> {
  const file = isAbsolute(name) ? name : packageEntry(name);
  if (!existsSync(file)) throw new InputError(`there is no file ${file}`);
  const { default: kind } = (await import(pathToFileURL(file).href)) as { default?: Partial<ProblemKind> };
  const described = kind?.schema instanceof z.ZodObject && kind.schema.shape.kind instanceof z.ZodLiteral;
  if (described && typeof kind.create === 'function') {
    // A schema that accepts unknown keys is a mistake in the module.
    keySchema(kind.schema);
    return kind as ProblemKind;
  }
  throw new InputError(
    `${name} does not describe a problem: expected a default export made by problemKind({schema, create})`,
  );
}

/** The file that a package's name stands for, as seen from the working directory. */
function packageEntry(name: string): string {
  const require = createRequire(join(process.cwd(), 'package.json'));
  try {
    return require.resolve(name);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'MODULE_NOT_FOUND') {
      throw new InputError(`there is no package ${name} (write a file as ./${name})`);
    }
    if (code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED') throw error;
  }
  // A package that can only be imported.
  const folder = require.resolve
    .paths(name)
    ?.map((path) => join(path, name))
    .find((path) => existsSync(join(path, 'package.json')));
  if (folder === undefined) throw new InputError(`there is no package ${name}`);
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { exports: { '.'?: unknown } };
  const main = exports['.'] ?? exports;
  const entry = typeof main === 'string' ? main : (main as { import?: unknown }).import;
  if (typeof entry === 'string') return join(folder, entry);
  throw new InputError(`the package ${name} has no entry for import: name a file of it instead`);
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0];
}
