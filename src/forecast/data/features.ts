import { InputError } from '../../errors.js';
import { ALPHA158, alpha158 } from './alpha158.js';
import { rankNorm } from './labels.js';
import type { Normaliser } from './normaliser.js';
import { type Field, fieldOffset, type PricePanel, type Samples } from './panel.js';

/** What a model sees of a sample: some fields over the last days. */
export interface FeatureSpec {
  /**
   * `ohlcv`: the paper's five fields, each relative to the sample's own day. `alpha360`: qlib's six; qlib asks for vwap even
   * where the data has none, and its columns are then missing throughout (0 once normalised), here too. `alpha158`: qlib's
   * factors, as they are. `none`: `columns` alone.
   */
  readonly kind: 'ohlcv' | 'alpha360' | 'alpha158' | 'none';
  /** Days L, the sample's own included. */
  readonly window: number;
  /** Factors: further columns of the data, as they are. Default: none. */
  readonly columns?: readonly string[];
  /** Whether factors are replaced by their rank among the stocks of the day. Default false. */
  readonly rankColumns?: boolean;
}

/** The fields of each kind, in the order of its columns. */
const FIELDS_OF: Readonly<Record<FeatureSpec['kind'], readonly Field[]>> = {
  ohlcv: ['open', 'close', 'high', 'low', 'volume'],
  alpha360: ['close', 'open', 'high', 'low', 'vwap', 'volume'],
  alpha158: [],
  none: [],
};

/** Fields that are seen relative to those of the sample's own day; they come first. */
export function ratioCount({ kind }: FeatureSpec): number {
  return FIELDS_OF[kind].length;
}

/** Columns of the data besides prices that the features need. */
export function factorsOf({ columns = [] }: FeatureSpec): readonly string[] {
  return columns;
}

/** Computed features that are asked for. */
function derivedWidth({ kind }: FeatureSpec): number {
  return kind === 'alpha158' ? ALPHA158.length : 0;
}

/** The panel with what the features need besides prices and factors as they are. */
export function withFeatures(panel: PricePanel, spec: FeatureSpec): PricePanel {
  const ranked = spec.rankColumns === true ? rankedFactors(panel, factorsOf(spec)) : panel;
  return spec.kind === 'alpha158' ? { ...ranked, derived: alpha158(panel) } : ranked;
}

/** Each factor as (rank / n − 0.5) · 3.46 among the n members of the day that have it, as rank labels are. */
function rankedFactors(panel: PricePanel, factors: readonly string[]): PricePanel {
  const { calendar, symbols, fields, members } = panel;
  const values = panel.values.slice();
  for (const factor of factors) {
    const offset = fieldOffset(panel, factor);
    for (let day = 0; day < calendar.length; day++) {
      const places: number[] = [];
      for (let stock = 0; stock < symbols.length; stock++) {
        const cell = day * symbols.length + stock;
        const at = cell * fields.length + offset;
        if (members[cell] === 0) values[at] = Number.NaN;
        else if (!Number.isNaN(values[at])) places.push(at);
      }
      rankNorm(values, places);
    }
  }
  return { ...panel, values };
}

/** F, the number of values a day. */
export function featureWidth(spec: FeatureSpec): number {
  return FIELDS_OF[spec.kind].length + factorsOf(spec).length + derivedWidth(spec);
}

/**
 * Number of columns F·L of a sample. Column f·L + l is field f on day t − L + 1 + l, the oldest day first (qlib's order);
 * prices come first, then factors, then computed features.
 */
export function columnCount(spec: FeatureSpec): number {
  if (!Number.isInteger(spec.window) || spec.window < 1) {
    throw new InputError(`${spec.window} is not a window, expected 1, 2, … days`, { key: 'window' });
  }
  if (featureWidth(spec) === 0) {
    throw new InputError('expected some columns where there are no other features', {
      key: 'problem.features.columns',
    });
  }
  return featureWidth(spec) * spec.window;
}

/** `time-major`: [L, B, F] for recurrent models. `flat`: [B, F·L], a row a sample. */
export type Layout = 'time-major' | 'flat';

/**
 * Writes the features of the samples at `positions` into `out`: for stock s on day t, and day d of the window,
 *
 *     price_{d,s} / close_{t,s}   or   volume_{d,s} / volume_{t,s}   or a factor as it is
 *
 * normalised, where a normaliser is given, with 0 for what is missing; as it is, with NaN for what is missing, where not.
 */
