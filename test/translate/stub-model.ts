import { candidatesFor } from '../../src/translate/decode/search.js';
import type { Answers, Question, TokenModel } from '../../src/translate/decode/token-model.js';
import { special } from '../../src/translate/text/vocabulary.js';

/** Next tokens with their probabilities, the best first, or that the model asks for more of the source. */
export type Opinion = readonly (readonly [token: number, p: number])[] | 'more';

/** A model that is asked about what it may see and nothing else: `source` is what has been read. */
export type OpinionOf = (seen: {
  readonly source: readonly number[];
  readonly prefix: readonly number[];
  readonly wait?: number;
  readonly redecode?: boolean;
}) => Opinion;

export interface StubOptions {
  readonly beam?: number;
  readonly maxPositions?: number;
  /** Attention of the next token over what is seen. Default none: the model does not tell it. */
  readonly attention?: (seen: Parameters<OpinionOf>[0]) => readonly number[];
}

/** A model with known distributions, which keeps nothing of its sentences. */
export function stubModel(
  opinion: OpinionOf,
  { beam = 3, maxPositions = 40, attention }: StubOptions = {},
): TokenModel {
  const width = candidatesFor(beam);
  return {
    beam,
    maxPositions,
    ...(attention && { attention: { layers: 2, heads: 2 } }),
    begin: () => ({}),
    async propose(questions: readonly Question[]): Promise<Answers> {
      const opinions = questions.map(({ source, read, prefix, wait, redecode }) => {
        if (read < 1 || read > source.length) throw new RangeError(`asked about ${read} of ${source.length} tokens`);
        return opinion({ source: source.slice(0, read), prefix, wait, redecode });
      });
      const rows = opinions.map((one) => filled(one === 'more' ? [] : one, width));
      return {
        width,
        tokens: Int32Array.from(rows.flat().map(([token]) => token)),
        scores: Float32Array.from(rows.flat().map(([, p]) => Math.log(p))),
        wantsMore: opinions.map((one) => one === 'more'),
        attention: questions.map(
          ({ source, read, prefix, attention: choice }) =>
            choice && Float32Array.from(attention?.({ source: source.slice(0, read), prefix }) ?? []),
        ),
      };
    },
  };
}

/** Vocabulary of `hashedModel`. */
export const STUB_VOCABULARY = 9;

/**
 * A model whose distributions look random but depend on what it sees alone; `salt` tells models apart. It changes its
 * mind with about every third source token, and now and then asks for more of the source.
 */
export function hashedModel(salt: number): TokenModel {
  const opinion: OpinionOf = ({ source, prefix, wait = 0, redecode = false }) => {
    const last = source.at(-1)!;
    if (last !== special.eos && hash([salt, source.length, prefix.length, last, 7]) % 3 === 0) return 'more';
    const known = source.slice(0, Math.ceil(source.length / 3) * 3 - (last % 3));
    const ofAll = hash([salt, ...known, 1, ...prefix, wait, Number(redecode)]);
    const order = Array.from({ length: STUB_VOCABULARY - 2 }, (_, i) => i + 2).sort(
      (a, b) => hash([ofAll, a]) - hash([ofAll, b]),
    );
    const best = 0.3 + (hash([ofAll, 3]) % 650) / 1000;
    return order.map((token, i) => [token, i === 0 ? best : (1 - best) / 2 ** i] as const);
  };
  const attention: StubOptions['attention'] = ({ source, prefix }) => {
    const weights = source.map((token, j) => 1 + (hash([salt, token, j, ...prefix]) % 20));
    const sum = weights.reduce((a, b) => a + b);
    return weights.map((weight) => weight / sum);
  };
  return stubModel(opinion, { attention });
}

/** Distinct tokens up to the width that a search needs; those that are added have next to no probability. */
function filled(opinion: readonly (readonly [number, number])[], width: number): (readonly [number, number])[] {
  const own = opinion.slice(0, width);
  const others = Array.from({ length: width }, (_, i) => [100 + i, 1e-9 / (i + 1)] as const);
  return [...own, ...others.slice(0, width - own.length)];
}

/** FNV-1a over numbers. */
function hash(numbers: readonly number[]): number {
  let state = 0x811c9dc5;
  for (const n of numbers) {
    state = Math.imul(state ^ (n & 0xffff), 0x01000193) >>> 0;
    state ^= state >>> 15;
  }
  return Math.imul(state, 0x9e3779b1) >>> 0;
}
