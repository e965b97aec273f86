import type { AttentionChoice } from '../policies/policy.js';
import type { Candidates } from './search.js';

/** What comes after `prefix`, when `read` tokens of the source are known? */
export interface Question<State extends object = object> {
  /** The model's state for this sentence. */
  readonly state: State;
  /** Source tokens, `</s>` among them once it is known. There may be more than `read`, which must not matter. */
  readonly source: readonly number[];
  readonly read: number;
  /** Target tokens, without the start token. */
  readonly prefix: readonly number[];
  /**
   * Tokens of the prefix that are written. Those after them are tentative: when they are written, more of the source may
   * be known. Default all.
   */
  readonly written?: number;
  /** As in `View`. */
  readonly wait?: number;
  /** As in `View`. */
  readonly redecode?: boolean;
  /** As in `Policy`. */
  readonly attention?: AttentionChoice;
}

/** Answers to questions, one row for each. */
export interface Answers extends Candidates {
  /** Rows whose model asks for more of the source before it writes. Default none. */
  readonly wantsMore?: readonly boolean[];
  /** Of each row, as in `Proposal`. Default none. */
  readonly readiness?: readonly number[];
  /** Of each row that asked for it: the attention over the source tokens that were seen. */
  readonly attention?: readonly (Float32Array | undefined)[];
}

export function answerRow({ width, tokens, scores, wantsMore, readiness, attention }: Answers, row: number): Answers {
  const [from, to] = [row * width, (row + 1) * width];
  return {
    width,
    tokens: tokens.slice(from, to),
    scores: scores.slice(from, to),
    wantsMore: [wantsMore?.[row] ?? false],
    ...(readiness === undefined ? {} : { readiness: [readiness[row]] }),
    ...(attention?.[row] === undefined ? {} : { attention: [attention[row]] }),
  };
}

/** Concatenates answers of the same width. */
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
  const rows = ({ tokens: all }: Answers): number => all.length / width;
  const wantsMore = parts.flatMap((part) => part.wantsMore ?? new Array<boolean>(rows(part)).fill(false));
  const ready = parts.flatMap((part) => part.readiness ?? []);
  const readiness = ready.length === wantsMore.length ? { readiness: ready } : {};
  if (parts.every((part) => part.attention === undefined)) return { width, tokens, scores, wantsMore, ...readiness };
  const attention = parts.flatMap((part) => part.attention ?? new Array<undefined>(rows(part)).fill(undefined));
  return { width, tokens, scores, wantsMore, ...readiness, attention };
}

/** Limits of a model. */
export interface ModelReach {
  /** Largest beam for which it proposes enough candidates. */
  readonly beam: number;
  /** Longest sentence, including its end. */
  readonly maxPositions: number;
  /** The decoder whose attention it can return. Default: none. */
  readonly attention?: { readonly layers: number; readonly heads: number };
}

/** A model that delegates to another has its limits. */
export class ReachOf<Model extends ModelReach> implements ModelReach {
  constructor(protected readonly model: Model) {}

  get beam(): number {
    return this.model.beam;
  }

  get maxPositions(): number {
    return this.model.maxPositions;
  }

  get attention(): ModelReach['attention'] {
    return this.model.attention;
  }
}

/**
 * A model for translating sentences under any policy. It answers questions; what it keeps between them, in the
 * state of a sentence, only saves time.
 */
export interface TokenModel<State extends object = object> extends ModelReach {
  /** State of a sentence before anything is read. */
  begin(): State;
  /** All questions about one sentence at one moment come together; those about other sentences may come with them. */
  propose(questions: readonly Question<State>[]): Promise<Answers>;
  /** Processes source tokens as soon as they arrive, if that speeds up the next answer. */
  readAhead?(sentences: readonly { readonly state: State; readonly source: readonly number[] }[]): Promise<void>;
}
