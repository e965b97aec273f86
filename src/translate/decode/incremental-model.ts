import { special } from '../text/vocabulary.js';
import { type HeardSource, memoriesOf, nothingHeard, readOn } from './heard-source.js';
import { answersTo, Desk, type TargetQuestion, type Tracks } from './target-track.js';
import { type Answers, type Question, type StepwiseModel, stackedAnswers, type TokenModel } from './token-model.js';

/** What the Transformer keeps of one sentence. */
export interface IncrementalState {
  readonly heard: HeardSource;
  readonly tracks: Tracks;
}

/**
 * The Transformer as a model for any policy: what it has computed of a sentence is kept in its state, and what is new is
 * computed for all sentences together, whatever their lengths.
 */
export class IncrementalModel implements TokenModel<IncrementalState> {
  /** One for each call that is under way, most often one. */
  private readonly desks: Desk[] = [];

  constructor(private readonly model: StepwiseModel) {}

  get beam(): number {
    return this.model.beam;
  }

  get maxPositions(): number {
    return this.model.maxPositions;
  }

  begin(): IncrementalState {
    return { heard: nothingHeard(this.model), tracks: new Map() };
  }

  async propose(questions: readonly Question<IncrementalState>[]): Promise<Answers> {
    const memories = await memoriesOf(
      this.model,
      questions.map(({ state, source, read }) => ({ heard: state.heard, source, read })),
    );
    const asked = questions.map((question, i): TargetQuestion => {
      const {
        state,
        source,
        read,
        prefix,
        redecode = this.model.redecodes,
        wait = Number.POSITIVE_INFINITY,
      } = question;
      const common = {
        tracks: state.tracks,
        inputs: [special.eos, ...prefix],
        memory: memories[i],
        ended: source[read - 1] === special.eos,
      };
      // A track of another wait may be asked for again, one of another number of source tokens will not.
      return redecode
        ? { ...common, key: `${ANEW}${read}`, group: ANEW, visible: () => read }
        : { ...common, key: `wait ${wait}`, visible: (position) => Math.min(position + wait, read) };
    });
    const desk = this.desks.pop() ?? new Desk();
    try {
      return stackedAnswers(await answersTo(this.model, asked, desk));
    } finally {
      this.desks.push(desk);
    }
  }

  async listen(sentences: readonly { state: IncrementalState; source: readonly number[] }[]): Promise<void> {
    if (this.model.reencodes) return;
    await readOn(
      this.model,
      sentences.map(({ state, source }) => ({ heard: state.heard, source, read: source.length })),
    );
  }
}

const ANEW = 'anew ';
