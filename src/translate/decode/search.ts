import { InputError } from '../../errors.js';
import type { Action, Counts, Policy, Proposal } from '../policies/policy.js';
import { special } from '../text/vocabulary.js';
import type { TokenModel } from './token-model.js';

export interface SearchOptions {
  /** Hypotheses kept once the whole source is known; before that the search is greedy. Default 5; 1 is greedy. */
  readonly beam?: number;
  /** Whether the model may end the sentence before it has seen the end of the source. Default `allow`. */
  readonly earlyEnd?: 'allow' | 'block';
  /** α: finished hypotheses are compared by Σ log p / length^α, including the end. Default 1, the mean; 0: the sum. */
  readonly lengthPenalty?: number;
  /**
   * Tokens that the beam looks ahead before each token is written, until the source ends: the first token of
   * the best attempt is written (Zheng et al. 2019, speculative beam search). Delays do not change; computation takes longer.
   * Default 0: the best token is written at once.
   */
  readonly speculate?: number;
  /** How many of the best finished hypotheses `Decoded.nbest` lists, at most `beam`. Default 0: none. */
  readonly nbest?: number;
  /** Longest output for n source tokens: ratio · n + extra. Default 2 · n + 10. */
  readonly maxLength?: { readonly ratio: number; readonly extra: number };
}

export const searchDefaults: Required<SearchOptions> = {
  beam: 5,
  earlyEnd: 'allow',
  lengthPenalty: 1,
  speculate: 0,
  nbest: 0,
  maxLength: { ratio: 2, extra: 10 },
};

/** The model's best next tokens, for each of several hypotheses: rows of `width` in descending order. */
export interface Candidates {
  readonly width: number;
  readonly tokens: Int32Array;
  /** Log-probabilities. */
  readonly scores: Float32Array;
}

/** How many candidates a search needs: each hypothesis may end, and it may have to skip an end. */
export function candidatesFor(beam: number): number {
  return 2 * beam + 1;
}

/** A translation with its score, by which several are compared. */
export interface ScoredTokens {
  readonly tokens: readonly number[];
  readonly score: number;
}

interface Hypothesis {
  readonly tokens: readonly number[];
  /** Σ log p of its tokens, the end included if it has one. */
  readonly score: number;
}

/** What is tried before a token is written. */
interface Attempt extends Hypothesis {
  /** Log p of the first unwritten token. */
  readonly first: number;
  /** It has ended. */
  readonly ended: boolean;
}

/**
 * The search for the translation of one sentence: one hypothesis, extended greedily, while the end of the source is
 * not known, and from then on beam search with the score Σ log p / length^α, including the end (appendix B: α = 1).
 * It is independent of models: it takes candidates and says which hypotheses continue.
 */
export class Search {
  hypotheses: readonly Hypothesis[] = [{ tokens: [], score: 0 }];
  private readonly finished: Hypothesis[] = [];
  private over = false;
  private early = false;
  /** What is written, and finished attempts to continue, while others are tried. */
  private draft: { readonly written: Hypothesis; readonly ended: Attempt[] } | undefined;
  private readonly options: Required<SearchOptions>;

  /** `most`: maximum length of an output, regardless of the options. */
  constructor(
    {
      beam = searchDefaults.beam,
      earlyEnd = searchDefaults.earlyEnd,
      lengthPenalty = searchDefaults.lengthPenalty,
      speculate = searchDefaults.speculate,
      nbest = searchDefaults.nbest,
      maxLength = searchDefaults.maxLength,
    }: SearchOptions,
    private readonly most: number,
  ) {
    if (nbest > beam) throw new InputError(`expected at most the beam of ${beam}, found ${nbest}`, { key: 'nbest' });
    this.options = { beam, earlyEnd, lengthPenalty, speculate, nbest, maxLength };
  }

  get done(): boolean {
    return this.over;
  }

  /** The sentence ended before the end of the source was known. */
  get endedEarly(): boolean {
    return this.early;
  }

