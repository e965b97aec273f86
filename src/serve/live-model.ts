import type { DeviceChoice } from '../devices.js';
import type { StreamOptions } from '../translate/decode/stream.js';
import { type TextSide, TextStream } from '../translate/decode/text-stream.js';
import {
  type Answers,
  answerRow,
  type Question,
  ReachOf,
  stackedAnswers,
  type TokenModel,
} from '../translate/decode/token-model.js';
import { Translator } from '../translate/decode/translator.js';
import type { CheckpointChoice } from '../translate/index.js';
import type { Policy } from '../translate/policies/policy.js';

/** A model that many sentences share. */
export interface LiveModel {
  readonly source: TextSide;
  readonly target: TextSide;
  /** Maximum sentence length in tokens, including its end. */
  readonly maxPositions: number;
  /** The policy that a short text such as `wait-k:3` names. Default the one that the model was trained for. */
  policy(spec?: string): Policy;
  stream(policy: Policy, onEvent?: StreamOptions['onEvent']): TextStream;
  close(): Promise<void>;
}

export interface LiveModelOptions {
  /** Hypotheses once the source has ended. Default 1: every word is written as soon as it is found. */
  readonly beam?: number;
  /** What to do if the model ends a sentence before its source. Default `allow`. */
  readonly earlyEnd?: 'allow' | 'block';
  /** As in `SearchOptions`. Default 1. */
  readonly lengthPenalty?: number;
  /** As in `SearchOptions`; useful with a beam above 1. Default 0. */
  readonly speculate?: number;
  /** Threads inside one operation. Default 1. */
  readonly threads?: number;
  /** What computes. Default cpu. */
  readonly device?: DeviceChoice;
  /** Default `best`. */
  readonly checkpoint?: CheckpointChoice;
  /** URLs of modules that every thread loads first, such as one that adds a policy. Default: none. */
  readonly modules?: readonly string[];
}

export async function openLiveModel(run: string, options: LiveModelOptions = {}): Promise<LiveModel> {
  const { beam = 1, earlyEnd, lengthPenalty, speculate, threads, device, checkpoint } = options;
  const translator = await Translator.open(run, { beam, threads, device, checkpoint });
  const { source, target } = translator;
  const models = translator.models.map((model) => new BatchingModel(model));
  return {
    source,
    target,
    maxPositions: Math.min(...models.map((model) => model.maxPositions)),
    policy: (spec) => translator.policy(spec),
    stream: (policy, onEvent) =>
      new TextStream(models, source, target, policy, { beam, earlyEnd, lengthPenalty, speculate, onEvent }),
    close: () => translator.close(),
  };
}

type Ahead = Parameters<NonNullable<TokenModel['readAhead']>>[0];

/** A model that answers the questions of all streams that wait for it in one call. */
export class BatchingModel extends ReachOf<TokenModel> implements TokenModel {
  readonly readAhead: TokenModel['readAhead'];
  private readonly proposals: Batcher<readonly Question[], Answers>;

  /** `most`: streams in one call. Default 64. */
  constructor(model: TokenModel, most = 64) {
    super(model);
    this.proposals = new Batcher((all) => this.proposeTogether(all), most);
    if (model.readAhead === undefined) return;
    const ahead = new Batcher<Ahead, undefined>(async (all) => {
      await model.readAhead?.(all.flat());
      return all.map(() => undefined);
    }, most);
    this.readAhead = (sentences) => ahead.ask(sentences);
  }

  begin(): object {
    return this.model.begin();
  }

  propose(questions: readonly Question[]): Promise<Answers> {
    return this.proposals.ask(questions);
  }

  private async proposeTogether(all: readonly (readonly Question[])[]): Promise<Answers[]> {
    const answers = await this.model.propose(all.flat());
    let row = 0;
    return all.map((questions) => stackedAnswers(questions.map(() => answerRow(answers, row++))));
  }
}

/**
 * Requests that arrive at about the same time are answered together: everything that has arrived in a turn of the event loop
 * forms one batch. Nothing waits for a batch to fill up.
 */
export class Batcher<Request, Answer> {
  private readonly waiting: Waiting<Request, Answer>[] = [];
  private busy = false;

  /**
   * @param answer one answer for each request, in their order
   * @param most requests in one batch
   */
  constructor(
    private readonly answer: (requests: readonly Request[]) => Promise<readonly Answer[]>,
    private readonly most: number,
  ) {}

  ask(request: Request): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ request, resolve, reject });
      if (!this.busy) void this.work();
    });
  }

  private async work(): Promise<void> {
    this.busy = true;
    while (this.waiting.length > 0) {
      await new Promise(setImmediate);
      await this.serve(this.waiting.splice(0, this.most));
    }
    this.busy = false;
  }

  private async serve(batch: readonly Waiting<Request, Answer>[]): Promise<void> {
    try {
      const answers = await this.answer(batch.map(({ request }) => request));
      batch.forEach(({ resolve }, i) => {
        resolve(answers[i]);
      });
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}

interface Waiting<Request, Answer> {
  readonly request: Request;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}
