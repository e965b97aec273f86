import { InputError } from '../../errors.js';
import type { Normaliser } from './normaliser.js';
import { type Field, fieldOffset, type Panel } from './panel.js';
import type { Samples } from './samples.js';

/** What a model sees of a sample: some fields over the last days, each relative to the sample's own day. */
export interface FeatureSpec {
  /**
   * `ohlcv`: the paper's five fields. `alpha360`: qlib's six; qlib asks for vwap even where the data has none, and its
   * columns are then missing throughout (0 once normalised), here too.
   */
  readonly kind: 'ohlcv' | 'alpha360';
  /** Days L, the sample's own included. Default 60. */
  readonly window: number;
}

/** The fields of each kind, in the order of its columns. */
const FIELDS_OF: Readonly<Record<FeatureSpec['kind'], readonly Field[]>> = {
  ohlcv: ['open', 'close', 'high', 'low', 'volume'],
  alpha360: ['close', 'open', 'high', 'low', 'vwap', 'volume'],
};

/** F, the number of values a day. */
export function featureWidth(spec: FeatureSpec): number {
  return FIELDS_OF[spec.kind].length;
}

/** Number of columns F·L of a sample. Column f·L + l is field f on day t − L + 1 + l, the oldest day first (qlib's order). */
export function columnCount(spec: FeatureSpec): number {
  if (!Number.isInteger(spec.window) || spec.window < 1) {
    throw new InputError(`${spec.window} is not a window, expected 1, 2, … days`, { key: 'window' });
  }
  return featureWidth(spec) * spec.window;
}

/** `time-major`: [L, B, F] for recurrent models. `flat`: [B, F·L], a row a sample. */
export type Layout = 'time-major' | 'flat';

/**
 * Writes the features of the samples at `positions` into `out`: for stock s on day t, and day d of the window,
 *
 *     price_{d,s} / close_{t,s}    or    volume_{d,s} / volume_{t,s}
 *
 * normalised, where a normaliser is given, with 0 for what is missing; as it is, with NaN for what is missing, where not.
 */
export function gather(
  panel: Panel,
  spec: FeatureSpec,
  samples: Samples,
  positions: Int32Array,
  out: Float32Array,
  layout: Layout,
  normaliser?: Normaliser,
): void {
  const { values, dayStride, stockStride } = bySymbol.get(panel) ?? byDay(panel);
  const window = spec.window;
  const columns = columnCount(spec);
  const width = featureWidth(spec);
  const batch = positions.length;
  if (out.length < batch * columns)
    throw new RangeError(`${batch} samples of ${columns} columns do not fit into ${out.length}`);
  if (normaliser !== undefined && normaliser.centre.length !== columns) {
    throw new InputError(`the normaliser has ${normaliser.centre.length} columns, the features ${columns}`, {
      key: 'features',
    });
  }
  const offsets = sourceOffsets(panel, spec);
  const volume = fieldOffset(panel, 'volume');
  const close = fieldOffset(panel, 'close');
  const dayStep = layout === 'time-major' ? batch * width : 1;
  const fieldStep = layout === 'time-major' ? 1 : window;
  const { centre, factor, clip } = normaliser ?? identity(columns);
  const missing = normaliser === undefined ? Number.NaN : 0;

  for (let b = 0; b < batch; b++) {
    const position = positions[b]!;
    const day = samples.day[position]!;
    const own = day * dayStride + samples.stock[position]! * stockStride;
    const row = layout === 'time-major' ? b * width : b * columns;
    for (let f = 0; f < width; f++) {
      const offset = offsets[f]!;
      // Days of the window before the panel's first day; all of them for a field the panel has not.
      const unknown = offset < 0 ? window : Math.max(0, window - 1 - day);
      const base = values[own + (offset === volume ? volume : close)]!;
      const first = f * window;
      let to = row + f * fieldStep;
      for (let l = 0; l < unknown; l++, to += dayStep) out[to] = missing;
      let from = own + offset - (window - 1 - unknown) * dayStride;
      for (let column = first + unknown; column < first + window; column++) {
        const x = (values[from]! / base - centre[column]!) * factor[column]!;
        out[to] = x > clip ? clip : x >= -clip ? x : x < -clip ? -clip : missing;
        from += dayStride;
        to += dayStep;
      }
    }
  }
}

/** The values of a panel and the distances in them from a day, and from a stock, to the next. */
interface Strided {
  readonly values: Float32Array;
  readonly dayStride: number;
  readonly stockStride: number;
}

const bySymbol = new WeakMap<Panel, Strided>();

/**
 * Keeps a copy of the panel [stock][day][field] for as long as the panel lives: windows of samples from anywhere are then
 * read from one place each instead of from as many as they have days, which is several times as fast.
 */
export function prepareWindows(panel: Panel): void {
  if (bySymbol.has(panel)) return;
  const { dayStride, stockStride } = byDay(panel);
  const days = panel.calendar.length;
  const width = panel.fields.length;
  const values = new Float32Array(panel.values.length);
  for (let day = 0; day < days; day++) {
    for (let stock = 0; stock < panel.symbols.length; stock++) {
      const from = day * dayStride + stock * stockStride;
      const to = (stock * days + day) * width;
      for (let f = 0; f < width; f++) values[to + f] = panel.values[from + f]!;
    }
  }
  bySymbol.set(panel, { values, dayStride: width, stockStride: days * width });
}

function byDay({ values, symbols, fields }: Panel): Strided {
  return { values, dayStride: symbols.length * fields.length, stockStride: fields.length };
}

/**
 * One column (see `columnCount`) of all samples, missing values left out, into `out`.
 * @returns how many values there are
 */
export function gatherColumn(
  panel: Panel,
  spec: FeatureSpec,
  samples: Samples,
  column: number,
  out: Float32Array,
): number {
  writeColumn(panel, spec, samples, column, out);
  let length = 0;
  for (let i = 0; i < samples.length; i++) if (!Number.isNaN(out[i]!)) out[length++] = out[i]!;
  return length;
}

/** One column of all samples as it is, with NaN for what is missing, into `out`. */
export function writeColumn(
  panel: Panel,
  spec: FeatureSpec,
  samples: Samples,
  column: number,
  out: Float32Array,
): void {
  const { values } = panel;
  const offset = sourceOffsets(panel, spec)[Math.floor(column / spec.window)]!;
  const daysBack = spec.window - 1 - (column % spec.window);
  const volume = fieldOffset(panel, 'volume');
  const baseOffset = offset === volume ? volume : fieldOffset(panel, 'close');
  const cellWidth = panel.fields.length;
  const stocks = panel.symbols.length;
  for (let i = 0; i < samples.length; i++) {
    const t = samples.day[i]!;
    const cell = t * stocks + samples.stock[i]!;
    out[i] =
      offset < 0 || t < daysBack
        ? Number.NaN
        : values[(cell - daysBack * stocks) * cellWidth + offset]! / values[cell * cellWidth + baseOffset]!;
  }
}

/** Where each field of the features stands in a cell of the panel; −1 for a field the panel has not. */
function sourceOffsets(panel: Panel, spec: FeatureSpec): readonly number[] {
  return FIELDS_OF[spec.kind].map((field) => fieldOffset(panel, field));
}

function identity(columns: number): Normaliser {
  return {
    centre: new Float64Array(columns),
    factor: new Float64Array(columns).fill(1),
    clip: Number.POSITIVE_INFINITY,
  };
}
