import { InputError } from '../../errors.js';
import { type Kernels, loadKernels, MAX_PAGES, newMemory, PAGE_BYTES } from '../../kernels.js';
import { Random, type RandomState } from '../../random.js';

/** What is known about a stock on a day. Prices are adjusted for splits and dividends; `vwap` is optional in every source. */
export type Field = 'open' | 'high' | 'low' | 'close' | 'volume' | 'vwap';

/** The fields every source must have, in the order they have in a panel. */
export const FIELDS = ['open', 'high', 'low', 'close', 'volume'] as const satisfies readonly Field[];

/** Whether a field is a price; the others are the volume and factors. */
export function isPrice(field: string): boolean {
  return PRICES.has(field);
}

const PRICES: ReadonlySet<string> = new Set(['open', 'high', 'low', 'close', 'vwap']);

/** Daily prices of a market: one block of memory, read by every feature, label and backtest and never written. */
export interface PricePanel {
  /** Trading days `YYYY-MM-DD`, strictly ascending. */
  readonly calendar: readonly string[];
  /** Stock codes, ascending by code point. */
  readonly symbols: readonly string[];
  /** `FIELDS` (only the volume may be absent), then `vwap` if the source has it, then additional factors. */
  readonly fields: readonly string[];
  /** [day][stock][field]; NaN if nothing is known (suspended, not yet listed, delisted). */
  readonly values: Float32Array;
  /** [day][stock]; 1 where the stock belongs to the market on that day. */
  readonly members: Uint8Array;
  /** The index that the market is compared with, if the source has one. */
  readonly index?: IndexSeries;
  /** Features computed from prices, if a model needs them. */
  readonly derived?: DerivedFeatures;
}

/** Values of some cells of a panel, computed from its prices. */
export interface DerivedFeatures {
  readonly names: readonly string[];
  /** [day][stock]; number of the row in `values`, −1 for none. */
  readonly rowOf: Int32Array;
  /** [row][name]; NaN if unknown. */
  readonly values: Float32Array;
}

export interface IndexSeries {
  readonly symbol: string;
  /** [day]; NaN if unknown. */
  readonly close: Float32Array;
}

/** Position of `field` within a cell of the panel; −1 when the panel has no such field. */
export function fieldOffset(panel: Pick<PricePanel, 'fields'>, field: string): number {
  return panel.fields.indexOf(field);
}

/** One value of the panel; for loops over many values compute the offset once instead. */
export function valueAt(panel: PricePanel, day: number, stock: number, field: string): number {
  const offset = fieldOffset(panel, field);
  if (offset < 0) return Number.NaN;
  return panel.values[(day * panel.symbols.length + stock) * panel.fields.length + offset];
}

/** The size of a panel, for a log. */
export interface PanelSummary {
  readonly days: number;
  readonly first: string;
  readonly last: string;
  readonly stocks: number;
  /** Pairs of a day and a stock that belongs to the market on it. */
  readonly memberDays: number;
  /** Share of them without a close: suspensions, and members not listed yet or no more. */
  readonly withoutClose: number;
}

/** Counts what a panel holds. */
export function summarise(panel: PricePanel): PanelSummary {
  const close = fieldOffset(panel, 'close');
  let memberDays = 0;
  let missing = 0;
  for (let cell = 0; cell < panel.members.length; cell++) {
    if (panel.members[cell] === 0) continue;
    memberDays++;
    if (Number.isNaN(panel.values[cell * panel.fields.length + close])) missing++;
  }
  return {
    days: panel.calendar.length,
    first: panel.calendar[0],
    last: panel.calendar.at(-1)!,
    stocks: panel.symbols.length,
    memberDays,
    withoutClose: missing / memberDays,
  };
}

/** Samples (day, stock) of a panel, ascending by day and then by stock. Everything else is looked up in the panel. */
export interface Samples {
  readonly length: number;
  /** Calendar index t of each sample: the last day its features may see. */
  readonly day: Int32Array;
  /** Index of each sample's stock. */
  readonly stock: Int32Array;
  /** Where each distinct day begins among the samples, followed by the length. */
  readonly dayStarts: Int32Array;
}

/**
 * The samples of the days `first` to `last` (calendar indices, inclusive): the members of the market that traded on
 * that day, that is, have a close and, if volumes are known, a volume above zero. History and future may have gaps,
 * which features and labels show.
 */
