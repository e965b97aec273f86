import { AsyncLocalStorage } from 'node:async_hooks';
import { closeSync, constants, fstatSync, openSync, realpathSync, type Stats } from 'node:fs';
import { sep } from 'node:path';
import { InputError } from './errors.js';

/**
 * Opens a regular file for reading. Anything else is an `InputError`: a pipe could keep its reader waiting for ever, a
 * device could have no end. What was opened is what is looked at, so that nothing can be put in its place meanwhile.
 */
export function openRegular(path: string): number {
  const folder = confinement.getStore();
  const real = folder === undefined ? path : realPathWithin(folder, path);
  // Without O_NONBLOCK, opening a pipe that nobody writes to does not return. Windows has neither flag.
  const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);
  const file = openSync(real, folder === undefined ? flags : flags | (constants.O_NOFOLLOW ?? 0));
  try {
    const stat = fstatSync(file);
    if (!stat.isFile()) throw new InputError(`expected a regular file, found ${kindOf(stat)}`, { file: path });
    // A folder on the way may have become a link since.
    if (folder !== undefined && realPathWithin(folder, path) !== real) throw leadsOut(path);
    return file;
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

/**
 * While the action is under way, what it reads through `files.ts` must be regular files inside the folder: links that
 * lead out of it are refused. For folders that others can write to.
 */
export function readingWithin<T>(folder: string, action: () => T): T {
  return confinement.run(folder, action);
}

/** Whether `readingWithin` is in force. */
export function isConfined(): boolean {
  return confinement.getStore() !== undefined;
}

const confinement = new AsyncLocalStorage<string>();

function realPathWithin(folder: string, path: string): string {
  const real = realpathSync(path);
  if (real.startsWith(realpathSync(folder) + sep)) return real;
  throw leadsOut(path);
}

function leadsOut(path: string): InputError {
  return new InputError('it is a link that leads out of the run folder, which is not followed', { file: path });
}

function kindOf(stat: Stats): string {
  if (stat.isDirectory()) return 'a folder';
  if (stat.isFIFO()) return 'a pipe';
  return stat.isSocket() ? 'a socket' : 'a device';
}
