import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRun, saveBest, saveCheckpoint } from '../../src/run/index.js';
import { openData } from '../../src/translate/data.js';
import { saveTranslation } from '../../src/translate/trained.js';
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
export async function randomTranslationRun(seed: number): Promise<TranslationRun> {
  const scratch = mkdtempSync(join(tmpdir(), 'tcts-translation-'));
  const folder = join(scratch, 'run');
  const data = { from: 'toy', seed: 1, pairs: 60 } as const;
  const { corpus, close } = await openData(data);
  const { source, target } = corpus.languages;
  const model = tinyModel({ vocabulary: { source: source.vocabulary.size, target: target.vocabulary.size } });
  const arena = randomArena(model, seed);
  const run = createRun(folder, { config: { seed, problem: { kind: 'translation', data } }, seed, command: ['tcts'] });
  saveTranslation(folder, corpus.languages, { model, main: 3, waits: 9 });
  const tensors = arena.names.map((name) => {
    const data = arena.value(name) as Float32Array<ArrayBuffer>;
    return [`problem/model/${name}`, { dtype: 'F32', shape: arena.shape(name), data }] as const;
  });
  const checkpoint = { step: 7, tensors: new Map(tensors), state: {} };
  saveCheckpoint(join(folder, 'checkpoints'), checkpoint);
  saveBest(join(folder, 'checkpoints'), checkpoint);
  run.lock.release();
  const sources = corpus.text('test', 'source');
  close();
  return { folder, scratch, sources, remove: () => rmSync(scratch, { recursive: true }) };
}
