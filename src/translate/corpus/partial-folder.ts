import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { InputError } from '../../errors.js';
import { fileError, makeFolder, readText, writeFileAtomic } from '../../files.js';
import { isCorpus } from './corpus.js';

/** Kept in the corpus: what it was made from, and how. Tells whether an interrupted preparation may go on. */
const recordFile = 'prepared-from.json';

/** A corpus made from the same files in the same way is already there. */
export function isPrepared(out: string, record: string): boolean {
  return isCorpus(out) && recordOf(out) === record;
}

/** Refuses to replace what is not a corpus, and a corpus unless that is asked for. */
export function checkDestination(out: string, overwrite: boolean): void {
  if (!existsSync(out) || (overwrite && isCorpus(out))) return;
  let entries: string[];
  try {
    entries = readdirSync(out);
  } catch (error) {
    throw fileError(error, 'write', out);
  }
  if (entries.length === 0) return;
  const sentence = isCorpus(out)
    ? 'another corpus is there already (--overwrite replaces it)'
    : 'the folder holds something else, choose a new one';
  throw new InputError(sentence, { file: out });
}

/** `OUT.partial`, the folder a corpus is made in: the unfinished one of this very preparation, or a new one. */
export function openPartial(out: string, record: string): string {
  const folder = `${resolve(out)}.partial`;
  try {
    if (existsSync(folder) && recordOf(folder) !== record) {
      if (readdirSync(folder).length > 0 && recordOf(folder) === undefined) {
        throw new InputError('the folder is in the way of a preparation; remove or rename it', { file: folder });
      }
      rmSync(folder, { recursive: true });
    }
    makeFolder(folder);
  } catch (error) {
    throw fileError(error, 'write', folder);
  }
  if (recordOf(folder) === undefined) writeFileAtomic(join(folder, recordFile), record);
  return folder;
}

/** Gives the complete folder its name, without what only an interrupted preparation needs. */
export function publish(folder: string, out: string): void {
  for (const name of readdirSync(folder)) {
    if (/\.(done|checkpoint)\.json$|\.part$|\.tmp$/.test(name)) rmSync(join(folder, name));
  }
  if (existsSync(out)) rmSync(out, { recursive: true });
  renameSync(folder, out);
}

function recordOf(folder: string): string | undefined {
  const path = join(folder, recordFile);
  return existsSync(path) ? readText(path) : undefined;
}
