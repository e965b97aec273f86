/** READ: take the next source token. WRITE: put out the next target token. */
export type Action = 'READ' | 'WRITE';

/** How far a sentence is. */
export interface Counts {
  /** Source tokens read so far; the end of the sentence counts as one. */
  readonly read: number;
  /** Target tokens written so far. */
  readonly written: number;
  /** The end of the source has been read: there is nothing more to READ. */
  readonly ended: boolean;
}

/** How a model is asked for the next target token. */
export interface View {
  /** Place of the model among those that the policy runs over. Default 0. */
  readonly model?: number;
  /** Source tokens that the model may see. Default all that have been read. */
  readonly read?: number;
  /**
   * m: target position i (from 0) sees the source up to i + m tokens, as in training for wait-m. Default: each position
   * sees what was read when it was written.
   */
  readonly wait?: number;
  /** Re-decode what is written, so that all of it sees the same source. Default: what the model was trained for. */
  readonly redecode?: boolean;
}

/** Whose attention over the source a policy looks at: that of some heads of one layer of the decoder. */
export interface AttentionChoice {
  /** From 1, the lowest. Default two thirds up (the fourth of six, as in Papi et al. 2023). */
  readonly layer?: number;
  /** From 1. Default all of them. */
  readonly heads?: readonly number[];
}

/** What a model would write next. */
export interface Proposal {
  /** The token; the end of the sentence is one, unless ending early is blocked. */
  readonly token: number;
  /** Its log-probability. */
  readonly score: number;
  /** The model itself asks for more of the source first, as monotonic attention may. */
  readonly wantsMore: boolean;
  /** How ready a model with a threshold is to write: the information that it has received, for `itst`. */
  readonly readiness?: number;
  /** Attention of the token over the source tokens that were read, the mean of the heads; for `Policy.attention`. */
  readonly attention?: Float32Array;
}

/** What a policy knows about a sentence. */
export interface PolicyState extends Counts {
  /** What came of the views that the policy wanted to look at, in their order. */
  readonly proposals: readonly Proposal[];
}

/**
 * Decides what to do next. It must READ before it first WRITEs; once the source has ended only WRITE is left, and it is
 * asked no more. It keeps nothing of a sentence: one policy serves many at once.
 */
export interface Policy {
  /** As `parsePolicies` reads it, with everything that matters to the result. */
  readonly name: string;
  /**
   * What it has to see before it decides. The first view is the one whose token is written, also where the source has
   * ended, with a beam. Default nothing, and writing with model 0.
   */
  look?(counts: Counts): readonly View[];
  /** The attention that it has to see with every proposal. Default none. */
  readonly attention?: AttentionChoice;
  /** Whether to read a token or to write one. */
  decide(state: PolicyState): Action;
}
