import { z } from 'zod';
import { InputError } from '../errors.js';
import { readJsonFile } from '../json-file.js';
import { readingWithin } from '../regular-file.js';
import { openRun } from '../run/index.js';
import { exampleSentences } from './examples.js';
import { runFile } from './run-folders.js';

/** A run that can translate, as the page offers it. */
export interface TranslationRun {
  readonly id: string;
  readonly source: string;
  readonly target: string;
  /** k of wait-k that it was trained for; null where it was not trained for wait-k. */
  readonly k: number | null;
  /** Names of the policies that can run over it. */
  readonly policies: readonly string[];
  readonly examples: readonly string[];
}

/** Those of the runs whose folder holds a model of translation; others, and such as cannot be read, are left out. */
export function translationRuns(runs: ReadonlyMap<string, string>): TranslationRun[] {
  return [...runs].flatMap(([id, path]) => {
    try {
      return readingWithin(path, () => translationRun(id, path)) ?? [];
    } catch (error) {
      if (error instanceof InputError) return [];
      throw error;
    }
  });
}

function translationRun(id: string, path: string): TranslationRun | undefined {
  const [text, model] = [runFile(path, 'text.json'), runFile(path, 'model.json')];
  if (text === undefined || model === undefined || runFile(path, 'checkpoints') === undefined) return undefined;
  const { source, target } = readJsonFile(text, textSchema);
  const { problem } = configSchema.parse(openRun(path).config);
  return {
    id,
    source: source.language,
    target: target.language,
    ...training(problem.kind, readJsonFile(model, modelSchema)),
    examples: exampleSentences(source.language, source.tokenizer.kind === 'none', problem),
  };
}

function training(kind: string, { main, waits }: z.output<typeof modelSchema>): Pick<TranslationRun, 'k' | 'policies'> {
  if (kind === 'monotonic') return { k: null, policies: ['monotonic'] };
  const any = ['wait-k', 'wait-if-worse', 'wait-if-diff'];
  return waits === 'full' || main === undefined
    ? { k: null, policies: any }
    : { k: main, policies: [...any, 'adaptive'] };
}

const configSchema = z.looseObject({ problem: z.looseObject({ kind: z.string() }).catch({ kind: 'unknown' }) });
const modelSchema = z.looseObject({
  main: z.number().optional(),
  waits: z.union([z.number(), z.literal('full')]).optional(),
});
const side = z.looseObject({ language: z.string(), tokenizer: z.looseObject({ kind: z.string() }) });
const textSchema = z.looseObject({ source: side, target: side });
