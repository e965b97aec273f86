import { InputError } from '../errors.js';
import { neutralised } from '../metrics/index.js';
import { marketReturns } from './backtest/backtest.js';
import { type ForecastConfig, neutraliseSchema } from './config.js';
import { fieldOffset, type PricePanel, type Samples } from './data/panel.js';
import type { Note } from './formats/format.js';

type Neutralise = ForecastConfig['neutralise'];

/** What a flag or an option asks for; undefined: as the configuration says. */
export function neutralisation(configured: Neutralise, given: unknown): Neutralise {
  if (given === undefined) return configured;
  const parsed = neutraliseSchema.safeParse(given);
  if (parsed.success) return parsed.data;
  const [{ message, path }] = parsed.error.issues;
  throw new InputError(message, { key: ['--neutralise', ...path].join('.') });
}

/** For names of folders: `sector`, `beta-60`, `sector-beta-60`. */
export function neutralName({ group, beta }: NonNullable<Neutralise>): string {
  const slug = group?.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
  return [slug, beta && `beta-${beta}`].filter(Boolean).join('-');
}

/** Forecasts day by day without what the groups and betas of their stocks explain, and what was missing for that. */
export function neutralForecasts(
  panel: PricePanel,
  samples: Samples,
  forecasts: Float32Array,
  wanted: NonNullable<Neutralise>,
): { readonly forecasts: Float32Array; readonly notes: readonly Note[] } {
  const { group, beta } = wanted;
  const groups = group === undefined ? undefined : columnOf(panel, samples, group);
  const betas = beta === undefined ? undefined : betasOf(panel, samples, beta);
  const out = new Float32Array(forecasts.length);
  const { dayStarts } = samples;
  for (let d = 0; d + 1 < dayStarts.length; d++) {
    const [from, to] = [dayStarts[d], dayStarts[d + 1]];
    const exposures = { groups: groups?.subarray(from, to), betas: betas?.subarray(from, to) };
    out.set(neutralised(forecasts.subarray(from, to), exposures), from);
  }
  const missing = (values: Float32Array | undefined, kind: string): Note[] => {
    const places = [...(values ?? []).keys()].filter((i) => Number.isNaN(values![i]));
    if (places.length === 0) return [];
    const [first] = places.map((i) => `${panel.symbols[samples.stock[i]]} on ${panel.calendar[samples.day[i]]}`);
    return [{ kind, count: places.length, first }];
  };
  return {
    forecasts: out,
    notes: [
      ...missing(groups, `forecast of a stock without a ${group}: those of a day are a group of their own`),
      ...missing(betas, 'forecast of a stock without a beta, for want of returns: taken as the mean'),
    ],
  };
}

function columnOf(panel: PricePanel, { length, day, stock }: Samples, column: string): Float32Array {
  const offset = fieldOffset(panel, column);
  if (offset < 0) {
    throw new InputError(`the data has no column ${JSON.stringify(column)} to group stocks by`, {
      key: 'problem.neutralise.group',
    });
  }
  const { symbols, fields, values } = panel;
  return Float32Array.from({ length }, (_, i) => values[(day[i] * symbols.length + stock[i]) * fields.length + offset]);
}

/**
 * β of each sample: the slope of the daily returns of its stock on those of the market (the index, or the mean of the
 * members), over the days t − n + 1 … t on which both are known; NaN where they are fewer than half.
 *
 *     β = Σ (rᵢ − r̄)(mᵢ − m̄) ∕ Σ (mᵢ − m̄)²
 */
export function betasOf(panel: PricePanel, samples: Samples, days: number): Float32Array {
  const { symbols, fields, values, calendar } = panel;
  const close = fieldOffset(panel, 'close');
  const market = marketReturns(panel, 1, calendar.length - 1);
  const priceAt = (day: number, stock: number) => values[(day * symbols.length + stock) * fields.length + close];
  return Float32Array.from({ length: samples.length }, (_, i) => {
    const [t, stock] = [samples.day[i], samples.stock[i]];
    let [n, sumR, sumM, sumRM, sumMM] = [0, 0, 0, 0, 0];
    for (let day = Math.max(1, t - days + 1); day <= t; day++) {
      const r = priceAt(day, stock) / priceAt(day - 1, stock) - 1;
      if (Number.isNaN(r)) continue;
      const m = market[day - 1];
      n++;
      sumR += r;
      sumM += m;
      sumRM += r * m;
      sumMM += m * m;
    }
    const spread = sumMM - (sumM * sumM) / n;
    return n < days / 2 || !(spread > 0) ? Number.NaN : (sumRM - (sumR * sumM) / n) / spread;
  });
}