export function gather(
  panel: PricePanel,
  spec: FeatureSpec,
  samples: Samples,
  positions: Int32Array,
  out: Float32Array,
  layout: Layout,
  normaliser?: Normaliser,
): void {
  const { values, dayStride, stockStride } = stridesOf(panel);
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
  const ratios = ratioCount(spec);
  const volume = fieldOffset(panel, 'volume');
  const close = fieldOffset(panel, 'close');
  const dayStep = layout === 'time-major' ? batch * width : 1;
  const fieldStep = layout === 'time-major' ? 1 : window;
  const { centre, factor, clip } = normaliser ?? identity(columns);
  const missing = normaliser === undefined ? Number.NaN : 0;

  for (let b = 0; b < batch; b++) {
    const position = positions[b];
    const day = samples.day[position];
    const own = day * dayStride + samples.stock[position] * stockStride;
    const row = layout === 'time-major' ? b * width : b * columns;
    for (let f = 0; f < offsets.length; f++) {
      const offset = offsets[f];
      // Days of the window before the panel's first day; all of them for a field the panel has not.
      const unknown = offset < 0 ? window : Math.max(0, window - 1 - day);
      const base = f < ratios ? values[own + (offset === volume ? volume : close)] : 1;
      const first = f * window;
      let to = row + f * fieldStep;
      for (let l = 0; l < unknown; l++, to += dayStep) out[to] = missing;
      let from = own + offset - (window - 1 - unknown) * dayStride;
      for (let column = first + unknown; column < first + window; column++) {
        const x = (values[from] / base - centre[column]) * factor[column];
        out[to] = x > clip ? clip : x >= -clip ? x : x < -clip ? -clip : missing;
        from += dayStride;
        to += dayStep;
      }
    }
    for (let f = offsets.length; f < width; f++) {
      let to = row + f * fieldStep;
      for (let l = 0; l < window; l++, to += dayStep) {
        const column = f * window + l;
        const raw = derivedAt(panel, day - window + 1 + l, samples.stock[position], f - offsets.length);
        const x = (raw - centre[column]) * factor[column];
        out[to] = x > clip ? clip : x >= -clip ? x : x < -clip ? -clip : missing;
      }
    }
  }
}

function derivedAt({ derived, symbols }: PricePanel, day: number, stock: number, feature: number): number {
  if (derived === undefined) throw new RangeError('the panel has no computed features');
  const row = day < 0 ? -1 : derived.rowOf[day * symbols.length + stock];
  return row < 0 ? Number.NaN : derived.values[row * derived.names.length + feature];
}

/** The values of a panel and the distances in them from a day, and from a stock, to the next. */
export interface Strided {
  readonly values: Float32Array;
  readonly dayStride: number;
  readonly stockStride: number;
}

const bySymbol = new WeakMap<PricePanel, Strided>();

/** Where to read the windows of samples: stock by stock once `prepareWindows` has been asked to, else day by day. */
export function stridesOf(panel: PricePanel): Strided {
  return bySymbol.get(panel) ?? byDay(panel);
}

/**
 * Keeps a copy of the panel [stock][day][field] for as long as the panel lives: windows of samples from anywhere are then
 * read from one place each instead of from as many as they have days, which is several times as fast.
 */
export function prepareWindows(panel: PricePanel): void {
  if (bySymbol.has(panel)) return;
  const { dayStride, stockStride } = byDay(panel);
  const days = panel.calendar.length;
  const width = panel.fields.length;
  const values = new Float32Array(panel.values.length);
  for (let day = 0; day < days; day++) {
    for (let stock = 0; stock < panel.symbols.length; stock++) {
      const from = day * dayStride + stock * stockStride;
      const to = (stock * days + day) * width;
      for (let f = 0; f < width; f++) values[to + f] = panel.values[from + f];
    }
  }
  bySymbol.set(panel, { values, dayStride: width, stockStride: days * width });
}

function byDay({ values, symbols, fields }: PricePanel): Strided {
  return { values, dayStride: symbols.length * fields.length, stockStride: fields.length };
}

/** One column of all samples as it is, with NaN for what is missing, into `out`. */
export function writeColumn(
  panel: PricePanel,
  spec: FeatureSpec,
  samples: Samples,
  column: number,
  out: Float32Array,
): void {
  const { values } = panel;
  const offsets = sourceOffsets(panel, spec);
  const f = Math.floor(column / spec.window);
  const daysBack = spec.window - 1 - (column % spec.window);
  if (f >= offsets.length) {
    for (let i = 0; i < samples.length; i++) {
      out[i] = derivedAt(panel, samples.day[i] - daysBack, samples.stock[i], f - offsets.length);
    }
    return;
  }
  const offset = offsets[f];
  const volume = fieldOffset(panel, 'volume');
  const baseOffset = offset === volume ? volume : fieldOffset(panel, 'close');
  const isRatio = f < ratioCount(spec);
  const cellWidth = panel.fields.length;
  const stocks = panel.symbols.length;
  for (let i = 0; i < samples.length; i++) {
    const t = samples.day[i];
    const cell = t * stocks + samples.stock[i];
    out[i] =
      offset < 0 || t < daysBack
        ? Number.NaN
        : values[(cell - daysBack * stocks) * cellWidth + offset] /
          (isRatio ? values[cell * cellWidth + baseOffset] : 1);
  }
}

/** Where each field of the features stands in a cell of the panel; −1 for a field the panel has not. */
export function sourceOffsets(panel: PricePanel, spec: FeatureSpec): readonly number[] {
  return [...FIELDS_OF[spec.kind], ...factorsOf(spec)].map((field) => fieldOffset(panel, field));
}

function identity(columns: number): Normaliser {
  return {
    centre: new Float64Array(columns),
    factor: new Float64Array(columns).fill(1),
    clip: Number.POSITIVE_INFINITY,
  };
}