  /** It is looking ahead: nothing may be read before it has written. */
  get drafting(): boolean {
    return this.draft !== undefined;
  }

  /** Target tokens of each hypothesis; while it looks ahead, those that are written. */
  get length(): number {
    return (this.draft?.written ?? this.hypotheses[0])?.tokens.length ?? 0;
  }

  /** Tokens of the best translation, without the end; while the search continues, of the best hypothesis. */
  get tokens(): readonly number[] {
    if (this.over && this.finished.length > 0) return this.ranked()[0].tokens;
    return (this.draft?.written ?? this.hypotheses[0]).tokens;
  }

  /** The best finished hypotheses, as many as `nbest` says, with their scores. One that ended early is alone. */
  get best(): readonly ScoredTokens[] {
    const { nbest } = this.options;
    if (this.finished.length > 0) return this.ranked().slice(0, nbest);
    const [{ tokens, score }] = this.hypotheses;
    return [{ tokens, score: this.normalised({ tokens, score }) }].slice(0, nbest);
  }

  /**
   * Advances by one token. Returns for each remaining hypothesis the index of the one it continues.
   *
   * @param row where this sentence's hypotheses begin among the candidates
   * @param source number of source tokens if the end of the source has been read, its end not counted
   */
  advance(candidates: Candidates, row: number, source: number | undefined): readonly number[] {
    if (source !== undefined) return this.beamStep(candidates, row, source);
    return this.options.speculate > 0 ? this.tryOn(candidates, row) : this.greedy(candidates, row);
  }

