import { InputError, type Where } from '../errors.js';
import type { Source } from '../run/config/sources.js';

/**
 * A key with dots and its value as a layer of a training configuration. `from` is where the value stands in the grid:
 * mistakes in it are told with the line there.
 */
export function settingLayer(key: string, value: unknown, from: string, places: Source['places']): Source {
  const place = places.get(from) ?? {};
  const words = key.split('.');
  if (words.some((word) => word === '' || word === '__proto__')) {
    throw new InputError('expected a key of the training configuration, with dots between its parts', {
      ...place,
      key: from,
    });
  }
  const owner = OWNED[key];
  if (owner !== undefined) throw new InputError(`${key} is not set like this, ${owner}`, { ...place, key: from });

  const own = new Map<string, Where>();
  for (const [i] of words.entries()) own.set(words.slice(0, i + 1).join('.'), place);
  for (const [known, where] of places) if (known.startsWith(`${from}.`)) own.set(key + known.slice(from.length), where);
  const values = words.reduceRight<unknown>((inner, word) => ({ [word]: inner }), value);
  return { values: values as Record<string, unknown>, places: own };
}

/** The layers of a map of keys to values; `at` is its key in the grid. */
export function settingLayers(
  settings: Readonly<Record<string, unknown>>,
  at: string,
  places: Source['places'],
): Source[] {
  return Object.entries(settings).map(([key, value]) => settingLayer(key, value, `${at}.${key}`, places));
}

/** Keys that a sweep gives to each run itself, and how they are to be said instead. */
const OWNED: Readonly<Record<string, string>> = {
  seed: 'expected it under seeds',
  name: 'the sweep names its runs',
  out: 'expected it beside base, for the whole sweep',
};
