import type { Policy, Proposal } from '../decode/policy.js';
import { special } from '../text/vocabulary.js';
import { wholeFrom1 } from './settings.js';

export interface WaitIfOptions {
  /** Tokens that are read before the model is first asked. Default 3. */
  readonly initial?: number;
  /** Tokens that are read at a time after that. Default 1. */
  readonly step?: number;
}

/**
 * Wait-if-diff (Cho and Esipova 2016): the next token is written if `step` more source tokens have not changed it, that
 * is argmax p(y | y_<t, x_≤r) = argmax p(y | y_<t, x_≤r−step); otherwise reading goes on. What is written is decoded
 * anew after every READ, as a model of whole sentences needs it.
 */
export function waitIfDiff(options: WaitIfOptions = {}): Policy {
  return waitIf('diff', options, (now, before) => now.token === before.token);
}

/** Wait-if-worse: as wait-if-diff, but the token must not have become less likely either. */
export function waitIfWorse(options: WaitIfOptions = {}): Policy {
  return waitIf('worse', options, (now, before) => now.token === before.token && now.score >= before.score);
}

function waitIf(
  what: 'diff' | 'worse',
  { initial = 3, step = 1 }: WaitIfOptions,
  settled: (now: Proposal, before: Proposal) => boolean,
): Policy {
  wholeFrom1('initial', initial);
  wholeFrom1('step', step);
  return {
    name: `wait-if-${what}:initial=${initial},step=${step}`,
    look: ({ read, ended }) => {
      const now = { read, redecode: true };
      if (ended) return [now];
      const comparable = read >= initial + step && (read - initial) % step === 0;
      return comparable ? [now, { read: read - step, redecode: true }] : [];
    },
    decide: ({ ended, proposals: [now, before] }) => {
      if (ended) return 'WRITE';
      // A model of whole sentences takes every beginning for a sentence: that it would end there means READ.
      return now !== undefined && now.token !== special.eos && settled(now, before) ? 'WRITE' : 'READ';
    },
  };
}
