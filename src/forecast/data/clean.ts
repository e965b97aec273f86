import { InputError } from '../../errors.js';
import type { Notes } from '../formats/format.js';
import { type Field, type IndexSeries, isPrice, type PricePanel } from './panel.js';

/** Moves this much (relative) beyond the bound are float32 rounding of the bound itself, so cleaning is idempotent. */
const TOLERANCE = 1e-6;

/**
 * Turns what a reader has collected into a panel, in place:
 *
 * 1. Days on which no stock has a price are dropped, and so are stocks that never have a price or never belong to the
 *    market. "The next day" is the next remaining day.
 * 2. A high below, or a low above, the open or close of its day (by more than 0.1 %) is noted and left unchanged. If
 *    there are more than a few such rows, they are rejected: the prices of a day are inconsistent.
 *
 * `cleaned` is what a model sees (`clipMoves`); the panel itself if `maxMove` is null.
 *
 * @param file where the prices come from, for an error
 */
export function clean(
  draft: PricePanel,
  maxMove: number | null,
  notes: Notes,
  file?: string,
): { panel: PricePanel; cleaned: PricePanel } {
  const panel = withoutEmpty(draft, notes);
  checkCrossed(panel, notes, file);
  return { panel, cleaned: maxMove === null ? panel : clipMoves(panel, maxMove, notes) };
}

function withoutEmpty(draft: PricePanel, notes: Notes): PricePanel {
  const { calendar, symbols, fields, values, members, index } = draft;
  const days = calendar.length;
  const stocks = symbols.length;
  const close = fields.indexOf('close');
  const keepDay = new Uint8Array(days).fill(1);
  const keepStock = new Uint8Array(stocks).fill(1);
  // Dropping a stock may empty a day and the reverse, so repeat until nothing changes.
  for (let before = -1, now = days + stocks; now !== before; ) {
    const dayHasPrice = new Uint8Array(days);
    const stockHasPrice = new Uint8Array(stocks);
    const stockIsMember = new Uint8Array(stocks);
    for (let day = 0; day < days; day++) {
      if (keepDay[day] === 0) continue;
      for (let stock = 0; stock < stocks; stock++) {
        if (keepStock[stock] === 0) continue;
        const cell = day * stocks + stock;
        stockIsMember[stock] |= members[cell];
        if (Number.isNaN(values[cell * fields.length + close])) continue;
        dayHasPrice[day] = 1;
        stockHasPrice[stock] = 1;
      }
    }
    for (let day = 0; day < days; day++) keepDay[day] &= dayHasPrice[day];
    for (let stock = 0; stock < stocks; stock++) keepStock[stock] &= stockHasPrice[stock] & stockIsMember[stock];
    before = now;
    now = count(keepDay) + count(keepStock);
  }
  for (let day = 0; day < days; day++) {
    if (keepDay[day] === 0) notes.add('day without any price dropped', calendar[day]);
  }
  for (let stock = 0; stock < stocks; stock++) {
    if (keepStock[stock] === 0) notes.add('stock without any price on a day of the market dropped', symbols[stock]);
  }
  if (count(keepStock) === 0) throw new InputError('the data has no price for any member of the market');
  if (count(keepDay) === days && count(keepStock) === stocks) return draft;

  // Cells move only towards the front, so the block can be compacted in place.
  let to = 0;
  for (let day = 0; day < days; day++) {
    if (keepDay[day] === 0) continue;
    for (let stock = 0; stock < stocks; stock++) {
      if (keepStock[stock] === 0) continue;
      const from = day * stocks + stock;
      for (let f = 0; f < fields.length; f++) values[to * fields.length + f] = values[from * fields.length + f];
      members[to++] = members[from];
    }
  }
  return {
    calendar: calendar.filter((_, day) => keepDay[day] === 1),
    symbols: symbols.filter((_, stock) => keepStock[stock] === 1),
    fields,
    values: values.subarray(0, to * fields.length),
    members: members.subarray(0, to),
    ...(index === undefined ? {} : { index: keepDays(index, keepDay) }),
  };
}

function keepDays(index: IndexSeries, keep: Uint8Array): IndexSeries {
  return { symbol: index.symbol, close: index.close.filter((_, day) => keep[day] === 1) };
}

