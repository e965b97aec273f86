import { type DerivedFeatures, fieldOffset, type PricePanel } from './panel.js';

/** Days of the rolling features. */
const WINDOWS = [5, 10, 20, 30, 60] as const;

const BAR = ['KMID', 'KLEN', 'KMID2', 'KUP', 'KUP2', 'KLOW', 'KLOW2', 'KSFT', 'KSFT2'];
const PRICE = ['OPEN0', 'HIGH0', 'LOW0', 'VWAP0'];
const ROLLING = [
  ...['ROC', 'MA', 'STD', 'BETA', 'RSQR', 'RESI', 'MAX', 'MIN', 'QTLU', 'QTLD', 'RANK', 'RSV', 'IMAX', 'IMIN', 'IMXD'],
  ...['CORR', 'CORD', 'CNTP', 'CNTN', 'CNTD', 'SUMP', 'SUMN', 'SUMD', 'VMA', 'VSTD', 'WVMA', 'VSUMP', 'VSUMN', 'VSUMD'],
];

/** The names of qlib's Alpha158, in its order. */
export const ALPHA158: readonly string[] = [
  ...BAR,
  ...PRICE,
  ...ROLLING.flatMap((name) => WINDOWS.map((days) => `${name}${days}`)),
];

const EPSILON = 1e-12;

/**
 * qlib's Alpha158 of every day on which a stock belongs to the market and has a close: nine shapes of the day's bar, four
 * prices relative to the close, and 29 features of the close c, the high h, the low l and the volume v over the last d days,
 * d = 5, 10, 20, 30, 60. Days before a stock is listed are not part of a window; days without a price are left out of means,
 * deviations and regressions, and are neither the highest nor the lowest (qlib treats a missing price as both).
 */
export function alpha158(panel: PricePanel): DerivedFeatures {
  const { calendar, symbols, members, fields, values } = panel;
  const [days, stocks] = [calendar.length, symbols.length];
  const offsets = ['open', 'high', 'low', 'close', 'volume', 'vwap'].map((field) => fieldOffset(panel, field));
  const series = offsets.map(() => new Float64Array(days));
  const rowOf = new Int32Array(days * stocks).fill(-1);
  let rows = 0;
  for (let cell = 0; cell < days * stocks; cell++) {
    if (members[cell] === 1 && values[cell * fields.length + offsets[3]] > 0) rowOf[cell] = rows++;
  }
  const table = new Float32Array(rows * ALPHA158.length);
  for (let stock = 0; stock < stocks; stock++) {
    for (const [s, offset] of offsets.entries()) {
      for (let day = 0; day < days; day++) {
        series[s][day] = offset < 0 ? Number.NaN : values[(day * stocks + stock) * fields.length + offset];
      }
    }
    const history = historyOf(series);
    for (let day = 0; day < days; day++) {
      const row = rowOf[day * stocks + stock];
      if (row >= 0) writeDay(history, day, table.subarray(row * ALPHA158.length, (row + 1) * ALPHA158.length));
    }
  }
  return { names: ALPHA158, rowOf, values: table };
}

/** A stock's prices, and the inputs of rolling features over pairs of days. */
interface History {
  readonly open: Float64Array;
  readonly high: Float64Array;
  readonly low: Float64Array;
  readonly close: Float64Array;
  readonly volume: Float64Array;
  readonly vwap: Float64Array;
  readonly logVolume: Float64Array;
  /** c_t / c_{t−1} and log(v_t / v_{t−1} + 1). */
  readonly ratio: Float64Array;
  readonly logVolumeRatio: Float64Array;
  /** |c_t / c_{t−1} − 1| · v_t. */
  readonly moved: Float64Array;
  /** First day with a close. */
  readonly first: number;
}

function historyOf([open, high, low, close, volume, vwap]: readonly Float64Array[]): History {
  const ratio = close.map((c, t) => c / close[t - 1]);
  return {
    open,
    high,
    low,
    close,
    volume,
    vwap,
    logVolume: volume.map((v) => Math.log(v + 1)),
    ratio,
    logVolumeRatio: volume.map((v, t) => Math.log(v / volume[t - 1] + 1)),
    moved: ratio.map((r, t) => Math.abs(r - 1) * volume[t]),
    first: close.findIndex((c) => !Number.isNaN(c)),
  };
}

