import { special } from '../text/vocabulary.js';
import { tooLong } from './batch.js';
import { afterReading, type Group, writeRound } from './group.js';
import type { Policy } from './policy.js';
import { type SearchOptions, searchDefaults } from './search.js';
import { type Decoded, Sentence } from './sentence.js';
import type { Source, StepModel } from './step-model.js';

/** A READ or a WRITE as it happens. */
export interface StreamEvent {
  readonly action: 'READ' | 'WRITE';
  /** The token that is read, the end of the source included, or written. */
  readonly token: number;
}

export interface StreamOptions extends SearchOptions {
  readonly onEvent?: (event: StreamEvent) => void;
}

/**
 * Translates one sentence while its tokens arrive: each READ encodes one token and each WRITE decodes one, over what is
 * kept of the earlier ones. The tokens are those of `translateBatch` with the same policy. With a beam, what remains to
 * be written once the source has ended comes all at once.
 */
export class TokenStream {
  private readonly sentence: Sentence;
  private readonly source: Source;
  private readonly waiting: number[] = [];
  /** All that was read. */
  private readonly taken: number[] = [];
  private group: Group;
  private complete = false;
  /** Target tokens that are settled. */
  private written = 0;

  constructor(
    private readonly model: StepModel,
    policy: Policy,
    private readonly options: StreamOptions = {},
  ) {
    this.sentence = new Sentence(policy, options, model);
    this.source = model.source(1);
    this.group = { sentences: [this.sentence], target: model.target(1), memory: this.source.memory };
  }

  /** The translation is complete; further source tokens are not looked at. */
  get done(): boolean {
    return this.sentence.search.done;
  }

  /** The translation so far. */
  get decoded(): Decoded {
    return this.sentence.decoded;
  }

  /** Takes source tokens and returns the target tokens that can now be written. */
  push(tokens: Iterable<number>): Promise<number[]> {
    if (this.complete) throw new RangeError('the sentence has ended: nothing can be pushed');
    this.waiting.push(...tokens);
    return this.work();
  }

  /** The source is complete: returns the rest of the translation. */
  end(): Promise<number[]> {
    if (this.complete) throw new RangeError('the sentence has ended already');
    this.complete = true;
    if (this.taken.length + this.waiting.length === 0) this.sentence.takeNothing();
    else this.waiting.push(special.eos);
    return this.work();
  }

  private async work(): Promise<number[]> {
    const { sentence, waiting } = this;
    const start = this.written;
    while (!sentence.search.done) {
      if (sentence.next === 'READ') {
        const token = waiting.shift();
        if (token === undefined) break;
        await this.take(token);
      } else {
        this.group = await writeRound(this.model, this.group);
        this.announce();
      }
    }
    if (sentence.search.done) waiting.length = 0;
    return sentence.search.tokens.slice(start);
  }

  private async take(token: number): Promise<void> {
    const { model, sentence, taken } = this;
    taken.push(token);
    if (taken.length > model.maxPositions) throw tooLong(taken.length, model.maxPositions);
    const again = model.reencodes ? await model.encode([taken], [taken.length]) : undefined;
    if (again === undefined) await model.read(this.source, [token], [sentence.read]);
    this.group = afterReading(model, this.group, again);
    sentence.take(token === special.eos);
    this.options.onEvent?.({ action: 'READ', token });
  }

  private announce(): void {
    const { search, ended } = this.sentence;
    // Among several hypotheses nothing is settled before the search is over.
    if (ended && !search.done && (this.options.beam ?? searchDefaults.beam) > 1) return;
    const { tokens } = search;
    for (; this.written < tokens.length; this.written++) {
      this.options.onEvent?.({ action: 'WRITE', token: tokens[this.written] });
    }
  }
}
