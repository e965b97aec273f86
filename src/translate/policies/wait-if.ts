import { special } from '../text/vocabulary.js';
import {
  complete,
  type OptionsOf,
  type Policy,
  type PolicyDescription,
  type PolicySetting,
  type Proposal,
} from './policy.js';

const settings = {
  /** Tokens that are read before the model is first asked. */
  initial: { kind: 'whole', default: 3, slider: { label: 'first', max: 10, start: 2 } },
  /** Tokens that are read at a time after that. */
  step: { kind: 'whole', default: 1, slider: { label: 'step', max: 5, start: 1 } },
} satisfies Record<string, PolicySetting>;

/** Settings of the wait-if policies. */
export type WaitIfOptions = OptionsOf<typeof settings>;

/**
 * Wait-if-diff (Cho and Esipova 2016): the next token is written if `step` more source tokens have not changed it, that
 * is argmax p(y | y_<t, x_≤r) = argmax p(y | y_<t, x_≤r−step); otherwise it READs. What is written is re-decoded
 * after every READ, as a full-sentence model needs it.
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
  options: WaitIfOptions,
  settled: (now: Proposal, before: Proposal) => boolean,
): Policy {
  const { initial, step } = complete(settings, options);
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
      // A whole-sentence model takes every prefix for a sentence: a proposed end means READ.
      return now !== undefined && now.token !== special.eos && settled(now, before) ? 'WRITE' : 'READ';
    },
  };
}

const OVER: PolicyDescription['models'] = ['wait-k', 'full'];

export const waitIfWorsePolicy: PolicyDescription = {
  name: 'wait-if-worse',
  title: 'wait-if-worse',
  label: 'WIW',
  help: 'write what another read has neither changed nor made less likely',
  settings,
  models: OVER,
  create: (spec) => waitIfWorse(spec as WaitIfOptions),
};

export const waitIfDiffPolicy: PolicyDescription = {
  name: 'wait-if-diff',
  title: 'wait-if-diff',
  label: 'WID',
  help: 'write what another read has not changed',
  settings,
  models: OVER,
  create: (spec) => waitIfDiff(spec as WaitIfOptions),
};
