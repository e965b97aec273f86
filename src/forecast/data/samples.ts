import { fieldOffset, type Panel } from './panel.js';

/** Samples (day, stock) of a panel, ascending by day and then by stock. Everything else is looked up in the panel. */
export interface Samples {
  readonly length: number;
  /** Calendar index t of each sample: the last day its features may see. */
  readonly day: Int32Array;
  /** Index of each sample's stock. */
  readonly stock: Int32Array;
  /** Where each distinct day begins among the samples, and behind the last one the length. */
  readonly dayStarts: Int32Array;
}

/**
 * The samples of the days `first` to `last` (calendar indices, inclusive): the members of the market that traded on that
 * day, that is, have a close and a volume above zero. History and future may have gaps; features and labels tell.
 */
export function samplesBetween(panel: Panel, first: number, last: number): Samples {
  const stocks = panel.symbols.length;
  const width = panel.fields.length;
  const close = fieldOffset(panel, 'close');
  const volume = fieldOffset(panel, 'volume');
  const isSample = (cell: number): boolean =>
    panel.members[cell] === 1 && panel.values[cell * width + close]! > 0 && panel.values[cell * width + volume]! > 0;
  let length = 0;
  for (let cell = first * stocks; cell < (last + 1) * stocks; cell++) if (isSample(cell)) length++;
  const day = new Int32Array(length);
  const stock = new Int32Array(length);
  let at = 0;
  for (let t = first; t <= last; t++) {
    for (let s = 0; s < stocks; s++) {
      if (!isSample(t * stocks + s)) continue;
      day[at] = t;
      stock[at++] = s;
    }
  }
  return { length, day, stock, dayStarts: startsOf(day) };
}

/** The samples at the positions where `keep` is true. */
export function filterSamples(samples: Samples, keep: (position: number) => boolean): Samples {
  const positions = Int32Array.from({ length: samples.length }, (_, i) => i).filter(keep);
  const day = positions.map((i) => samples.day[i]!);
  const stock = positions.map((i) => samples.stock[i]!);
  return { length: positions.length, day, stock, dayStarts: startsOf(day) };
}

function startsOf(day: Int32Array): Int32Array {
  const starts: number[] = [];
  for (let i = 0; i < day.length; i++) if (i === 0 || day[i] !== day[i - 1]) starts.push(i);
  starts.push(day.length);
  return Int32Array.from(starts);
}