/**
 * A copy of the panel without implausible moves; the panel itself if there are none.
 *
 * 1. A close that moves by more than `maxMove` from the previous day's close is a glitch (a split the vendor missed,
 *    a misprint): the move is clipped to ±maxMove, and that day and all later prices of the stock are rescaled by the
 *    same factor, so that every other move is unchanged. After a suspension any move is accepted.
 * 2. Open, high, low and vwap are clipped to within maxMove of the close of their day.
 *
 * Features and labels are ratios of prices of one stock, so the rescaling changes nothing but the clipped move. Each rule
 * looks only back: a price never depends on a later one. Volume is unchanged.
 *
 * For what a model learns from, never for its evaluation: a fall by half is a fall by half.
 */
export function clipMoves(panel: PricePanel, maxMove: number, notes: Notes): PricePanel {
  if (!(maxMove > 0 && maxMove < 1)) {
    throw new InputError(`${maxMove} is not a fraction between 0 and 1`, { key: 'maxMove' });
  }
  const { calendar, symbols, fields } = panel;
  const values = panel.values.slice();
  let clipped = false;
  const stocks = symbols.length;
  const width = fields.length;
  const close = fields.indexOf('close');
  const prices = fields.flatMap((field, f) => (isPrice(field) && field !== 'close' ? [f] : []));
  const up = (1 + maxMove) * (1 + TOLERANCE);
  const down = (1 - maxMove) * (1 - TOLERANCE);
  // Per stock: the factor on its prices from here on, and its previous close in the source.
  const factor = new Float64Array(stocks).fill(1);
  const previous = new Float32Array(stocks).fill(Number.NaN);
  for (let day = 0; day < calendar.length; day++) {
    for (let stock = 0; stock < stocks; stock++) {
      const cell = (day * stocks + stock) * width;
      const raw = values[cell + close];
      const move = raw / previous[stock];
      previous[stock] = raw;
      if (move > up || move < down) {
        factor[stock] *= (move > up ? 1 + maxMove : 1 - maxMove) / move;
        clipped = true;
        notes.add(
          `move of a close beyond ±${maxMove} clipped for training`,
          `${symbols[stock]} on ${calendar[day]}, ${(100 * (move - 1)).toFixed(1)} %`,
        );
      }
      if (factor[stock] !== 1) {
        for (const f of prices) values[cell + f] *= factor[stock];
        values[cell + close] *= factor[stock];
      }
      const settled = values[cell + close];
      for (const f of prices) {
        const x = values[cell + f];
        if (x > settled * up) values[cell + f] = settled * (1 + maxMove);
        else if (x < settled * down) values[cell + f] = settled * (1 - maxMove);
        else continue;
        clipped = true;
        notes.add(
          `price of a day further than ±${maxMove} from its close clipped for training`,
          describe(panel, day, stock, fields[f]),
        );
      }
    }
  }
  return clipped ? { ...panel, values } : panel;
}

function checkCrossed({ calendar, symbols, fields, values }: PricePanel, notes: Notes, file: string | undefined): void {
  const close = fields.indexOf('close');
  let [rows, crossed, first] = [0, 0, ''];
  for (let cell = 0; cell < calendar.length * symbols.length; cell++) {
    if (Number.isNaN(values[cell * fields.length + close])) continue;
    rows++;
    if (!isCrossed(values, cell * fields.length, fields)) continue;
    if (crossed++ === 0) first = `${symbols[cell % symbols.length]} on ${calendar[Math.floor(cell / symbols.length)]}`;
  }
  if (crossed > Math.max(FEW, FEW_SHARE * rows)) {
    throw new InputError(
      `in ${crossed} of ${rows} rows the high lies below, or the low above, the open or the close (first: ${first}): ` +
        'some prices seem to be adjusted for splits and dividends and others not, which would reveal later ones to a ' +
        'model; expected all of them adjusted in the same way, or none and columns: {adjusted: …} for the adjusted close',
      { file },
    );
  }
  if (crossed > 0) notes.add('day whose high or low lies inside its open and close', first, crossed);
}

/** Misprints are accepted up to this many rows, or this share of all rows. In the CSI300 they are 1 in 8,000. */
const FEW = 5;
const FEW_SHARE = 0.01;
const SLACK = 1e-3;

function isCrossed(values: Float32Array, cell: number, fields: readonly string[]): boolean {
  const at = (field: Field): number => values[cell + fields.indexOf(field)];
  const open = at('open');
  const close = at('close');
  return at('high') < Math.max(open, close) * (1 - SLACK) || at('low') > Math.min(open, close) * (1 + SLACK);
}

function describe(panel: PricePanel, day: number, stock: number, field: string): string {
  return `${field} of ${panel.symbols[stock]} on ${panel.calendar[day]}`;
}

function count(flags: Uint8Array): number {
  let sum = 0;
  for (const flag of flags) sum += flag;
  return sum;
}
