import { InputError } from '../../errors.js';
import type { Policy, View } from '../policies/policy.js';
import { special } from '../text/vocabulary.js';
import { type Decoded, type SearchOptions, Sentence, searchDefaults, tooLong } from './search.js';
import { type Answers, answerRow, type Question, stackedAnswers, type TokenModel } from './token-model.js';

/** A READ or a WRITE as it happens. */
export interface StreamEvent {
  readonly action: 'READ' | 'WRITE';
  /** The token that is read, the end of the source included, or written. */
  readonly token: number;
}

export interface StreamOptions extends SearchOptions {
  readonly onEvent?: (event: StreamEvent) => void;
}

/** A question, and the index of the model to ask. */
export interface Asked {
  readonly model: number;
  readonly question: Question;
}

/**
 * Takes one sentence through a policy, token by token. `push` and `end` ask the models themselves. To ask for many
 * sentences at once, `feed` them their tokens and pass the answers to their `questions` (`decodeBatch`). Either way the
 * tokens are the same. With a beam, the rest after the end of the source comes all at once.
 */
export class TokenStream {
  private readonly sentence: Sentence;
  private readonly maxPositions: number;
  private readonly source: number[] = [];
  private readonly states: (object | undefined)[] = [];
  /** The policy has decided to READ, but there was no token. */
  private wantsToken = false;
  /** What the policy wants to look at, while waiting for the answers. */
  private looking: readonly View[] = [];
  private complete = false;
  /** Target tokens that have been announced. */
  private written = 0;

  /**
   * @param models the models of the policy, usually one
   * @param policy may be replaced at any time; pending questions are still decided by the policy that asked, and what is
   * written stays
   */
  constructor(
    private readonly models: readonly TokenModel[],
    public policy: Policy,
    private readonly options: StreamOptions = {},
  ) {
    const beam = Math.min(...models.map((model) => model.beam));
    const maxPositions = Math.min(...models.map((model) => model.maxPositions));
    requireAttention(policy, models);
    this.sentence = new Sentence(policy, options, { beam, maxPositions });
    this.maxPositions = maxPositions;
  }

  /** The translation is complete; further source tokens are ignored. */
  get done(): boolean {
    return this.sentence.search.done;
  }

  /** The translation so far. */
  get decoded(): Decoded {
    return this.sentence.decoded;
  }

  /** Takes source tokens and returns the target tokens that can now be written. */
  push(tokens: Iterable<number>): Promise<number[]> {
    if (this.complete) throw new RangeError('the sentence has ended: nothing more can be pushed');
    for (const token of tokens) this.feed(token);
    return this.work();
  }

  /** The source is complete: returns the rest of the translation. */
  end(): Promise<number[]> {
    if (this.complete) throw new RangeError('the sentence has already ended');
    this.complete = true;
    this.feed(special.eos);
    return this.work();
  }

  /** A source token, `</s>` at the end. An empty source gives an empty translation. */
  feed(token: number): void {
    if (token === special.eos && this.source.length === 0) this.sentence.takeNothing();
    else this.source.push(token);
  }

  /** Reads as far as the policy wants, then returns its questions; none if it waits for a source token or is done. */
  questions(): readonly Asked[] {
    const { sentence } = this;
    // Attempts are finished before another policy decides.
    if (sentence.policy !== this.policy && !sentence.search.drafting) {
      requireAttention(this.policy, this.models);
      sentence.policy = this.policy;
      this.wantsToken = false;
    }
    while (!this.done) {
      if (this.wantsToken && !this.read()) return [];
      this.looking = this.views;
      if (this.looking.length > 0 || sentence.next === 'WRITE') return this.ask(this.looking);
      this.wantsToken = true;
    }
    return [];
  }

