import { special } from '../text/vocabulary.js';
import { ask, Interpreter } from './interpreter.js';
import type { Policy } from './policy.js';
import { type SearchOptions, searchDefaults } from './search.js';
import type { Decoded } from './sentence.js';
import type { TokenModel } from './token-model.js';

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
 * Translates one sentence while its tokens arrive, under any policy. The tokens are those of `interpretBatch` with the
 * same policy. With a beam, what remains to be written once the source has ended comes all at once.
 */
export class TokenStream {
  private readonly interpreter: Interpreter;
  private complete = false;
  /** Target tokens that are settled. */
  private written = 0;

  /** @param models those that the policy runs over, most often one */
  constructor(
    private readonly models: readonly TokenModel[],
    policy: Policy,
    private readonly options: StreamOptions = {},
  ) {
    const onRead = (token: number): void => options.onEvent?.({ action: 'READ', token });
    this.interpreter = new Interpreter(models, policy, { ...options, onRead });
  }

  get policy(): Policy {
    return this.interpreter.policy;
  }

  /** Another policy over the same models from here on. What is written stays. */
  set policy(policy: Policy) {
    this.interpreter.policy = policy;
  }

  /** The translation is complete; further source tokens are not looked at. */
  get done(): boolean {
    return this.interpreter.done;
  }

  /** The translation so far. */
  get decoded(): Decoded {
    return this.interpreter.decoded;
  }

  /** Takes source tokens and returns the target tokens that can now be written. */
  push(tokens: Iterable<number>): Promise<number[]> {
    if (this.complete) throw new RangeError('the sentence has ended: nothing can be pushed');
    for (const token of tokens) this.interpreter.hear(token);
    return this.work();
  }

  /** The source is complete: returns the rest of the translation. */
  end(): Promise<number[]> {
    if (this.complete) throw new RangeError('the sentence has ended already');
    this.complete = true;
    this.interpreter.hear(special.eos);
    return this.work();
  }

  private async work(): Promise<number[]> {
    const { interpreter, models } = this;
    const start = this.written;
    for (let asked = interpreter.questions(); asked.length > 0; asked = interpreter.questions()) {
      interpreter.answer(await ask(models, asked));
      this.announce();
    }
    // Of several models most are never asked.
    if (!this.done && models.length === 1) await models[0].listen?.([interpreter.heard(0)]);
    return interpreter.sentence.search.tokens.slice(start);
  }

  private announce(): void {
    const { search, ended } = this.interpreter.sentence;
    // Among several hypotheses nothing is settled before the search is over.
    if (ended && !search.done && (this.options.beam ?? searchDefaults.beam) > 1) return;
    const { tokens } = search;
    for (; this.written < tokens.length; this.written++) {
      this.options.onEvent?.({ action: 'WRITE', token: tokens[this.written] });
    }
  }
}
