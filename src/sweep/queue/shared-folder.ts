import { randomUUID } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { InputError } from '../../errors.js';
import { makeFolder, readText, writeFileAtomic } from '../../files.js';

/** The folder that all machines see, with what the queue keeps in its `.queue/`. */
export interface SharedFolder {
  readonly path: string;
  /** Folder with the history of each job. */
  readonly attempts: string;
}

export function sharedFolder(path: string): SharedFolder {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
    throw new InputError('there is no such folder; expected the one that all machines share', { file: path });
  }
  return { path: resolve(path), attempts: join(resolve(path), '.queue', 'attempts') };
}

/**
 * The identity of the folder, which every job carries, so that a worker that was pointed to another folder, or whose
 * network folder is not mounted, notices before it trains into nowhere. Made by the first sweep.
 */
export function identify(shared: SharedFolder): string {
  const known = identity(shared);
  if (known !== undefined) return known;
  makeFolder(shared.attempts);
  writeFileAtomic(identityFile(shared), `${JSON.stringify({ id: randomUUID() })}\n`);
  return identify(shared);
}

/** Refuses a folder that is not the one with this identity. */
export function requireSame(shared: SharedFolder, id: string): void {
  const found = identity(shared);
  if (found === id) return;
  const instead = found === undefined ? 'no sweep has ever used it' : 'it is that of other sweeps';
  throw new InputError(`this is not the shared folder of the sweep (${instead}); is --runs right, and is it mounted?`, {
    file: shared.path,
  });
}

function identity(shared: SharedFolder): string | undefined {
  const file = identityFile(shared);
  if (!existsSync(file)) return undefined;
  try {
    const { id } = JSON.parse(readText(file)) as { id: unknown };
    if (typeof id === 'string') return id;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new InputError('expected the identity of a shared folder in JSON', { file });
}

function identityFile({ path }: SharedFolder): string {
  return join(path, '.queue', 'folder.json');
}
