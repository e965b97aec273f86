/**
 * Removes from dist what no source compiles to any more, so that nothing runs or is tested that is gone from src. It
 * runs after the compiler: whatever uses the files of dist meanwhile never misses one that is still there. Other files
 * (WebAssembly, the page, the API reference) are left alone.
 *
 *     node remove-stale.mjs [src] [dist]
 */

import { existsSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(fileURLToPath(import.meta.url));
const [src = join(root, 'src'), dist = join(root, 'dist')] = process.argv.slice(2).map((path) => resolve(path));
/** Folders of dist that others write. */
const FOREIGN = ['api', 'page'];
const COMPILED = /\.(js|js\.map|d\.ts)$/;

for (const entry of readdirSync(dist, { withFileTypes: true })) {
  if (!FOREIGN.includes(entry.name)) clean(entry, '');
}

/** @returns whether it is gone */
function clean(entry, folder) {
  const path = join(folder, entry.name);
  if (entry.isDirectory()) {
    const left = readdirSync(join(dist, path), { withFileTypes: true }).filter((inner) => !clean(inner, path));
    if (left.length > 0 || existsSync(join(src, path))) return false;
    rmdirSync(join(dist, path));
    return true;
  }
  if (!COMPILED.test(path) || existsSync(join(src, path.replace(COMPILED, '.ts')))) return false;
  rmSync(join(dist, path), { force: true });
  return true;
}
