import type { Cache } from './cache.js';
import type { Candidates } from './search.js';
import type { StepModel } from './step-model.js';

/** What comes after `prefix`, when `read` tokens of the source are known? */
export interface Question<State extends object = object> {
  /** What the model keeps of this sentence. */
  readonly state: State;
  /** Source tokens, `</s>` among them once it is known. There may be more than `read`, which must not matter. */
  readonly source: readonly number[];
  readonly read: number;
  /** Target tokens, without the start token. */
  readonly prefix: readonly number[];
  /** As in `View`. */
  readonly wait?: number;
  /** As in `View`. */
  readonly redecode?: boolean;
}

/** Answers to questions, one row for each. */
export interface Answers extends Candidates {
  /** Rows whose model asks for more of the source before it writes. Default none. */
  readonly wantsMore?: readonly boolean[];
}

export function answerRow({ width, tokens, scores, wantsMore }: Answers, row: number): Answers {
  const [from, to] = [row * width, (row + 1) * width];
  return {
    width,
    tokens: tokens.slice(from, to),
    scores: scores.slice(from, to),
    wantsMore: [wantsMore?.[row] ?? false],
  };
}

/** Answers of the same width one below the other. */
export function stackedAnswers(parts: readonly Answers[]): Answers {
  const [{ width }] = parts;
  const size = parts.reduce((sum, { tokens }) => sum + tokens.length, 0);
  const tokens = new Int32Array(size);
  const scores = new Float32Array(size);
  let at = 0;
  for (const part of parts) {
    tokens.set(part.tokens, at);
    scores.set(part.scores, at);
    at += part.tokens.length;
  }
  const wantsMore = parts.flatMap(
    (part) => part.wantsMore ?? new Array<boolean>(part.tokens.length / width).fill(false),
  );
  return { width, tokens, scores, wantsMore };
}

/**
 * A model that sentences are translated with under any policy. It answers questions; what it keeps between them, in the
 * state of a sentence, saves time and nothing else.
 */
export interface TokenModel<State extends object = object> {
  /** Largest beam that it proposes enough candidates for. */
  readonly beam: number;
  /** Longest sentence, its end counted. */
  readonly maxPositions: number;
  /** Of a sentence of which nothing is read yet. */
  begin(): State;
  /** All questions about one sentence at one moment come together; those about other sentences may come with them. */
  propose(questions: readonly Question<State>[]): Promise<Answers>;
  /** Takes in source tokens as soon as they are there, where that shortens the next answer. */
  listen?(sentences: readonly { readonly state: State; readonly source: readonly number[] }[]): Promise<void>;
}

/** A model that reads and writes token by token over the caller's caches: `StepModel`, and others like it. */
export type StepwiseModel = Pick<
  StepModel,
  'beam' | 'maxPositions' | 'reencodes' | 'redecodes' | 'source' | 'target' | 'read' | 'encode'
> & {
  write(target: Cache, memory: Cache, rows: StepRows): Promise<Answers>;
};

/** See `StepModel.write`. */
export interface StepRows {
  readonly tokens: readonly (readonly number[])[];
  readonly lengths: readonly number[];
  readonly visible: readonly number[];
  /** The visible source tokens are all. */
  readonly ended: readonly boolean[];
}
