import { special } from '../text/vocabulary.js';

export interface SearchOptions {
  /** Hypotheses kept once the whole source is known; before that the search is greedy. Default 5; 1 is greedy. */
  readonly beam?: number;
  /** What an end of the sentence means that the model proposes before it has seen the source's. Default `allow`. */
  readonly earlyEnd?: 'allow' | 'block';
  /** Longest output for n source tokens: ratio · n + extra. Default 2 · n + 10. */
  readonly maxLength?: { readonly ratio: number; readonly extra: number };
}

export const searchDefaults: Required<SearchOptions> = {
  beam: 5,
  earlyEnd: 'allow',
  maxLength: { ratio: 2, extra: 10 },
};

/** The model's best next tokens, for each of several hypotheses: rows of `width` in falling order. */
export interface Candidates {
  readonly width: number;
  readonly tokens: Int32Array;
  /** Log-probabilities. */
  readonly scores: Float32Array;
}

/** How many candidates a search needs: each hypothesis may end, and it may have to pass over an end. */
export function candidatesFor(beam: number): number {
  return 2 * beam + 1;
}

interface Hypothesis {
  readonly tokens: readonly number[];
  /** Σ log p of its tokens, the end included if it has one. */
  readonly score: number;
}

/**
 * The search for the translation of one sentence: one hypothesis, extended greedily, while the end of the source is
 * not known, and from then on beam search with the score Σ log p / length, the end counted (appendix B).
 * It knows nothing of models: it is given candidates and says how to go on.
 */
export class Search {
  hypotheses: readonly Hypothesis[] = [{ tokens: [], score: 0 }];
  private readonly finished: Hypothesis[] = [];
  private over = false;
  private early = false;
  private readonly options: Required<SearchOptions>;

  /** `most`: no output can be longer than this, whatever the options say. */
  constructor(
    {
      beam = searchDefaults.beam,
      earlyEnd = searchDefaults.earlyEnd,
      maxLength = searchDefaults.maxLength,
    }: SearchOptions,
    private readonly most: number,
  ) {
    this.options = { beam, earlyEnd, maxLength };
  }

  get done(): boolean {
    return this.over;
  }

  /** The sentence ended before the end of the source was known. */
  get endedEarly(): boolean {
    return this.early;
  }

  /** Target tokens of each hypothesis. */
  get length(): number {
    return this.hypotheses[0]?.tokens.length ?? 0;
  }

  /** Tokens of the best translation, without the end; of the one in hand while the search goes on. */
  get tokens(): readonly number[] {
    return this.over && this.finished.length > 0 ? best(this.finished).tokens : this.hypotheses[0].tokens;
  }

  /**
   * Goes one token further. Returns for each hypothesis that is left the place of the one before that it continues.
   *
   * @param row where this sentence's hypotheses begin among the candidates
   * @param source number of source tokens if the end of the source has been read, its end not counted
   */
  advance(candidates: Candidates, row: number, source: number | undefined): readonly number[] {
    return source === undefined ? this.greedy(candidates, row) : this.beamStep(candidates, row, source);
  }

  /** Ends the search with what is in hand. */
  close(): void {
    this.over = true;
  }

  /** What greedy search would write next. */
  proposal({ width, tokens, scores }: Candidates, row: number): { readonly token: number; readonly score: number } {
    const blocked = this.options.earlyEnd === 'block';
    for (let c = row * width; c < (row + 1) * width; c++) {
      if (blocked && tokens[c] === special.eos) continue;
      return { token: tokens[c], score: scores[c] };
    }
    throw new RangeError(`none of the ${width} candidates can be written`);
  }

  private greedy(candidates: Candidates, row: number): readonly number[] {
    const [hypothesis] = this.hypotheses;
    const { token, score } = this.proposal(candidates, row);
    if (token !== special.eos) {
      this.hypotheses = [{ tokens: [...hypothesis.tokens, token], score: hypothesis.score + score }];
      if (this.length < this.most) return [0];
    }
    this.early = true;
    return this.finish();
  }

  private beamStep(candidates: Candidates, row: number, source: number): readonly number[] {
    const { beam, maxLength } = this.options;
    const limit = Math.min(this.most, Math.floor(maxLength.ratio * source + maxLength.extra));
    const ranked = this.rank(candidates, row);
    const next: Hypothesis[] = [];
    const parents: number[] = [];
    for (const [place, { parent, token, score }] of ranked.entries()) {
      const hypothesis = this.hypotheses[parent];
      if (token === special.eos) {
        // An end counts only among the best: one that is proposed further down has lost already.
        if (place < beam) this.finished.push({ tokens: hypothesis.tokens, score });
      } else if (next.length < beam) {
        next.push({ tokens: [...hypothesis.tokens, token], score });
        parents.push(parent);
      }
    }
    if (this.finished.length >= beam) return this.finish();
    if (next[0].tokens.length >= limit) {
      // Cut off: what is in hand counts as it is, unless something has ended by itself.
      if (this.finished.length === 0) this.finished.push(...next);
      return this.finish();
    }
    this.hypotheses = next;
    return parents;
  }

  private finish(): readonly number[] {
    this.close();
    return [];
  }

  /** Continuations of all hypotheses, the best first; of equals the one that comes first. */
  private rank({ width, tokens, scores }: Candidates, row: number): { parent: number; token: number; score: number }[] {
    const all = this.hypotheses.flatMap(({ score }, parent) =>
      Array.from({ length: width }, (_, c) => {
        const at = (row + parent) * width + c;
        return { parent, token: tokens[at], score: score + scores[at] };
      }),
    );
    return all.sort((a, b) => b.score - a.score).slice(0, 2 * this.options.beam);
  }
}

function best(hypotheses: readonly Hypothesis[]): Hypothesis {
  const normalised = ({ tokens, score }: Hypothesis): number => score / (tokens.length + 1);
  return hypotheses.reduce((a, b) => (normalised(b) > normalised(a) ? b : a));
}
