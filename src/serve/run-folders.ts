import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import { InputError } from '../errors.js';
import { fileLines, readingWithin } from '../files.js';
import {
  bestFile,
  checkpointFolder,
  descriptionFiles,
  evaluationFolders,
  findRunFolders,
  generations,
  isRun,
  openRun,
  parseLogLine,
  type RunFolder,
} from '../run/index.js';
import { type ExampleSentence, exampleSentences } from '../translate/examples.js';
import type { CheckpointChoice } from '../translate/index.js';
import { type ModelSummary, modelFile, readModelSummary } from '../translate/model/config.js';
import { ATTENTIONS, policyOf } from '../translate/monotonic/config.js';
import { policies, policyKind, runsOver } from '../translate/policies/index.js';
import type { PolicyKind } from '../translate/policies/policy.js';
import { readTextConfig, TEXT_FILE } from '../translate/text/languages.js';
import { isReadByCharacter } from '../translate/text/pipeline.js';
import { limits } from './limits.js';
import type { BuiltInModel } from './run-reader.js';

/**
 * The runs of a folder, or the folder itself if it is one, by their names: paths below the folder, with slashes. Links
 * are not followed; `readingWithin` keeps what is read of a run inside its folder.
 */
export function runFolders(root: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  if (!existsSync(root)) return found;
  for (const { name, path } of findRunFolders(root, { depth: DEPTH, links: false })) {
    if (isRun(path)) found.set(name, path);
    if (found.size >= MOST) break;
  }
  return found;
}

/** Search depth for runs (a sweep keeps its runs in its own folder), and the maximum number listed. */
const DEPTH = 3;
const MOST = 1000;

/** Path of a file of a run; undefined if there is none. Oversized files are rejected. */
export function runFile(run: string, ...names: readonly string[]): string | undefined {
  const path = join(run, ...names);
  if (!existsSync(path)) return undefined;
  refuseLarge(path);
  return path;
}

/** Descriptions and configurations of runs, parsed when they have changed and not before. */
export class RunDescriptions {
  private readonly known = new Map<string, { stamp: string; run?: RunFolder; error?: unknown }>();

  open(path: string): RunFolder {
    const stamp = descriptionFiles(path).map(fileStamp).join(' ');
    let entry = this.known.get(path);
    if (entry === undefined || entry.stamp !== stamp) {
      entry = { stamp, ...attempt(() => openSmall(path)) };
      this.known.set(path, entry);
    }
    if (entry.run === undefined) throw entry.error;
    return entry.run;
  }

  /** Forgets the runs that are not among these. */
  keep(paths: ReadonlySet<string>): void {
    for (const path of this.known.keys()) if (!paths.has(path)) this.known.delete(path);
  }
}

/** Changes when a file is written; empty if there is none. */
function fileStamp(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? '' : `${stat.ino} ${stat.mtimeMs} ${stat.ctimeMs} ${stat.size}`;
}

/** Name and time of the newest checkpoint among those that `checkpoint` chooses from. */
export function checkpointStamp(
  run: string,
  { checkpoint = 'best' }: { readonly checkpoint?: CheckpointChoice },
): string {
  const folder = checkpointFolder(run);
  const newest = generations(folder).map(({ path }) => path)[0];
  const paths = [checkpoint === 'best' ? bestFile(folder) : undefined, newest];
  for (const path of paths) {
    const written = path && statSync(path, { throwIfNoEntry: false })?.mtimeMs;
    if (written !== undefined) return `${path} ${written}`;
  }
  return 'none';
}

function openSmall(path: string): RunFolder {
  const [info, config] = descriptionFiles(path);
  refuseLarge(info, limits.descriptionBytes);
  refuseLarge(config, limits.configBytes);
  return openRun(path);
}

function attempt(open: () => RunFolder): { run?: RunFolder; error?: unknown } {
  try {
    return { run: open() };
  } catch (error) {
    return { error };
  }
}

