import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import { InputError } from '../errors.js';
import { fileLines } from '../file-lines.js';
import { readingWithin, readJsonFile } from '../files.js';
import { evaluationFolders, parseLogLine } from '../run/index.js';
import { type ExampleSentence, exampleSentences } from '../translate/examples.js';
import { ATTENTIONS, policyOf } from '../translate/monotonic/config.js';
import type { PolicyKind } from '../translate/policies/description.js';
import { policies, policyKind, runsOver } from '../translate/policies/index.js';
import { fileStamp, RunDescriptions, runFile } from './run-folders.js';
import type { BuiltInModel } from './run-reader.js';

/** What can be translated with. */
export interface TranslationOffer {
  /** Where models can run: on the server, in the page, or both. */
  readonly places: readonly string[];
  /** Every policy, for the menus. */
  readonly policies: readonly PolicyKind[];
  readonly runs: readonly TranslationRun[];
}

/** A run that can translate, as the page offers it. */
export interface TranslationRun {
  readonly id: string;
  readonly source: string;
  readonly target: string;
  /** k of wait-k that it was trained for; null where it was not trained for wait-k. */
  readonly k: number | null;
  /** Names of the policies that can run over it. */
  readonly policies: readonly string[];
  readonly examples: readonly ExampleSentence[];
  /** What a built-in model was trained on. */
  readonly about?: string;
}

/** Which runs can translate; each is read when it has changed and not before. */
export class TranslationRuns {
  private known = new Map<string, { readonly stamp: string; readonly run: TranslationRun | undefined }>();

  /** What the page is told: the runs that can translate, and what it needs to know of the policies. */
  async offer(
    runs: ReadonlyMap<string, string>,
    places: readonly string[],
    builtIn?: BuiltInModel,
  ): Promise<TranslationOffer> {
    const found = (await this.of(runs)).map((run) =>
      runs.get(run.id) === builtIn?.folder ? { ...run, about: builtIn?.about } : run,
    );
    return { places, policies: policies.map(policyKind), runs: found };
  }

  /** Those whose folder holds a model of translation; others, and such as cannot be read, are left out. */
  async of(runs: ReadonlyMap<string, string>): Promise<TranslationRun[]> {
    const now: typeof this.known = new Map();
    for (const [id, path] of runs) {
      const stamp = STAMPED.map((name) => fileStamp(join(path, name))).join(' ');
      const before = this.known.get(path);
      now.set(path, before?.stamp === stamp ? before : { stamp, run: readable(id, path) });
      await setImmediate();
    }
    this.known = now;
    return [...now.values()].flatMap(({ run }) => run ?? []);
  }
}

/** What a run is offered by. */
const STAMPED = ['run.json', 'config.yaml', 'text.json', 'model.json', 'checkpoints', 'evaluation'];

function readable(id: string, path: string): TranslationRun | undefined {
  try {
    return readingWithin(path, () => translationRun(id, path));
  } catch (error) {
    if (error instanceof InputError) return undefined;
    throw error;
  }
}

function translationRun(id: string, path: string): TranslationRun | undefined {
  const [text, model] = [runFile(path, 'text.json'), runFile(path, 'model.json')];
  if (text === undefined || model === undefined || !existsSync(join(path, 'checkpoints'))) return undefined;
  const { source, target } = readJsonFile(text, textSchema);
  const { problem } = configSchema.parse(new RunDescriptions().open(path).config);
  const examples = exampleSentences(source.language, source.tokenizer.kind === 'none', problem);
  return {
    id,
    source: source.language,
    target: target.language,
    ...training(problem.kind, readJsonFile(model, modelSchema)),
    examples: [...evaluatedExamples(path), ...examples].slice(0, EXAMPLES),
  };
}

function training(
  kind: string,
  { main, waits, model }: z.output<typeof modelSchema>,
): Pick<TranslationRun, 'k' | 'policies'> {
  const whole = waits === 'full' || main === undefined;
  const trained = kind === 'monotonic' ? policyOf(model?.attention ?? 'mma-il') : whole ? 'full' : main;
  const able = policies.filter((policy) => runsOver(policy, trained));
  return { k: typeof trained === 'number' ? trained : null, policies: able.map(({ name }) => name) };
}

const configSchema = z.looseObject({ problem: z.looseObject({ kind: z.string() }).catch({ kind: 'unknown' }) });
const modelSchema = z.looseObject({
  main: z.number().optional(),
  waits: z.union([z.number(), z.literal('full')]).optional(),
  model: z.looseObject({ attention: z.enum(ATTENTIONS).optional() }).optional(),
});
const side = z.looseObject({ language: z.string(), tokenizer: z.looseObject({ kind: z.string() }) });
const textSchema = z.looseObject({ source: side, target: side });

/** Sentences of the run's own evaluations, with their references. */
function evaluatedExamples(run: string): ExampleSentence[] {
  for (const folder of evaluationFolders(run)) {
    const path = join(folder, 'instances.log');
    if (!existsSync(path)) continue;
    const examples: ExampleSentence[] = [];
    for (const { bytes } of fileLines(path)) {
      const parsed = instanceSchema.safeParse(parseLogLine(bytes?.toString('utf8') ?? ''));
      if (parsed.success) examples.push(parsed.data);
      if (examples.length === EXAMPLES) return examples;
    }
    return examples;
  }
  return [];
}

const EXAMPLES = 4;

const line = z.string().min(1).max(300);
const instanceSchema = z.object({
  source: z.union([
    line,
    z
      .array(z.string())
      .transform((words) => words.join(' '))
      .pipe(line),
  ]),
  reference: line,
});
