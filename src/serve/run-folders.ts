import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { InputError } from '../errors.js';
import { checkpointFolder, findRunFolders, generations, isRun, openRun, type RunFolder } from '../run/index.js';
import type { CheckpointChoice } from '../translate/index.js';
import { limits } from './limits.js';

/**
 * The runs of a folder, or the folder itself if it is one, by their names: paths below the folder, with slashes. Links
 * are not followed; `readingWithin` keeps what is read of a run inside its folder.
 */
export function runFolders(root: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  if (!existsSync(root)) return found;
  for (const { name, path } of findRunFolders(root, { depth: DEPTH, links: false })) {
    if (isRun(path)) found.set(name, path);
    if (found.size >= MOST) break;
  }
  return found;
}

/** How deep runs are looked for (a sweep keeps its runs in a folder of its own), and how many are listed. */
const DEPTH = 3;
const MOST = 1000;

/** Path of a file of a run; undefined if there is none. One that is larger than any of ours is refused. */
export function runFile(run: string, ...names: readonly string[]): string | undefined {
  const path = join(run, ...names);
  if (!existsSync(path)) return undefined;
  refuseLarge(path);
  return path;
}

/** Descriptions and configurations of runs, parsed when they have changed and not before. */
export class RunDescriptions {
  private readonly known = new Map<string, { stamp: string; run?: RunFolder; error?: unknown }>();

  open(path: string): RunFolder {
    const files = ['run.json', 'config.yaml'].map((name) => join(path, name));
    const stamp = files.map(fileStamp).join(' ');
    let entry = this.known.get(path);
    if (entry === undefined || entry.stamp !== stamp) {
      entry = { stamp, ...attempt(() => openSmall(path, files)) };
      this.known.set(path, entry);
    }
    if (entry.run === undefined) throw entry.error;
    return entry.run;
  }

  /** Forgets the runs that are not among these. */
  keep(paths: ReadonlySet<string>): void {
    for (const path of this.known.keys()) if (!paths.has(path)) this.known.delete(path);
  }
}

/** Changes when a file is written; empty where there is none. */
export function fileStamp(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? '' : `${stat.ino} ${stat.mtimeMs} ${stat.ctimeMs} ${stat.size}`;
}

/** Name and time of the newest checkpoint among those that `checkpoint` chooses from. */
export function checkpointStamp(
  run: string,
  { checkpoint = 'best' }: { readonly checkpoint?: CheckpointChoice },
): string {
  const folder = checkpointFolder(run);
  const newest = generations(folder).map(({ path }) => path)[0];
  const paths = [checkpoint === 'best' ? join(folder, 'best.safetensors') : undefined, newest];
  for (const path of paths) {
    const written = path && statSync(path, { throwIfNoEntry: false })?.mtimeMs;
    if (written !== undefined) return `${path} ${written}`;
  }
  return 'none';
}

function openSmall(path: string, files: readonly string[]): RunFolder {
  for (const file of files) refuseLarge(file, limits.descriptionBytes);
  return openRun(path);
}

function attempt(open: () => RunFolder): { run?: RunFolder; error?: unknown } {
  try {
    return { run: open() };
  } catch (error) {
    return { error };
  }
}

/** Refuses a file that is larger than any of ours. */
export function refuseLarge(file: string, most: number = limits.fileBytes): void {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size <= most) return;
  throw new InputError(
    `the page reads at most ${Math.round(most / 1000)} kB of it, it has ${Math.round(size / 1000)} kB`,
    {
      file,
    },
  );
}