function writeDay(history: History, t: number, out: Float32Array): void {
  const { open, high, low, close, volume, vwap } = history;
  const [o, h, l, c] = [open[t], high[t], low[t], close[t]];
  const [top, bottom, range] = [Math.max(o, c), Math.min(o, c), h - l + EPSILON];
  out.set([(c - o) / o, (h - l) / o, (c - o) / range, (h - top) / o, (h - top) / range, (bottom - l) / o]);
  out.set([(bottom - l) / range, (2 * c - h - l) / o, (2 * c - h - l) / range, o / c, h / c, l / c, vwap[t] / c], 6);
  for (const [w, d] of WINDOWS.entries()) {
    const from = Math.max(history.first, t - d + 1);
    const price = moments(close, from, t);
    const trend = regression(close, from, t, d);
    const [highest, lowest] = [extreme(high, from, t, 1), extreme(low, from, t, -1)];
    const known = Float64Array.from(close.subarray(from, t + 1).filter((x) => !Number.isNaN(x))).sort();
    const [ups, volumeUps] = [changes(close, from, t), changes(volume, from, t)];
    const rows = t - from + 1;
    const [trades, moved] = [moments(volume, from, t), moments(history.moved, from, t)];
    const v = volume[t] + EPSILON;
    const features = [
      (t >= d ? close[t - d] : Number.NaN) / c,
      price.mean / c,
      price.deviation / c,
      trend.slope / c,
      price.deviation <= FLAT ? Number.NaN : trend.rSquare,
      trend.residual / c,
      highest.value / c,
      lowest.value / c,
      quantile(known, 0.8) / c,
      quantile(known, 0.2) / c,
      averageRank(known, c) / known.length,
      (c - lowest.value) / (highest.value - lowest.value + EPSILON),
      highest.place / d,
      lowest.place / d,
      (highest.place - lowest.place) / d,
      correlation(close, history.logVolume, from, t),
      correlation(history.ratio, history.logVolumeRatio, from, t),
      ups.rises / rows,
      ups.falls / rows,
      (ups.rises - ups.falls) / rows,
      ups.gain / (ups.gain + ups.loss + EPSILON),
      ups.loss / (ups.gain + ups.loss + EPSILON),
      (ups.gain - ups.loss) / (ups.gain + ups.loss + EPSILON),
      trades.mean / v,
      trades.deviation / v,
      moved.deviation / (moved.mean + EPSILON),
      volumeUps.gain / (volumeUps.gain + volumeUps.loss + EPSILON),
      volumeUps.loss / (volumeUps.gain + volumeUps.loss + EPSILON),
      (volumeUps.gain - volumeUps.loss) / (volumeUps.gain + volumeUps.loss + EPSILON),
    ];
    for (const [f, x] of features.entries()) out[BAR.length + PRICE.length + f * WINDOWS.length + w] = x;
  }
}

/** qlib treats deviations up to this as zero. */
const FLAT = 2e-5;

/** Mean and deviation (ddof 1) of what is known; NaN if there are too few. */
function moments(x: Float64Array, from: number, to: number): { mean: number; deviation: number } {
  let [n, sum] = [0, 0];
  for (let t = from; t <= to; t++) {
    if (Number.isNaN(x[t])) continue;
    n++;
    sum += x[t];
  }
  const mean = sum / n;
  let squares = 0;
  for (let t = from; t <= to; t++) if (!Number.isNaN(x[t])) squares += (x[t] - mean) ** 2;
  return { mean, deviation: n < 2 ? Number.NaN : Math.sqrt(squares / (n - 1)) };
}

/**
 * The regression line through the known values; the abscissa is the day's position in the window of d days, the last
 * one d.
 */
function regression(y: Float64Array, from: number, to: number, d: number) {
  let [n, sx, sy, sxx, sxy, syy] = [0, 0, 0, 0, 0, 0];
  for (let t = from; t <= to; t++) {
    if (Number.isNaN(y[t])) continue;
    const [x, value] = [d - (to - t), y[t] - y[to]];
    n++;
    sx += x;
    sy += value;
    sxx += x * x;
    sxy += x * value;
    syy += value * value;
  }
  const [varX, varY, cov] = [n * sxx - sx * sx, n * syy - sy * sy, n * sxy - sx * sy];
  const slope = cov / varX;
  // Values are distances from the last one, which is 0 here: its residual is minus the line's value there.
  return { slope, rSquare: (cov * cov) / (varX * varY), residual: -(slope * d + sy / n - (slope * sx) / n) };
}

/** The highest (sign 1) or lowest (−1) known value and its position in the window, from 1, the first of equals. */
function extreme(x: Float64Array, from: number, to: number, sign: 1 | -1): { value: number; place: number } {
  let [value, place] = [Number.NaN, Number.NaN];
  for (let t = from; t <= to; t++) {
    if (!(sign * x[t] > sign * value) && !(Number.isNaN(value) && !Number.isNaN(x[t]))) continue;
    value = x[t];
    place = t - from + 1;
  }
  return { value, place };
}

/** Linear interpolation between the two neighbouring values. */
function quantile(sorted: Float64Array, share: number): number {
  const at = share * (sorted.length - 1);
  const below = Math.floor(at);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

/** Rank from 1, equal values sharing the mean of theirs. */
function averageRank(sorted: Float64Array, value: number): number {
  let [below, equal] = [0, 0];
  for (const x of sorted) {
    if (x < value) below++;
    else if (x === value) equal++;
  }
  return below + (equal + 1) / 2;
}

/** How often x rose and fell from one day to the next, and the total changes; NaN if no change is known. */
function changes(x: Float64Array, from: number, to: number) {
  let [known, rises, falls, gain, loss] = [0, 0, 0, 0, 0];
  for (let t = from; t <= to; t++) {
    const change = x[t] - x[t - 1];
    if (Number.isNaN(change)) continue;
    known++;
    if (change > 0) rises++;
    if (change < 0) falls++;
    gain += Math.max(change, 0);
    loss += Math.max(-change, 0);
  }
  return { rises, falls, gain: known === 0 ? Number.NaN : gain, loss: known === 0 ? Number.NaN : loss };
}

/** Pearson's, of the days on which both are known; NaN if one of them hardly moves. */
function correlation(x: Float64Array, y: Float64Array, from: number, to: number): number {
  if (!(moments(x, from, to).deviation > FLAT) || !(moments(y, from, to).deviation > FLAT)) return Number.NaN;
  let [n, sx, sy] = [0, 0, 0];
  for (let t = from; t <= to; t++) {
    if (Number.isNaN(x[t]) || Number.isNaN(y[t])) continue;
    n++;
    sx += x[t];
    sy += y[t];
  }
  let [xx, yy, xy] = [0, 0, 0];
  for (let t = from; t <= to; t++) {
    if (Number.isNaN(x[t]) || Number.isNaN(y[t])) continue;
    const [a, b] = [x[t] - sx / n, y[t] - sy / n];
    xx += a * a;
    yy += b * b;
    xy += a * b;
  }
  return xy / Math.sqrt(xx * yy);
}
