import type { Action, Policy } from './policy.js';
import { type Candidates, Search, type SearchOptions, searchDefaults } from './search.js';
import type { StepModel } from './step-model.js';

/** A translation, in tokens. */
export interface Decoded {
  /** Without the end of the sentence. */
  readonly tokens: Int32Array;
  /** Source tokens that were read before each of them, the end of the source not counted. */
  readonly delays: Int32Array;
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
    private readonly policy: Policy,
    options: SearchOptions,
    model: StepModel,
  ) {
    const { beam = searchDefaults.beam } = options;
    if (beam > model.beam) throw new RangeError(`the model was made for a beam of at most ${model.beam}, not ${beam}`);
    // The decoder's first position is that of the start token.
    this.search = new Search(options, model.maxPositions - 1);
  }

  get next(): Action {
    const { read, ended } = this;
    const action = this.policy({ read, ended, written: this.search.length });
    if (action === 'WRITE' && read === 0) throw new RangeError('the policy writes before it has read anything');
    if (action === 'READ' && ended) throw new RangeError('the policy reads on after the end of the source');
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
    const delays = Int32Array.from(tokens, (_, i) => this.delays[i] ?? this.read - 1);
    return { tokens, delays, endedEarly: this.search.endedEarly };
  }
}
