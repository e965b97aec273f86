import { special } from '../text/vocabulary.js';
import { tooLong } from './batch.js';
import type { Policy, View } from './policy.js';
import type { SearchOptions } from './search.js';
import { type Decoded, Sentence } from './sentence.js';
import { type Answers, answerRow, type Question, stackedAnswers, type TokenModel } from './token-model.js';

/** A question, and the place of the model that is asked. */
export interface Asked {
  readonly model: number;
  readonly question: Question;
}

export interface InterpreterOptions extends SearchOptions {
  /** Called with each source token when it is read. */
  readonly onRead?: (token: number) => void;
}

/**
 * Takes one sentence through a policy. It hears source tokens and says what it has to ask the models; whoever runs it
 * brings the answers, for one sentence or for many at once.
 */
export class Interpreter {
  readonly sentence: Sentence;
  private readonly maxPositions: number;
  private readonly source: number[] = [];
  private readonly states: (object | undefined)[] = [];
  /** The policy has decided to READ, but there was no token. */
  private wantsToken = false;
  /** What the policy wants to look at, while the answers are awaited. */
  private looking: readonly View[] = [];

  /** @param policy may be replaced at any time; what has been asked is still decided by the one that asked */
  constructor(
    private readonly models: readonly TokenModel[],
    public policy: Policy,
    private readonly options: InterpreterOptions = {},
  ) {
    const beam = Math.min(...models.map((model) => model.beam));
    const maxPositions = Math.min(...models.map((model) => model.maxPositions));
    this.sentence = new Sentence(policy, options, { beam, maxPositions });
    this.maxPositions = maxPositions;
  }

  /** The translation is complete. */
  get done(): boolean {
    return this.sentence.search.done;
  }

  get decoded(): Decoded {
    return this.sentence.decoded;
  }

  /** A source token, `</s>` at the end. A source of no word is translated to nothing. */
  hear(token: number): void {
    if (token === special.eos && this.source.length === 0) this.sentence.takeNothing();
    else this.source.push(token);
  }

  /** Reads as far as the policy wants, then says what is to be asked; nothing if another token or no more is needed. */
  questions(): readonly Asked[] {
    const { sentence } = this;
    if (sentence.policy !== this.policy) {
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

  /** Goes on with the answers to all of `questions()`, in their order. */
  answer(answers: readonly Answers[]): void {
    const { sentence, looking } = this;
    const proposals = looking.map((_, i) => ({
      ...sentence.search.proposal(answers[i], 0),
      wantsMore: answers[i].wantsMore?.[0] ?? false,
    }));
    if (sentence.decide(proposals) === 'READ') this.wantsToken = true;
    else sentence.write(sentence.ended ? stackedAnswers(answers) : answers[0], 0);
  }

  /** What is known of the source to a model; for those that listen ahead. */
  heard(model: number): { readonly state: object; readonly source: readonly number[] } {
    return { state: this.state(model), source: this.source };
  }

  /** What the policy looks at; nothing where there is nothing to see yet, or nothing left to decide. */
  private get views(): readonly View[] {
    const { policy, counts, ended } = this.sentence;
    return ended || counts.read === 0 ? [] : (policy.look?.(counts) ?? []);
  }

  private read(): boolean {
    const { sentence, source } = this;
    if (sentence.read === source.length) return false;
    const token = source[sentence.read];
    sentence.take(token === special.eos);
    this.wantsToken = false;
    if (sentence.read > this.maxPositions) throw tooLong(sentence.read, this.maxPositions);
    this.options.onRead?.(token);
    return true;
  }

  private ask(views: readonly View[]): readonly Asked[] {
    const { policy, counts, search } = this.sentence;
    if (views.length > 0) return views.map((view) => this.question(view, search.tokens));
    const [writer = {}] = policy.look?.(counts) ?? [];
    return search.hypotheses.map(({ tokens }) => this.question(writer, tokens));
  }

  private question({ model = 0, read = this.sentence.read, ...view }: View, prefix: readonly number[]): Asked {
    return { model, question: { state: this.state(model), source: this.source, read, prefix, ...view } };
  }

  private state(model: number): object {
    this.states[model] ??= this.models[model].begin();
    return this.states[model];
  }
}

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
