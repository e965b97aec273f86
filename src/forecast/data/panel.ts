/** What is known of a stock on a day. Prices are adjusted for splits and dividends; `vwap` is optional in every source. */
export type Field = 'open' | 'high' | 'low' | 'close' | 'volume' | 'vwap';

/** The fields every source must have, in the order they have in a panel. */
export const FIELDS = ['open', 'high', 'low', 'close', 'volume'] as const satisfies readonly Field[];

/** Daily prices of a market: one block of memory, read by every feature, label and backtest and written by none. */
export interface Panel {
  /** Trading days `YYYY-MM-DD`, strictly ascending. */
  readonly calendar: readonly string[];
  /** Stock codes, ascending by code point. */
  readonly symbols: readonly string[];
  readonly fields: readonly Field[];
  /** [day][stock][field]; NaN where nothing is known (suspended, not yet listed, delisted). */
  readonly values: Float32Array;
  /** [day][stock]; 1 where the stock belongs to the market on that day. */
  readonly members: Uint8Array;
  /** The index the market is measured against, where the source has one. */
  readonly index?: IndexSeries;
}

export interface IndexSeries {
  readonly symbol: string;
  /** [day]; NaN where unknown. */
  readonly close: Float32Array;
}

/** Position of `field` within a cell of the panel; −1 when the panel has no such field. */
export function fieldOffset(panel: Panel, field: Field): number {
  return panel.fields.indexOf(field);
}

/** One value of the panel; for loops over many values compute the offset once instead. */
export function valueAt(panel: Panel, day: number, stock: number, field: Field): number {
  const offset = fieldOffset(panel, field);
  if (offset < 0) return Number.NaN;
  return panel.values[(day * panel.symbols.length + stock) * panel.fields.length + offset]!;
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

export function summarise(panel: Panel): PanelSummary {
  const close = fieldOffset(panel, 'close');
  let memberDays = 0;
  let missing = 0;
  for (let cell = 0; cell < panel.members.length; cell++) {
    if (panel.members[cell] === 0) continue;
    memberDays++;
    if (Number.isNaN(panel.values[cell * panel.fields.length + close]!)) missing++;
  }
  return {
    days: panel.calendar.length,
    first: panel.calendar[0]!,
    last: panel.calendar.at(-1)!,
    stocks: panel.symbols.length,
    memberDays,
    withoutClose: missing / memberDays,
  };
}
