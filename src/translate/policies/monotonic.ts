import type { Policy, PolicyDescription } from './policy.js';

/** The model decides: READ while one of its heads needs a source token that has not been read. */
export function monotonic(): Policy {
  return {
    name: 'monotonic',
    look: () => [{}],
    decide: ({ ended, proposals }) => (!ended && (proposals[0]?.wantsMore ?? true) ? 'READ' : 'WRITE'),
  };
}

export const monotonicPolicy: PolicyDescription = {
  name: 'monotonic',
  title: 'monotonic attention',
  label: 'monotonic',
  labels: { milk: 'MILk', 'mma-il': 'MMA-IL', 'mma-h': 'MMA-H' },
  latencyKeys: {
    latencyWeight: ['problem.latencyWeight', 'problem.main'],
    varianceWeight: ['problem.varianceWeight'],
  },
  help: 'the model decides; for models with monotonic attention',
  settings: {},
  models: ['monotonic'],
  create: monotonic,
};