/** Rejects an oversized file. */
export function refuseLarge(file: string, most: number = limits.fileBytes): void {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size <= most) return;
  throw new InputError(
    `the page reads at most ${Math.round(most / 1000)} kB of it, it has ${Math.round(size / 1000)} kB`,
    {
      file,
    },
  );
}

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
  /** Whether its source arrives character by character (`TextPipeline.byCharacter`). */
  readonly byCharacter: boolean;
  /** k of wait-k that it was trained for; null if it was not trained for wait-k. */
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

  constructor(private readonly descriptions: RunDescriptions = new RunDescriptions()) {}

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
      const stamp = stamped(path).map(fileStamp).join(' ');
      const before = this.known.get(path);
      now.set(path, before?.stamp === stamp ? before : { stamp, run: readable(id, path, this.descriptions) });
      await setImmediate();
    }
    this.known = now;
    return [...now.values()].flatMap(({ run }) => run ?? []);
  }
}

/** What a run is offered by. */
function stamped(run: string): string[] {
  const others = [TEXT_FILE, 'checkpoints', 'evaluation'].map((name) => join(run, name));
  return [...descriptionFiles(run), modelFile(run), ...others];
}

function readable(id: string, path: string, descriptions: RunDescriptions): TranslationRun | undefined {
  try {
    return readingWithin(path, () => translationRun(id, path, descriptions));
  } catch (error) {
    if (error instanceof InputError) return undefined;
    throw error;
  }
}

function translationRun(id: string, path: string, descriptions: RunDescriptions): TranslationRun | undefined {
  const [text, model] = [runFile(path, TEXT_FILE), runFile(path, 'model.json')];
  if (text === undefined || model === undefined || !existsSync(join(path, 'checkpoints'))) return undefined;
  const { source, target } = readTextConfig(path);
  const { problem } = configSchema.parse(descriptions.open(path).config);
  const byCharacter = isReadByCharacter(source);
  return {
    id,
    source: source.language,
    target: target.language,
    byCharacter,
    ...training(readModelSummary(path) ?? { model: {} }),
    examples: [...evaluatedExamples(path, byCharacter), ...exampleSentences(source, problem)].slice(0, EXAMPLES),
  };
}

function training({ main, waits, model }: ModelSummary): Pick<TranslationRun, 'k' | 'policies'> {
  const whole = waits === 'full' || main === undefined;
  const attention = ATTENTIONS.find((one) => one === model.attention);
  const trained = attention !== undefined ? policyOf(attention) : whole ? 'full' : main;
  const able = policies.filter((policy) => runsOver(policy, trained));
  return { k: typeof trained === 'number' ? trained : null, policies: able.map(({ name }) => name) };
}

const configSchema = z.looseObject({ problem: z.looseObject({ kind: z.string() }).catch({ kind: 'unknown' }) });

/**
 * Sentences of the run's own evaluations, with their references. SimulEval's log has spaces between all that arrives, so
 * that lines read by characters are taken from the file for COMET.
 */
function evaluatedExamples(run: string, byCharacter: boolean): ExampleSentence[] {
  for (const folder of evaluationFolders(run)) {
    const path = join(folder, byCharacter ? 'comet.jsonl' : 'instances.log');
    if (!existsSync(path)) continue;
    const examples: ExampleSentence[] = [];
    for (const { bytes } of fileLines(path)) {
      const parsed = (byCharacter ? cometSchema : instanceSchema).safeParse(
        parseLogLine(bytes?.toString('utf8') ?? ''),
      );
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

const cometSchema = z.object({ src: line, ref: line }).transform(({ src, ref }) => ({
  source: src.trim().replaceAll(/\s+/gu, ' '),
  reference: ref,
}));

/**
 * A sentence for clients: paths within the folder of a run are shown from there on, and of other absolute paths only
 * the last part, for how the disk of the server is laid out is nobody else's business.
 */
export function withoutPaths(sentence: string, folder?: string): string {
  const own =
    folder === undefined ? sentence : sentence.replaceAll(`${folder}/`, '').replaceAll(folder, basenameOf(folder));
  return own.replaceAll(/(?<![\w.~/])(?:[A-Za-z]:)?[\\/](?:[^\s:'"\\/]+[\\/])+([^\s:'"\\/]*)/g, '$1');
}

function basenameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
