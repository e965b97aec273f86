import { InputError } from '../../errors.js';

/** READ: take the next source token. WRITE: put out the next target token. */
export type Action = 'READ' | 'WRITE';

/** What a policy may know about a sentence. */
export interface PolicyState {
  /** Source tokens read so far; the end of the sentence counts as one. */
  readonly read: number;
  /** Target tokens written so far. */
  readonly written: number;
  /** The end of the source has been read: there is nothing more to READ. */
  readonly ended: boolean;
}

/** Decides what to do next. It must READ before it first WRITEs, and WRITE once the source has ended. */
export type Policy = (state: PolicyState) => Action;

/**
 * wait-k (Ma et al. 2019): read k tokens, then write and read in turn. Target position i (from 0) is written when the
 * source positions j ≤ i + k − 1 are known, or all of them.
 */
export function waitK(k: number): Policy {
  if (!Number.isSafeInteger(k) || k < 1) {
    throw new InputError(`expected a whole number from 1 on, found ${k}`, { key: 'k' });
  }
  return ({ read, written, ended }) => (!ended && read < written + k ? 'READ' : 'WRITE');
}
