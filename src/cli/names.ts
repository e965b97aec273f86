import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { InputError } from '../errors.js';
import { nearest } from '../run/config/load.js';
import { isRun } from '../run/folder.js';

/** The configurations that come with the tool. */
const SHIPPED = fileURLToPath(new URL('../../configs', import.meta.url));

/** The trained model that comes with the tool, as a run folder that is only read; `npm run model` makes it. */
export const builtInModel = {
  folder: fileURLToPath(new URL('../../models/verb-final', import.meta.url)),
  about: 'trained on a made-up language: English with the verb at the end into plain English, 85 words',
} as const;

/** Path of a configuration that comes with the tool, by its name: `toy`, `known/series-noise`, `sweeps/stock-smoke`. */
export function shippedConfig(name: string): string {
  return join(SHIPPED, `${name}.yaml`);
}

/** The file that is meant: a path, or the name of a shipped configuration (of a sweep, where `under` says so). */
export function configFile(given: string, under = ''): string {
  if (existsSync(given)) return given;
  const shipped = shippedConfig(join(under, given));
  if (extname(given) === '' && existsSync(shipped)) return shipped;
  const names = shippedNames(under);
  const near = nearestFile(given) ?? nearest(basename(given, extname(given)), names);
  const hint = near === undefined ? `; the shipped ones are ${names.join(', ')}` : `; did you mean ${near}?`;
  throw new InputError(`the configuration file ${given} cannot be read: does not exist${hint}`);
}

/** The run folder: a path, or its name in `runs`. Anything else is left to the code that opens it. */
export function runFolder(given: string): string {
  if (existsSync(given)) return given;
  const named = join('runs', given);
  if (isRun(named)) return named;
  const near = nearestFile(given) ?? nearestFile(named);
  if (near === undefined) return given;
  throw new InputError(`there is no such run; did you mean ${near}?`, { file: given });
}

function shippedNames(under: string): string[] {
  return readdirSync(join(SHIPPED, under))
    .filter((name) => name.endsWith('.yaml') && name !== 'reference.yaml')
    .map((name) => basename(name, '.yaml'));
}

/** What a typo could have turned into the path: another entry of its folder, or of a similar folder. */
export function nearestFile(path: string): string | undefined {
  const [folder, name] = [dirname(path), basename(path)];
  if (!isFolder(folder)) {
    const near = folder === '.' ? undefined : nearestFile(folder);
    return near !== undefined && existsSync(join(near, name)) ? join(near, name) : undefined;
  }
  const near = nearest(name, readdirSync(folder));
  return near === undefined ? undefined : join(folder, near);
}

function isFolder(path: string): boolean {
  return existsSync(path) && statSync(path).isDirectory();
}
