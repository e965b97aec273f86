import { Random } from '../../src/random.js';

/**
 * Random walks with steps of 2 %, quoted as an exchange does: a stock above 30 is split, two for one, and every 60 days it
 * pays a dividend of 3 %, by which its price falls. The adjusted close takes all later splits and dividends back. As CSV with
 * the names of the documented example.
 */
export function quotedWalks(stocks: number, calendar: readonly string[]): string {
  const random = new Random(1);
  const lines: string[] = [];
  for (let s = 0; s < stocks; s++) {
    let price = 15 * 2 ** random.uniform();
    // What a share of the first day has become, in shares of today with dividends reinvested.
    let shares = 1;
    const rows = calendar.map((date, day) => {
      const open = price * (1 + 0.005 * random.normal());
      const close = price * (1 + 0.02 * random.normal());
      const high = Math.max(open, close) * 1.01;
      const low = Math.min(open, close) * 0.99;
      const row = { date, quoted: [open, high, low, close], close, shares };
      price = close;
      const event = (price > 30 ? 2 : 1) / ((day + 7 * s) % 60 === 59 ? 0.97 : 1);
      price /= event;
      shares *= event;
      return row;
    });
    for (const { date, quoted, close, shares: then } of rows) {
      lines.push(`${date},S${s},${quoted.join(',')},100,${(close * then) / shares}`);
    }
  }
  return `date,ticker,open,high,low,close,volume,adj_close\n${lines.join('\n')}\n`;
}
