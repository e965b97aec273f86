import { join } from 'node:path';
import { writeFileAtomic } from '../files.js';
import { type Panel, type Samples, summarise } from './data/index.js';
import type { DataSet } from './data-set.js';

/** Writes what a run has learned from, and what was noticed while reading it, to `data.json` in its folder. */
export function writeDataSummary(folder: string, data: DataSet): void {
  const { panel, notes, horizons, main, features, train, validation, test } = data;
  const summary = {
    panel: summarise(panel),
    features,
    horizons,
    main: horizons[main],
    parts: {
      train: extent(panel, train.samples),
      validation: extent(panel, validation.samples),
      test: extent(panel, test.samples),
    },
    notes,
    symbols: panel.symbols,
  };
  writeFileAtomic(join(folder, 'data.json'), `${JSON.stringify(summary, null, 1)}\n`);
}

function extent({ calendar }: Panel, { length, day, dayStarts }: Samples) {
  return { samples: length, days: dayStarts.length - 1, first: calendar[day[0]], last: calendar[day[length - 1]] };
}
