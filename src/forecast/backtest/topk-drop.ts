/** What to sell and what to buy; stocks by their index, the most wanted first. */
export interface Decision {
  readonly sell: readonly number[];
  readonly buy: readonly number[];
}

/**
 * The decision of qlib's TopkDropoutStrategy (sell from the bottom, buy from the top): hold `hold` stocks and replace at
 * most `replace` of them a day.
 *
 * Candidates are the best-scored stocks not held, `replace` more than there are free places. Held stocks and candidates
 * are ranked together, and held stocks among the last `replace` are sold: so never one that is better than what would be
 * bought for it. A held stock without a score (it left the market, it is suspended) ranks last. Equal scores rank by the
 * index of the stock. Unlike qlib's, a scored stock is not sold when the market is too small to offer another for it.
 *
 * @param held stocks in the portfolio
 * @param scores score of each stock, NaN where there is none
 */
export function topkDrop(held: readonly number[], scores: ArrayLike<number>, hold: number, replace: number): Decision {
  const rank = (a: number, b: number): number => {
    const x = scores[a]!;
    const y = scores[b]!;
    if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y)) || a - b;
    return y - x || a - b;
  };
  const isHeld = new Set(held);
  const others: number[] = [];
  for (let stock = 0; stock < scores.length; stock++) {
    if (!isHeld.has(stock) && !Number.isNaN(scores[stock]!)) others.push(stock);
  }
  const free = hold - held.length;
  const candidates = others.sort(rank).slice(0, Math.max(0, replace + free));
  const ranked = [...held, ...candidates].sort(rank);
  const replaceable = Math.max(0, Math.min(replace, candidates.length - free));
  const sell = ranked.filter((stock, i) => {
    const fromEnd = ranked.length - i;
    return isHeld.has(stock) && fromEnd <= (Number.isNaN(scores[stock]!) ? replace : replaceable);
  });
  return { sell, buy: candidates.slice(0, Math.max(0, sell.length + free)) };
}
