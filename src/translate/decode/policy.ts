import { InputError } from '../../errors.js';

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
   * sees what had been read when it was written.
   */
  readonly wait?: number;
  /** Decode what is written anew, so that all of it sees the same source. Default what the model was trained for. */
  readonly redecode?: boolean;
}

/** What a model would write next. */
export interface Proposal {
  /** The token; the end of the sentence is one, unless ending early is blocked. */
  readonly token: number;
  /** Its log-probability. */
  readonly score: number;
  /** The model itself asks for more of the source first, as monotonic attention may. */
  readonly wantsMore: boolean;
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
  /** As `parsePolicy` reads it, with everything that matters to the result. */
  readonly name: string;
  /**
   * What it has to see before it decides. The first view is the one whose token is written, also where the source has
   * ended, with a beam. Default nothing, and writing with model 0.
   */
  look?(counts: Counts): readonly View[];
  decide(state: PolicyState): Action;
}

/**
 * wait-k (Ma et al. 2019): read k tokens, then write and read in turn. Target position i (from 0) is written when the
 * source positions j ≤ i + k − 1 are known, or all of them. `full` waits for the end of the source.
 */
export function waitK(k: number | 'full'): Policy {
  if (k === 'full') return { name: 'wait-k:full', decide: ({ ended }) => (ended ? 'WRITE' : 'READ') };
  if (!Number.isSafeInteger(k) || k < 1) {
    throw new InputError(`expected a whole number from 1 on, found ${k}`, { key: 'k' });
  }
  return {
    name: `wait-k:${k}`,
    decide: ({ read, written, ended }) => (!ended && read < written + k ? 'READ' : 'WRITE'),
  };
}