  /** Ends the search with the current hypotheses. */
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
    const { token, score } = this.proposal(candidates, row);
    return this.commit(this.hypotheses[0], token, score);
  }

  /** Writes a token while the source continues; its end ends the sentence early. */
  private commit(written: Hypothesis, token: number, score: number): readonly number[] {
    this.draft = undefined;
    this.hypotheses = [written];
    if (token !== special.eos) {
      this.hypotheses = [{ tokens: [...written.tokens, token], score: written.score + score }];
      if (this.length < this.most) return [0];
    }
    this.early = true;
    return this.finish();
  }

  /** Advances all attempts by one token; after enough of them, the first token of the best is written. */
  private tryOn(candidates: Candidates, row: number): readonly number[] {
    const { beam, earlyEnd, speculate } = this.options;
    const { written, ended } = this.draft ?? { written: this.hypotheses[0], ended: [] };
    const next: Attempt[] = [];
    const parents: number[] = [];
    for (const [place, { parent, token, score }] of this.rank(candidates, row).entries()) {
      const before = this.hypotheses[parent];
      const first = this.draft === undefined ? score - written.score : (before as Attempt).first;
      if (token !== special.eos && next.length < beam) {
        next.push({ tokens: [...before.tokens, token], score, first, ended: false });
        parents.push(parent);
      } else if (token === special.eos && earlyEnd === 'allow' && place < beam) {
        ended.push({ tokens: before.tokens, score, first, ended: true });
      }
    }
    const depth = next[0].tokens.length - written.tokens.length;
    if (depth <= speculate && next[0].tokens.length < this.most) {
      this.draft = { written, ended };
      this.hypotheses = next;
      return parents;
    }
    const mean = (one: Attempt): number =>
      (one.score - written.score) / (one.tokens.length - written.tokens.length + Number(one.ended));
    const best = [...next, ...ended].reduce((a, b) => (mean(b) > mean(a) ? b : a));
    return this.commit(written, best.tokens[written.tokens.length] ?? special.eos, best.first);
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
        // An end counts only among the best: one proposed further down has already lost.
        if (place < beam) this.finished.push({ tokens: hypothesis.tokens, score });
      } else if (next.length < beam) {
        next.push({ tokens: [...hypothesis.tokens, token], score });
        parents.push(parent);
      }
    }
    if (this.finished.length >= beam) return this.finish();
    if (next[0].tokens.length >= limit) {
      // Cut off: the current hypotheses count, unless one has ended by itself.
      if (this.finished.length === 0) this.finished.push(...next);
      return this.finish();
    }
    this.hypotheses = next;
    return parents;
  }

  /** Finished hypotheses with their normalised scores, the best first; of equals the one that ended first. */
  private ranked(): ScoredTokens[] {
    const scored = this.finished.map((one) => ({ tokens: one.tokens, score: this.normalised(one) }));
    return scored.sort((a, b) => b.score - a.score);
  }

  private normalised({ tokens, score }: Hypothesis): number {
    return score / (tokens.length + 1) ** this.options.lengthPenalty;
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

/** A translation, in tokens. */
export interface Decoded {
  /** Without the end of the sentence. */
  readonly tokens: Int32Array;
  /** Source tokens read before each of them, excluding the end of the source. */
  readonly delays: Int32Array;
  /** Source tokens that were read when the translation ended, counted in the same way. */
  readonly end: number;
  /** The translation ended before the end of the source was read. */
  readonly endedEarly: boolean;
  /** The best translations, the first of which is this one; only if `SearchOptions.nbest` asks for them. */
  readonly nbest?: readonly ScoredTokens[];
}

/** A sentence being translated: what has been read, what is written, and what the policy wants next. */
export class Sentence {
  readonly search: Search;
  /** Source tokens read, counting the end as one. */
  read = 0;
  /** The end of the source has been read. */
  ended = false;
  private readonly delays: number[] = [];

  constructor(
    public policy: Policy,
    options: SearchOptions,
    model: Pick<TokenModel, 'beam' | 'maxPositions'>,
  ) {
    const { beam = searchDefaults.beam } = options;
    if (beam > model.beam) throw new RangeError(`the model was made for a beam of at most ${model.beam}, not ${beam}`);
    // The decoder's first position is that of the start token.
    this.search = new Search(options, model.maxPositions - 1);
  }

  get counts(): Counts {
    const { read, ended } = this;
    return { read, ended, written: this.search.length };
  }

  /** What to do if the policy need not look at anything. */
  get next(): Action {
    return this.decide([]);
  }

  /** What to do after what the policy has looked at. */
  decide(proposals: readonly Proposal[]): Action {
    if (this.ended || this.search.drafting) return 'WRITE';
    const action = this.policy.decide({ ...this.counts, proposals });
    if (action === 'WRITE' && this.read === 0) {
      throw new RangeError(`the policy ${this.policy.name} writes before it has read anything`);
    }
    return action;
  }

  take(isEnd: boolean): void {
    this.read++;
    this.ended = isEnd;
  }

  /** The source is empty: there is nothing to translate, and the model is not called. */
  takeNothing(): void {
    this.take(true);
    this.search.close();
  }

  /** One token of each hypothesis; see `Search.advance`. */
  write(candidates: Candidates, row: number): readonly number[] {
    const before = this.search.length;
    const parents = this.search.advance(candidates, row, this.ended ? this.read - 1 : undefined);
    // Once the source has ended, everything written has the same delay, whichever hypothesis wins.
    if (!this.ended && this.search.length > before) this.delays.push(this.read);
    return parents;
  }

  get decoded(): Decoded {
    const tokens = Int32Array.from(this.search.tokens);
    const end = this.ended ? this.read - 1 : this.read;
    const delays = Int32Array.from(tokens, (_, i) => this.delays[i] ?? end);
    const nbest = this.search.done ? this.search.best : [];
    return { tokens, delays, end, endedEarly: this.search.endedEarly, ...(nbest.length > 0 ? { nbest } : {}) };
  }
}

/** The model has no positions for a sentence, whose number may be given. */
export function tooLong(length: number, most: number, number?: number): InputError {
  const sentence = number === undefined ? 'the sentence' : `sentence ${number}`;
  return new InputError(`${sentence} has ${length} tokens including its end, the model reads at most ${most}`);
}
