import { type Dirent, existsSync, readdirSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { isRun } from '../run/index.js';

/**
 * The runs of a folder, or the folder itself if it is one, by their names: paths below the folder, with slashes. Links
 * are not followed; `readingWithin` keeps what is read of a run inside its folder.
 */
export function runFolders(root: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  if (isRun(root)) found.set(basename(resolve(root)), root);
  else search(root, '', 1, found);
  return found;
}

/** Path of a file of a run; undefined if there is none. */
export function runFile(run: string, ...names: readonly string[]): string | undefined {
  const path = join(run, ...names);
  return existsSync(path) ? path : undefined;
}

/** Names of the folders in a folder, in order; none if it cannot be read. */
export function subfolders(folder: string): string[] {
  let entries: Dirent[];
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
  return entries
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .map(({ name }) => name)
    .sort();
}

/** How deep runs are looked for (a sweep keeps its runs in a folder of its own), and how many are listed. */
const DEPTH = 3;
const MOST = 1000;

function search(folder: string, prefix: string, depth: number, found: Map<string, string>): void {
  for (const name of subfolders(folder)) {
    if (found.size >= MOST) return;
    const path = join(folder, name);
    if (isRun(path)) found.set(prefix + name, path);
    else if (depth < DEPTH) search(path, `${prefix}${name}/`, depth + 1, found);
  }
}
