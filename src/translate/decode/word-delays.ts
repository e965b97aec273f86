import type { LatencyUnit } from '../../metrics/index.js';

/** Words or characters that were written, each with the source words that had arrived when it was handed over. */
export interface UnitDelays {
  readonly units: readonly string[];
  readonly delays: readonly number[];
}

/** How a text is cut into what is handed over. */
export interface Handover {
  readonly unit: LatencyUnit;
  /**
   * A later token may join the word before it, as a comma does. A word is then known to be complete when the next one
   * begins, or at the end: handed over earlier, the comma would become a word of its own.
   */
  readonly attaches: boolean;
}

/**
 * Delays in words or characters instead of tokens, as SimulEval counts them, of an agent that hands over each as soon as
 * it is complete. Spaces are no characters.
 *
 * @param seen what a reader has seen after each token, and after the end (`writtenText`)
 * @param delays source tokens that were read before each of these
 * @param settled source tokens that are known after each source word; a token arrives with the word that settles it
 */
export function unitDelays(
  seen: readonly string[],
  delays: ArrayLike<number>,
  settled: readonly number[],
  { unit, attaches }: Handover,
): UnitDelays {
  const text = seen.at(-1) ?? '';
  const found = [...text.matchAll(unit === 'word' ? /\S+/gu : /[^ ]/gu)];
  const after = unit === 'word' && attaches ? 1 : 0;
  return {
    units: found.map(([piece]) => piece),
    delays: found.map(({ 0: piece, index }) => {
      const complete = seen.findIndex((sofar) => sofar.length >= index + piece.length + after);
      const token = complete < 0 ? seen.length - 1 : complete;
      const arrived = settled.findIndex((count) => count >= delays[token]);
      return arrived < 0 ? settled.length : arrived + 1;
    }),
  };
}
