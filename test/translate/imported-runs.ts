import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defaultFilters } from '../../src/translate/corpus/encode-split.js';
import { prepareTranslation } from '../../src/translate/corpus/prepare.js';
import type { Languages } from '../../src/translate/text/languages.js';

/** The checkpoints of test/vectors/make_checkpoints.py. */
export const vectors = fileURLToPath(new URL('../vectors/', import.meta.url));

/** Lines that the vocabularies of these checkpoints know. */
export const PAIRS = [
  ['the dog sees a cat', 'der hund sieht ein katze'],
  ['a man sees the dog', 'ein mann sieht der hund'],
  ['the cat sees the man', 'der katze sieht der mann'],
  ['a dog sees a dog', 'ein hund sieht ein hund'],
] as const;

/** Writes these pairs as text for training, validation and test; returns the prefix of the files. */
export function writePairs(folder: string): string {
  for (const [i, language] of ['en', 'de'].entries()) {
    writeFileSync(join(folder, `text.${language}`), PAIRS.map((pair) => `${pair[i]}\n`).join(''));
  }
  return join(folder, 'text');
}

/** A corpus of these pairs for the languages of an imported model. */
export async function corpusLike(languages: Languages, folder: string): Promise<string> {
  const text = writePairs(folder);
  const out = join(folder, 'corpus');
  await prepareTranslation({
    source: { config: languages.source.config },
    target: { config: languages.target.config },
    languages,
    ...{ train: text, valid: text, test: [text], out },
    learning: { joint: false, sharedVocabulary: false, filters: defaultFilters },
  });
  return out;
}
