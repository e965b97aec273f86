import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { InputError } from './errors.js';

/** Path of a file that the build makes, given relative to `dist/`: also when the sources run directly, as in tests. */
export function builtFile(path: string): string {
  const places = [`./${path}`, `../dist/${path}`].map((place) => fileURLToPath(new URL(place, import.meta.url)));
  const found = places.find((place) => existsSync(place));
  if (found === undefined) {
    throw new InputError('a compiled part is missing; make it with "npm run build"', { file: places[0] });
  }
  return found;
}
