import { InputError } from '../../errors.js';
import { ALPHA158, alpha158 } from './alpha158.js';
import { rankNorm } from './labels.js';
import type { Normaliser } from './normaliser.js';
import { type Field, fieldOffset, type PricePanel, type Samples, type Strided, WindowMemory } from './panel.js';

/** What a model sees about a sample: some fields over the last days. */
export interface FeatureSpec {
  /**
   * `ohlcv`: the paper's five fields, each relative to the sample's own day. `alpha360`: qlib's six; qlib asks for vwap even
   * if the data has none, and its columns are then missing throughout (0 once normalised), here too. `alpha158`: qlib's
   * factors, not relative. `none`: only `columns`.
   */
  readonly kind: 'ohlcv' | 'alpha360' | 'alpha158' | 'none';
  /** Days L, the sample's own included. */
  readonly window: number;
  /** Factors: additional columns of the data, used directly. Default: none. */
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

/** Fields relative to those of the sample's own day; they come first. */
export function ratioCount({ kind }: FeatureSpec): number {
  return FIELDS_OF[kind].length;
}

/** Columns of the data besides prices that the features need. */
export function factorsOf({ columns = [] }: FeatureSpec): readonly string[] {
  return columns;
}

/** Requested computed features. */
function derivedWidth({ kind }: FeatureSpec): number {
  return kind === 'alpha158' ? ALPHA158.length : 0;
}

/** The panel with everything the features need besides prices and plain factors. */
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
    throw new InputError('expected some columns, because there are no other features', {
      key: 'problem.features.columns',
    });
  }
  return featureWidth(spec) * spec.window;
}

/** `time-major`: [L, B, F] for recurrent models. `flat`: [B, F·L], one row per sample. */
export type Layout = 'time-major' | 'flat';

/**
 * Writes the features of the samples at `positions` into `out`: for stock s on day t, and day d of the window,
 *
 *     price_{d,s} / close_{t,s}   or   volume_{d,s} / volume_{t,s}   or a factor
 *
 * normalised if a normaliser is given, with 0 for missing values; otherwise raw, with NaN for missing values.
 */
export function gatherFeatures(
  panel: PricePanel,
  spec: FeatureSpec,
  samples: Samples,
  positions: Int32Array,
  out: Float32Array,
  layout: Layout,
  normaliser?: Normaliser,
): void {
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
  const bases = offsets.map((offset, f) => baseOffset(panel, spec, f, offset));
  const dayStep = layout === 'time-major' ? batch * width : 1;
  const fieldStep = layout === 'time-major' ? 1 : window;
  const known = normaliser ?? identity(columns);
  const { centre, factor, clip } = known;
  const missing = normaliser === undefined ? Number.NaN : 0;
  const memory = prepared.get(panel);
  const isPrepared = memory !== undefined && memory.samplesAtOnce(columns) > 0;
  if (isPrepared) gatherPrepared(memory, panel, spec, samples, positions, out, layout, known, missing);

  const fields = isPrepared ? 0 : offsets.length;
  const { values, dayStride, stockStride } = stridesOf(panel);
  for (let b = 0; b < batch; b++) {
    const position = positions[b];
    const day = samples.day[position];
    const own = day * dayStride + samples.stock[position] * stockStride;
    const row = layout === 'time-major' ? b * width : b * columns;
    for (let f = 0; f < fields; f++) {
      const offset = offsets[f];
      // Days of the window before the panel's first day; all of them for a field the panel does not have.
      const unknown = offset < 0 ? window : Math.max(0, window - 1 - day);
      const divisor = bases[f] < 0 ? 1 : values[own + bases[f]];
      const first = f * window;
      let to = row + f * fieldStep;
      for (let l = 0; l < unknown; l++, to += dayStep) out[to] = missing;
      let from = own + offset - (window - 1 - unknown) * dayStride;
      for (let column = first + unknown; column < first + window; column++) {
        const x = (values[from] / divisor - centre[column]) * factor[column];
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

/** The same for prices and factors only, from a prepared panel. */
function gatherPrepared(
  memory: WindowMemory,
  panel: PricePanel,
  spec: FeatureSpec,
  samples: Samples,
  positions: Int32Array,
  out: Float32Array,
  layout: Layout,
  { centre, factor, clip }: Normaliser,
  missing: number,
): void {
  const { window } = spec;
  const [columns, width, batch] = [columnCount(spec), featureWidth(spec), positions.length];
  const isTimeMajor = layout === 'time-major';
  const fields = sourceOffsets(panel, spec).map((offset, f) => ({
    offset,
    base: baseOffset(panel, spec, f, offset),
    first: isTimeMajor ? f : f * window,
    column: f * window,
  }));
  const most = memory.samplesAtOnce(columns);
  for (let start = 0; start < batch; start += most) {
    const n = Math.min(most, batch - start);
    const describe = (cells: Uint32Array, days: Int32Array): void => {
      for (let b = 0; b < n; b++) {
        const position = positions[start + b];
        days[b] = samples.day[position];
        cells[b] = days[b] * memory.dayStride + samples.stock[position] * memory.stockStride;
      }
    };
    const steps = isTimeMajor ? { dayStep: n * width, rowStep: width } : { dayStep: 1, rowStep: columns };
    const there = fields.filter(({ offset }) => offset >= 0);
    const found = memory.windows(n, describe, { fields: there, window, centre, factor, clip, missing, ...steps });
    // A field the panel does not have is missing on all days.
    for (const { offset, first } of fields) {
      if (offset >= 0) continue;
      for (let b = 0; b < n; b++) {
        for (let l = 0; l < window; l++) found[b * steps.rowStep + l * steps.dayStep + first] = missing;
      }
    }
    if (!isTimeMajor || n === batch) out.set(found, start * columns);
    else {
      for (let l = 0; l < window; l++) {
        out.set(found.subarray(l * steps.dayStep, (l + 1) * steps.dayStep), (l * batch + start) * width);
      }
    }
  }
}

/** Index of the field that a feature is relative to; −1: none. */
function baseOffset(panel: PricePanel, spec: FeatureSpec, f: number, offset: number): number {
  if (f >= ratioCount(spec)) return -1;
  const volume = fieldOffset(panel, 'volume');
  return offset === volume ? volume : fieldOffset(panel, 'close');
}

function derivedAt({ derived, symbols }: PricePanel, day: number, stock: number, feature: number): number {
  if (derived === undefined) throw new RangeError('the panel has no computed features');
  const row = day < 0 ? -1 : derived.rowOf[day * symbols.length + stock];
  return row < 0 ? Number.NaN : derived.values[row * derived.names.length + feature];
}

const prepared = new WeakMap<PricePanel, WindowMemory>();

/** Where to read the windows of samples: stock by stock after `prepareWindows`, otherwise day by day. */
export function stridesOf(panel: PricePanel): Strided {
  const { values, symbols, fields } = panel;
  return prepared.get(panel) ?? { values, dayStride: symbols.length * fields.length, stockStride: fields.length };
}

/** Keeps a copy of the panel by stock for the panel's lifetime: windows are read from it several times as fast. */
export function prepareWindows(panel: PricePanel): void {
  if (prepared.has(panel)) return;
  const memory = WindowMemory.of(panel);
  if (memory !== undefined) prepared.set(panel, memory);
}

/** Writes one raw column of all samples to `out`, with NaN for missing values. */
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

/** Index of each feature's field in a cell of the panel; −1 for a field the panel does not have. */
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
