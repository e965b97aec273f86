import { type FeatureSpec, ratioCount, sourceOffsets, stridesOf, writeColumn } from './features.js';
import { MedianMemory } from './median.js';
import { fieldOffset, type PricePanel, type Samples } from './panel.js';

/**
 * The columns (see `columnCount`) of all samples, read one after the other into a memory where their medians are found.
 * Samples come stock by stock, in stretches of days that follow each other.
 */
export class Columns {
  private readonly memory: MedianMemory;
  private readonly stretches: Stretches;
  private readonly offsets: readonly number[];
  /** Series [stock][day] in the memory: the field that was read last, and what it is relative to. */
  private readonly field: Series;
  private readonly base: Series;

  constructor(
    private readonly panel: PricePanel,
    private readonly spec: FeatureSpec,
    private readonly samples: Samples,
  ) {
    const cells = panel.calendar.length * panel.symbols.length;
    this.memory = new MedianMemory(samples.length, 2 * cells);
    this.stretches = stretchesOf(panel, samples);
    this.offsets = sourceOffsets(panel, spec);
    this.field = { values: this.memory.besides.subarray(0, cells), offset: undefined };
    this.base = { values: this.memory.besides.subarray(cells), offset: undefined };
  }

  /** Reads a column, missing values left out; returns how many there are. */
  read(column: number): number {
    const { memory, panel, spec, samples, offsets } = this;
    const field = Math.floor(column / spec.window);
    if (field >= offsets.length) {
      writeColumn(panel, spec, samples, column, memory.values);
      return memory.keepKnown(samples.length);
    }
    const offset = offsets[field];
    if (offset < 0) return memory.keepKnown(0);
    const volume = fieldOffset(panel, 'volume');
    const ownDay = offset === volume ? volume : fieldOffset(panel, 'close');
    this.fill(this.field, offset);
    this.fill(this.base, field < ratioCount(spec) ? ownDay : NOTHING);
    const daysBack = spec.window - 1 - (column % spec.window);
    const { starts, days, lengths } = this.stretches;
    memory.clear();
    for (let i = 0; i < starts.length; i++) {
      const early = Math.max(0, daysBack - days[i]);
      if (early >= lengths[i]) continue;
      const cell = starts[i] + early;
      memory.addRatios(this.field.values, cell - daysBack, this.base.values, cell, lengths[i] - early);
    }
    return memory.length;
  }

  /** Of the column that was read last, or of its deviations. */
  median(): number {
    return this.memory.median();
  }

  /** Replaces the values of the column by their distances from the centre. */
  deviate(centre: number): void {
    this.memory.deviate(centre);
  }

  private fill(series: Series, offset: number): void {
    if (series.offset === offset) return;
    series.offset = offset;
    if (offset === NOTHING) {
      series.values.fill(1);
      return;
    }
    const { values, dayStride, stockStride } = stridesOf(this.panel);
    const days = this.panel.calendar.length;
    for (let stock = 0; stock < this.panel.symbols.length; stock++) {
      let from = stock * stockStride + offset;
      for (let day = 0; day < days; day++, from += dayStride) series.values[stock * days + day] = values[from];
    }
  }
}

interface Series {
  readonly values: Float32Array;
  /** Of the field in a cell of the panel. */
  offset: number | undefined;
}

/** In the place of an offset: values are as they are. */
const NOTHING = -1;

/** Samples of one stock on days that follow each other: where they begin in a series [stock][day], their first day. */
interface Stretches {
  readonly starts: Int32Array;
  readonly days: Int32Array;
  readonly lengths: Int32Array;
}

function stretchesOf({ calendar, symbols }: PricePanel, samples: Samples): Stretches {
  const days = calendar.length;
  const isSample = new Uint8Array(days * symbols.length);
  for (let i = 0; i < samples.length; i++) isSample[samples.stock[i] * days + samples.day[i]] = 1;
  const starts: number[] = [];
  const lengths: number[] = [];
  for (let cell = 0; cell < isSample.length; cell++) {
    if (isSample[cell] === 0) continue;
    const follows = cell % days > 0 && isSample[cell - 1] === 1;
    if (follows) lengths[lengths.length - 1]++;
    else {
      starts.push(cell);
      lengths.push(1);
    }
  }
  return {
    starts: Int32Array.from(starts),
    days: Int32Array.from(starts, (cell) => cell % days),
    lengths: Int32Array.from(lengths),
  };
}