export function samplesBetween(panel: PricePanel, first: number, last: number): Samples {
  const stocks = panel.symbols.length;
  const width = panel.fields.length;
  const close = fieldOffset(panel, 'close');
  const volume = fieldOffset(panel, 'volume');
  const isSample = (cell: number): boolean =>
    panel.members[cell] === 1 &&
    panel.values[cell * width + close] > 0 &&
    (volume < 0 || panel.values[cell * width + volume] > 0);
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
  const day = positions.map((i) => samples.day[i]);
  const stock = positions.map((i) => samples.stock[i]);
  return { length: positions.length, day, stock, dayStarts: startsOf(day) };
}

function startsOf(day: Int32Array): Int32Array {
  const starts: number[] = [];
  for (let i = 0; i < day.length; i++) if (i === 0 || day[i] !== day[i - 1]) starts.push(i);
  starts.push(day.length);
  return Int32Array.from(starts);
}

/** How samples are grouped into batches: `size` samples from anywhere, or the samples of `days` whole days (for GAT). */
export type BatchPlan = { readonly size: number } | { readonly days: number };

/** Position of a stream of batches; plain JSON. */
export interface BatchSamplerState {
  /** The generator before the current epoch was shuffled. */
  readonly random: RandomState;
  readonly epoch: number;
  /** Units (samples or days) of the current epoch already returned. */
  readonly taken: number;
}

/**
 * An endless stream of training batches: each epoch goes through all samples once in a new random order; the last batch
 * of an epoch may be smaller. A batch is the positions of its samples.
 */
export class BatchSampler {
  private readonly samples: Samples;
  private readonly plan: BatchPlan;
  private readonly random: Random;
  /** What is shuffled: positions of samples, or indices of days. */
  private readonly order: Int32Array;
  private atEpochStart: RandomState;
  private finished: number;
  private taken: number;

  constructor(samples: Samples, plan: BatchPlan, random: Random, state?: BatchSamplerState) {
    const wanted = 'size' in plan ? plan.size : plan.days;
    const key = 'size' in plan ? 'batch.size' : 'batch.days';
    if (!Number.isInteger(wanted) || wanted < 1)
      throw new InputError(`${wanted} is not a positive whole number`, { key });
    this.samples = samples;
    this.plan = plan;
    this.order = new Int32Array('size' in plan ? samples.length : samples.dayStarts.length - 1);
    if (this.order.length === 0) throw new InputError('there is no sample to make batches of');
    if (state !== undefined && !(state.taken >= 0 && state.taken <= this.order.length)) {
      throw new InputError(`the saved position ${state.taken} lies outside the ${this.order.length} units of an epoch`);
    }
    this.random = state === undefined ? random : Random.restore(state.random);
    this.atEpochStart = this.random.state();
    this.finished = state?.epoch ?? 0;
    this.taken = state?.taken ?? 0;
    this.shuffle();
  }

  /** Epochs completed. An epoch is completed by the batch that takes its last sample. */
  get epoch(): number {
    return this.taken === this.order.length ? this.finished + 1 : this.finished;
  }

  get batchesPerEpoch(): number {
    return Math.ceil(this.order.length / ('size' in this.plan ? this.plan.size : this.plan.days));
  }

  /** Positions of the next batch's samples; the caller owns the array. */
  next(): Int32Array {
    if (this.taken === this.order.length) {
      this.finished++;
      this.taken = 0;
      this.atEpochStart = this.random.state();
      this.shuffle();
    }
    const count = 'size' in this.plan ? this.plan.size : this.plan.days;
    const units = this.order.slice(this.taken, this.taken + count);
    this.taken += units.length;
    return 'size' in this.plan ? units : positionsOfDays(this.samples, units);
  }

  state(): BatchSamplerState {
    return { random: this.atEpochStart, epoch: this.finished, taken: this.taken };
  }

  /** Each epoch starts from the ordered list, so its order depends only on the generator's state. */
  private shuffle(): void {
    for (let i = 0; i < this.order.length; i++) this.order[i] = i;
    this.random.shuffle(this.order);
  }
}

/** All positions in order, `size` at a time: for evaluation. */
export function* chunks(samples: Samples, size: number): Generator<Int32Array> {
  for (let from = 0; from < samples.length; from += size) {
    yield Int32Array.from({ length: Math.min(size, samples.length - from) }, (_, i) => from + i);
  }
}

/** The positions day by day: to evaluate models that see a day at once. */
export function* dayChunks(samples: Samples): Generator<Int32Array> {
  for (let d = 0; d + 1 < samples.dayStarts.length; d++) yield positionsOfDays(samples, Int32Array.of(d));
}

