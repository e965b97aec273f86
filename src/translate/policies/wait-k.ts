import { InputError } from '../../errors.js';
import type { Policy, PolicyDescription } from './policy.js';

/**
 * wait-k (Ma et al. 2019): read k tokens, then write and read in turn. Target position i (from 0) is written when the
 * source positions j ≤ i + k − 1 are known, or all of them. `full` waits for the end of the source.
 */
export function waitK(k: number | 'full'): Policy {
  if (k === 'full') return { name: 'wait-k:full', decide: ({ ended }) => (ended ? 'WRITE' : 'READ') };
  if (!Number.isSafeInteger(k) || k < 1) {
    throw new InputError(`expected a whole number of at least 1, found ${k}`, { key: 'k' });
  }
  return {
    name: `wait-k:${k}`,
    decide: ({ read, written, ended }) => (!ended && read < written + k ? 'READ' : 'WRITE'),
  };
}

export const waitKPolicy: PolicyDescription = {
  name: 'wait-k',
  title: 'wait-k',
  label: 'wait-k',
  help: 'read k tokens, then alternate writing and reading; wait-k:full reads everything first',
  settings: { k: { kind: 'wait', default: null, slider: { label: 'k', max: 15, start: 3 } } },
  unnamed: 'k',
  models: ['wait-k', 'full'],
  create: ({ k }, [trained]) => waitK((k ?? trained) as number | 'full'),
};
