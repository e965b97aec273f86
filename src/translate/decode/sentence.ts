import type { Action, Counts, Policy, Proposal } from './policy.js';
import { type Candidates, Search, type SearchOptions, searchDefaults } from './search.js';
import type { TokenModel } from './token-model.js';

/** A translation, in tokens. */
export interface Decoded {
  /** Without the end of the sentence. */
  readonly tokens: Int32Array;
  /** Source tokens that were read before each of them, the end of the source not counted. */
  readonly delays: Int32Array;
  /** Source tokens that were read when the translation ended, counted in the same way. */
  readonly end: number;
  /** The translation ended before the end of the source was read. */
  readonly endedEarly: boolean;
}

/** A sentence on its way from source to target: what has been read, what is written, and what the policy wants next. */
export class Sentence {
  readonly search: Search;
  /** Source tokens read, the end counted as one. */
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

  /** What to do where the policy need not look at anything. */
  get next(): Action {
    return this.decide([]);
  }

  /** What to do after what the policy has looked at. */
  decide(proposals: readonly Proposal[]): Action {
    if (this.ended) return 'WRITE';
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

  /** The source ended without a word: there is nothing to translate, and the model is not asked. */
  takeNothing(): void {
    this.take(true);
    this.search.close();
  }

  /** One token of each hypothesis; see `Search.advance`. */
  write(candidates: Candidates, row: number): readonly number[] {
    const before = this.search.length;
    const parents = this.search.advance(candidates, row, this.ended ? this.read - 1 : undefined);
    // Once the source has ended, all that is still to be written has the same delay, whichever hypothesis wins.
    if (!this.ended && this.search.length > before) this.delays.push(this.read);
    return parents;
  }

  get decoded(): Decoded {
    const tokens = Int32Array.from(this.search.tokens);
    const end = this.ended ? this.read - 1 : this.read;
    const delays = Int32Array.from(tokens, (_, i) => this.delays[i] ?? end);
    return { tokens, delays, end, endedEarly: this.search.endedEarly };
  }
}