function positionsOfDays(samples: Samples, days: Int32Array): Int32Array {
  const starts = samples.dayStarts;
  let length = 0;
  for (const d of days) length += starts[d + 1] - starts[d];
  const positions = new Int32Array(length);
  let at = 0;
  for (const d of days) for (let i = starts[d]; i < starts[d + 1]; i++) positions[at++] = i;
  return positions;
}

/** The values of a panel and the distances in them from a day, and from a stock, to the next. */
export interface Strided {
  readonly values: Float32Array;
  readonly dayStride: number;
  readonly stockStride: number;
}

/**
 * A copy of a panel [stock][day][field], in which the window of any sample is contiguous instead of
 * spread over its days, and is read by a SIMD kernel.
 */
export class WindowMemory implements Strided {
  readonly values: Float32Array;
  readonly dayStride: number;
  readonly stockStride: number;
  private readonly kernels: Kernels;
  private readonly buffer: ArrayBuffer;
  /** Where the room for samples and their windows begins, in bytes. */
  private readonly room: number;

  private constructor(panel: PricePanel) {
    const [days, width] = [panel.calendar.length, panel.fields.length];
    const stocks = panel.symbols.length;
    this.room = roomFrom(panel);
    const memory = newMemory(this.room + ROOM);
    this.kernels = loadKernels(memory);
    this.buffer = memory.buffer;
    this.values = new Float32Array(this.buffer, 0, panel.values.length);
    this.dayStride = width;
    this.stockStride = days * width;
    for (let day = 0; day < days; day++) {
      for (let stock = 0; stock < stocks; stock++) {
        const from = (day * stocks + stock) * width;
        const to = (stock * days + day) * width;
        for (let f = 0; f < width; f++) this.values[to + f] = panel.values[from + f];
      }
    }
  }

  /** Undefined for a panel that is larger than a memory can be. */
  static of(panel: PricePanel): WindowMemory | undefined {
    return roomFrom(panel) + ROOM > MAX_PAGES * PAGE_BYTES ? undefined : new WindowMemory(panel);
  }

  /** Number of samples whose windows of this many columns can be made at a time. */
  samplesAtOnce(columns: number): number {
    return Math.floor((ROOM - columnBytes(columns)) / (2 * WORD + columns * WORD));
  }

  /**
   * The windows of n samples, at most `samplesAtOnce`, laid out by the given steps. The array is overwritten by the
   * next call.
   *
   * @param describe writes where the own cell of each sample begins in `values`, and its day
   */
  windows(n: number, describe: (cells: Uint32Array, days: Int32Array) => void, wanted: WantedWindows): Float32Array {
    const { fields, window, centre, factor, clip, missing, dayStep, rowStep } = wanted;
    const centres = this.room;
    const factors = centres + columnBytes(centre.length) / 2;
    const places = centres + columnBytes(centre.length);
    const days = places + n * WORD;
    const out = days + n * WORD;
    new Float64Array(this.buffer, centres, centre.length).set(centre);
    new Float64Array(this.buffer, factors, factor.length).set(factor);
    describe(new Uint32Array(this.buffer, places, n), new Int32Array(this.buffer, days, n));
    const found = new Float32Array(this.buffer, out, n * centre.length);
    for (const { offset, base, first, column } of fields) {
      this.kernels.normalisedWindows(
        0,
        places,
        days,
        n,
        this.dayStride,
        window,
        offset,
        base,
        centres + column * 2 * WORD,
        factors + column * 2 * WORD,
        clip,
        missing,
        out + first * WORD,
        dayStep,
        rowStep,
      );
    }
    return found;
  }
}

/** What windows are made of, and where their values go. */
export interface WantedWindows {
  readonly fields: readonly {
    /** Offsets of the field in a cell and of the one it is relative to; −1: not relative. */
    readonly offset: number;
    readonly base: number;
    /** Where its values begin in the result of a sample, and its columns in the normaliser. */
    readonly first: number;
    readonly column: number;
  }[];
  readonly window: number;
  readonly centre: Float64Array;
  readonly factor: Float64Array;
  readonly clip: number;
  readonly missing: number;
  /** Elements from a day, and from a sample, to the next. */
  readonly dayStep: number;
  readonly rowStep: number;
}

const WORD = 4;
/** Bytes for samples and their windows: 800 samples of 300 columns. */
const ROOM = 1 << 20;

/** Centres and factors, with a place more, as the kernel reads two at a time. */
function columnBytes(columns: number): number {
  return 2 * (columns + 1) * 2 * WORD;
}

function roomFrom({ values }: PricePanel): number {
  return 8 * Math.ceil((values.length * WORD) / 8);
}
