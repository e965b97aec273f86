import { isDeepStrictEqual } from 'node:util';
import { stringify } from 'yaml';
import { dotted, isRecord } from './key-schema.js';

/** A dotted key at which two configurations differ; `undefined` where one of them lacks it. */
export interface Difference {
  readonly key: string;
  readonly a: unknown;
  readonly b: unknown;
}

/** The keys at which two configurations differ, down to single values; a list is compared as a whole. */
export function differences(a: unknown, b: unknown, path = ''): Difference[] {
  if (isRecord(a) && isRecord(b)) {
    const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])];
    return keys.flatMap((key) => differences(a[key], b[key], dotted(path, key)));
  }
  return isDeepStrictEqual(a, b) ? [] : [{ key: path, a, b }];
}

/** The configuration as YAML, every default filled in: what a run folder keeps. */
export function resolvedYaml(config: unknown): string {
  return stringify(config, { lineWidth: 0 });
}
