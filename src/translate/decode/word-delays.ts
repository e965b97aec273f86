/** Words that were written, each with the source words that had arrived when it was complete. */
export interface WordDelays {
  readonly words: readonly string[];
  readonly delays: readonly number[];
}

/**
 * Delays in words instead of tokens, as SimulEval counts them.
 *
 * @param seen what a reader has seen after each token
 * @param delays source tokens that were read before each token
 * @param settled source tokens that are known after each source word; a token arrives with the word that settles it
 */
export function wordDelays(seen: readonly string[], delays: ArrayLike<number>, settled: readonly number[]): WordDelays {
  const text = seen.at(-1) ?? '';
  const found = [...text.matchAll(/\S+/gu)];
  return {
    words: found.map(([word]) => word),
    delays: found.map(({ 0: word, index }) => {
      const token = seen.findIndex((sofar) => sofar.length >= index + word.length);
      const arrived = settled.findIndex((count) => count >= delays[token]);
      return arrived < 0 ? settled.length : arrived + 1;
    }),
  };
}
