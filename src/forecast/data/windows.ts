import { type Kernels, loadKernels, MAX_PAGES, newMemory, PAGE_BYTES } from '../../kernels.js';
import type { PricePanel } from './panel.js';

/** The values of a panel and the distances in them from a day, and from a stock, to the next. */
export interface Strided {
  readonly values: Float32Array;
  readonly dayStride: number;
  readonly stockStride: number;
}

/**
 * A copy of a panel [stock][day][field], where the windows of samples from anywhere are read from one place each instead of
 * from as many as they have days, by a SIMD kernel.
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

  /** Samples whose windows of so many columns can be made at a time. */
  samplesAtOnce(columns: number): number {
    return Math.floor((ROOM - columnBytes(columns)) / (2 * WORD + columns * WORD));
  }

  /**
   * The windows of n samples, at most `samplesAtOnce`, laid out as the steps say. The array is overwritten by the next call.
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
    /** Of the field in a cell, and of the one that it is relative to; −1: as it is. */
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
