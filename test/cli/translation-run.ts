import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { traceModel } from '../../src/optim/index.js';
import { createRun, saveBest, saveCheckpoint } from '../../src/run/index.js';
import type { TranslationDataConfig } from '../../src/translate/config.js';
import { openCorpus } from '../../src/translate/corpus/corpus.js';
import { defaultFilters } from '../../src/translate/corpus/encode-split.js';
import { prepareTranslation } from '../../src/translate/corpus/prepare.js';
import { type MonotonicKind, monotonicModel } from '../../src/translate/monotonic/config.js';
import { monotonicInputs, monotonicLossModel } from '../../src/translate/monotonic/loss.js';
import type { Languages } from '../../src/translate/text/languages.js';
import type { PipelineConfig } from '../../src/translate/text/pipeline.js';
import { saveMonotonic, saveTranslation } from '../../src/translate/trained.js';
import { openData } from '../../src/translate/training.js';
import { randomArena, tinyModel } from '../translate/decode-models.js';

export interface TranslationRun {
  /** The run folder. */
  readonly folder: string;
  /** A folder beside it for whatever a test writes. */
  readonly scratch: string;
  /** Sources of the test split. */
  readonly sources: readonly string[];
  remove(): void;
}

/** A run folder of the toy languages as training leaves it, with a tiny model of random parameters. */
export async function randomTranslationRun(seed: number, attention?: MonotonicKind): Promise<TranslationRun> {
  const scratch = mkdtempSync(join(tmpdir(), 'tcts-translation-'));
  const data = { from: 'toy', seed: 1, pairs: 60 } as const;
  const { corpus, close } = await openData(data);
  const folder = saveRandomRun(scratch, corpus.languages, data, seed, attention);
  const sources = corpus.text('test', 'source');
  close();
  return { folder, scratch, sources, remove: () => rmSync(scratch, { recursive: true }) };
}

/** A run of text of a test's own. */
export interface TextRun extends TranslationRun {
  /** A corpus with the same sources and languages, and these references. */
  corpusWith(references: readonly string[]): Promise<string>;
}

/** The same for pairs of lines, which are its training, validation and test data. */
export async function randomTextRun(
  seed: number,
  pairs: readonly (readonly [source: string, target: string])[],
  languages: { readonly source: PipelineConfig; readonly target: PipelineConfig; readonly bpe?: number },
): Promise<TextRun> {
  const scratch = mkdtempSync(join(tmpdir(), 'tcts-translation-'));
  const sources = pairs.map(([line]) => line);
  const prepare = async (name: string, references: readonly string[], ready?: Languages): Promise<string> => {
    const [text, out] = [join(scratch, name), join(scratch, `corpus-${name}`)];
    for (const [side, lines] of [
      ['source', sources],
      ['target', references],
    ] as const) {
      writeFileSync(`${text}.${languages[side].language}`, lines.map((line) => `${line}\n`).join(''));
    }
    await prepareTranslation({
      source: { config: languages.source },
      target: { config: languages.target },
      ...{ train: text, valid: text, test: [text], out },
      learning: { bpe: languages.bpe, joint: false, sharedVocabulary: false, filters: defaultFilters },
      languages: ready,
    });
    return out;
  };
  const corpus = await prepare(
    'own',
    pairs.map(([, line]) => line),
  );
  const learned = openCorpus(corpus).languages;
  const folder = saveRandomRun(scratch, learned, { from: 'corpus', folder: corpus }, seed);
  let others = 0;
  return {
    ...{ folder, scratch, sources },
    corpusWith: (references) => prepare(`other-${others++}`, references, learned),
    remove: () => rmSync(scratch, { recursive: true }),
  };
}

function saveRandomRun(
  scratch: string,
  languages: Languages,
  data: TranslationDataConfig,
  seed: number,
  attention?: MonotonicKind,
): string {
  const folder = join(scratch, 'run');
  const { source, target } = languages;
  const model = tinyModel({ vocabulary: { source: source.vocabulary.size, target: target.vocabulary.size } });
  const kind = attention === undefined ? 'translation' : 'monotonic';
  const run = createRun(folder, { config: { seed, problem: { kind, data } }, seed, command: ['tcts'] });
  let arena = randomArena(model, seed);
  if (attention === undefined) saveTranslation(folder, languages, { model, main: 3, waits: 9 });
  else {
    const own = monotonicModel(model, attention);
    const options = { smoothing: 0, varianceWeight: 1, evaluation: true };
    arena = randomArena(own, seed, traceModel(monotonicLossModel(own, options), monotonicInputs).parameters);
    saveMonotonic(folder, languages, own);
  }
  const tensors = arena.names.map((name) => {
    const data = arena.value(name) as Float32Array<ArrayBuffer>;
    return [`problem/model/${name}`, { dtype: 'F32', shape: arena.shape(name), data }] as const;
  });
  const checkpoint = { step: 7, tensors: new Map(tensors), state: { subject: { problem: { model: null } } } };
  saveCheckpoint(join(folder, 'checkpoints'), checkpoint);
  saveBest(join(folder, 'checkpoints'), checkpoint);
  run.lock.release();
  return folder;
}