  /** Continues with the answers to all of `questions()`, in their order. */
  answer(answers: readonly Answers[]): void {
    const { sentence, looking } = this;
    const proposals = looking.map((_, i) => ({
      ...sentence.search.proposal(answers[i], 0),
      wantsMore: answers[i].wantsMore?.[0] ?? false,
      readiness: answers[i].readiness?.[0],
      attention: answers[i].attention?.[0],
    }));
    if (sentence.decide(proposals) === 'READ') this.wantsToken = true;
    else sentence.write(looking.length > 0 ? answers[0] : stackedAnswers(answers), 0);
    this.announce();
  }

  private async work(): Promise<number[]> {
    const { models, written: start } = this;
    for (let asked = this.questions(); asked.length > 0; asked = this.questions()) {
      this.answer(await ask(models, asked));
    }
    // Of several models most are never asked.
    if (!this.done && models.length === 1) {
      await models[0].readAhead?.([{ state: this.state(0), source: this.source }]);
    }
    return this.sentence.search.tokens.slice(start);
  }

  private announce(): void {
    const { search, ended } = this.sentence;
    // With several hypotheses nothing is final before the search is over.
    if (ended && !search.done && (this.options.beam ?? searchDefaults.beam) > 1) return;
    const { tokens } = search;
    for (; this.written < tokens.length; this.written++) {
      this.options.onEvent?.({ action: 'WRITE', token: tokens[this.written] });
    }
  }

  /** What the policy looks at; nothing if there is nothing to see yet or nothing left to decide. */
  private get views(): readonly View[] {
    const { policy, counts, ended, search } = this.sentence;
    return ended || search.drafting || counts.read === 0 ? [] : (policy.look?.(counts) ?? []);
  }

  private read(): boolean {
    const { sentence, source } = this;
    if (sentence.read === source.length) return false;
    const token = source[sentence.read];
    sentence.take(token === special.eos);
    this.wantsToken = false;
    if (sentence.read > this.maxPositions) throw tooLong(sentence.read, this.maxPositions);
    this.options.onEvent?.({ action: 'READ', token });
    return true;
  }

  private ask(views: readonly View[]): readonly Asked[] {
    const { policy, counts, search } = this.sentence;
    if (views.length > 0) {
      const { attention } = policy;
      return views.map((view) => this.question({ ...view, ...(attention && { attention }) }, search.tokens));
    }
    const [writer = {}] = policy.look?.(counts) ?? [];
    return search.hypotheses.map(({ tokens }) => this.question(writer, tokens));
  }

  private question(
    { model = 0, read = this.sentence.read, ...view }: View & Pick<Policy, 'attention'>,
    prefix: readonly number[],
  ): Asked {
    const { search } = this.sentence;
    const tried = search.drafting ? { written: search.length } : {};
    return { model, question: { state: this.state(model), source: this.source, read, prefix, ...tried, ...view } };
  }

  private state(model: number): object {
    this.states[model] ??= this.models[model].begin();
    return this.states[model];
  }
}

/** Rejects a policy that looks at attention that the models do not have or do not expose. */
export function requireAttention({ name, attention }: Policy, models: readonly TokenModel[]): void {
  if (attention === undefined) return;
  for (const { attention: there } of models) {
    if (there === undefined) {
      throw new InputError(`${name} needs the attention over the source, which this model does not expose`, KEY);
    }
    const { layer = 1, heads = [] } = attention;
    if (layer > there.layers) {
      throw new InputError(`${name}: the decoder has ${there.layers} layers, found layer ${layer}`, KEY);
    }
    const head = heads.find((one) => one > there.heads);
    if (head !== undefined) throw new InputError(`${name}: a layer has ${there.heads} heads, found head ${head}`, KEY);
  }
}

const KEY = { key: 'policy' };

/** Answers to questions of one or many sentences, each model being asked once. */
export async function ask(models: readonly TokenModel[], asked: readonly Asked[]): Promise<Answers[]> {
  const answers = new Array<Answers>(asked.length);
  for (const [index, model] of models.entries()) {
    const places = asked.flatMap((one, place) => (one.model === index ? [place] : []));
    if (places.length === 0) continue;
    const found = await model.propose(places.map((place) => asked[place].question));
    places.forEach((place, row) => {
      answers[place] = answerRow(found, row);
    });
  }
  return answers;
}
