import { InputError, type Where } from '../errors.js';
import { isRecord } from '../run/config/key-schema.js';
import type { Source } from '../run/config/sources.js';

/** Keys of the training configuration and the values that each takes in turn: a list, or a map of labels to values. */
export type Axes = Readonly<Record<string, readonly unknown[] | Readonly<Record<string, unknown>>>>;

/** One value for each axis. */
export interface Point {
  /** Short name of each axis, and label of its value. */
  readonly labels: Readonly<Record<string, string>>;
  /** What is laid over the training configuration. */
  readonly layers: readonly Source[];
}

/**
 * Every combination of the values of some axes, the last axis changing fastest. `at` is their key in the grid; `names`
 * are the short names of their keys.
 */
export function combinations(
  axes: Axes,
  names: ReadonlyMap<string, string>,
  at: string,
  places: Source['places'],
): Point[] {
  return Object.entries(axes).reduce<Point[]>(
    (points, [key, values]) => {
      const options = labelled(values, `${at}.${key}`, places).map(({ label, value, from }) => ({
        label,
        layer: settingLayer(key, value, from, places),
      }));
      return points.flatMap((point) =>
        options.map(({ label, layer }) => ({
          labels: { ...point.labels, [names.get(key)!]: label },
          layers: [...point.layers, layer],
        })),
      );
    },
    [{ labels: {}, layers: [] }],
  );
}

/** How many combinations there are. */
export function countCombinations(axes: Axes): number {
  return Object.values(axes).reduce((product, values) => product * Object.keys(values).length, 1);
}

/** As few of the last words of each key as tell it from the others; `strategy.name` is called `strategy`. */
export function axisNames(keys: readonly string[]): Map<string, string> {
  const words = keys.map((key) => key.replace(/\.(name|kind|preset)$/, '').split('.'));
  return new Map(
    words.map((own, axis) => {
      for (let count = 1; count <= own.length; count++) {
        const short = own.slice(-count).join('.');
        const alike = words.filter((other) => other.slice(-count).join('.') === short);
        if (alike.length === 1) return [keys[axis], short];
      }
      return [keys[axis], keys[axis]];
    }),
  );
}

function labelled(values: Axes[string], at: string, places: Source['places']) {
  const isList = Array.isArray(values);
  const options = Object.entries(values).map(([index, value]) => {
    const from = `${at}.${index}`;
    const label = isList ? labelOf(value) : index;
    if (label !== undefined) return { label: label.replaceAll(/[^\w.+-]+/g, '-'), value, from };
    throw new InputError('a map needs a label: write the values as a map of labels to values', {
      ...places.get(from),
      key: from,
    });
  });
  for (const [i, { label, from }] of options.entries()) {
    if (options.findIndex((other) => other.label === label) === i) continue;
    const sentence = `two values are called ${JSON.stringify(label)}; each needs its own label`;
    throw new InputError(sentence, { ...places.get(from), key: from });
  }
  if (options.length === 0) throw new InputError('expected at least one value', { ...places.get(at), key: at });
  return options;
}

function labelOf(value: unknown): string | undefined {
  if (isRecord(value)) return undefined;
  if (!Array.isArray(value)) return String(value);
  if (value.length === 0) return 'none';
  const items = value.map(labelOf);
  return items.includes(undefined) ? undefined : items.join('+');
}

/**
 * A key with dots and its value as a layer of a training configuration. `from` is where the value stands in the grid:
 * errors name that line.
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
