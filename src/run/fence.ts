import { type FileData, writeFileAtomic } from '../files.js';

/**
 * Who may write to a folder, as long as `requireHeld` does not throw: the holder of its lock.
 *
 * A process that was frozen, or whose machine was asleep, may have lost the lock without knowing. Looking at the lock
 * before each write is not enough, as it may freeze between the look and the write. Hence these rules, by which such a
 * late write cannot touch what the next owner makes:
 *
 * - A file is written under a temporary name, then the lock is looked at, then the file is renamed. A new owner takes
 *   the lock, then removes all temporary files, and only then reads the folder: a late rename finds nothing to rename.
 * - Each owner writes its logs to files of its own, which replace the logs of the owner before: late lines go to a file
 *   that has no name any more.
 * - Only what is older than a checkpoint that has been published is removed: the next owner goes on from that one.
 */
export interface Owner {
  /** Throws a `LostLockError` if the folder belongs to another process now. */
  requireHeld(): void;
}

/** Writes a file as the owner of its folder. */
export function writeAsOwner(owner: Owner, path: string, data: FileData): void {
  publish(owner, () => writeFileAtomic(path, data, { beforeRename: () => owner.requireHeld() }));
}

/**
 * Makes a file appear by a rename. A process that once owned the folder, and was frozen while it tidied up, may remove
 * our temporary file instead of those before it: then it is written again. If the lock is lost, that is the reason for any failure.
 */
export function publish<T>(owner: Owner, make: () => T): T {
  for (let attempt = 1; ; attempt++) {
    try {
      return make();
    } catch (error) {
      owner.requireHeld();
      if (attempt === ATTEMPTS || (error as { code?: unknown }).code !== 'ENOENT') throw error;
    }
  }
}

/** For files in folders that nobody locks. */
export const ANYONE: Owner = { requireHeld: () => {} };

const ATTEMPTS = 3;
