import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, it } from 'vitest';

const root = fileURLToPath(new URL('../../shared/', import.meta.url));
const present = existsSync(root);
if (!present && process.env.CI) throw new Error(`CI must have the reference vectors at ${root}`);
if (!present) console.warn(`reference vectors are not at ${root}: the tests that need them are skipped`);

/** Path of a file of reference vectors or data, outside the repository. */
export function shared(path: string): string {
  return root + path;
}

export function readShared(path: string): string {
  return readFileSync(shared(path), 'utf8');
}

export function readSharedJson<T>(path: string): T {
  return JSON.parse(readShared(path)) as T;
}

/** `describe`, skipped where the reference vectors are absent (a user's machine); in CI absence is an error. */
export function describeWithShared(name: string, body: () => void): void {
  if (present) describe(name, body);
  // The body may read vectors while it lists its cases, so it is left out altogether.
  else describe.skip(name, () => it('needs the reference vectors', () => {}));
}
