import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DataConfig } from './config.js';
import { type Corpus, openCorpus } from './corpus/corpus.js';
import { defaultFilters } from './corpus/filters.js';
import { prepareTranslation } from './corpus/prepare.js';
import { toyLanguages, toyText, writeToyText } from './toy.js';

/** A corpus for as long as it is needed. */
export interface OpenData {
  readonly corpus: Corpus;
  /** Removes what was made on the spot. */
  close(): void;
}

/** The corpus of a configuration. The toy pair is written and prepared in a temporary folder. */
export async function openData(config: DataConfig): Promise<OpenData> {
  if (config.from === 'corpus') return { corpus: openCorpus(config.folder), close: () => {} };
  const folder = mkdtempSync(join(tmpdir(), 'tcts-toy-'));
  const close = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    writeToyText(folder, toyText(config.seed, { train: config.pairs }));
    const words = { lowercase: false, normalize: false, tokenizer: { kind: 'none' } } as const;
    await prepareTranslation({
      source: { config: { language: toyLanguages.source, ...words } },
      target: { config: { language: toyLanguages.target, ...words } },
      train: join(folder, 'train'),
      valid: join(folder, 'valid'),
      test: [join(folder, 'test')],
      out: join(folder, 'corpus'),
      learning: { joint: false, sharedVocabulary: false, filters: defaultFilters },
    });
    return { corpus: openCorpus(join(folder, 'corpus')), close };
  } catch (error) {
    close();
    throw error;
  }
}
