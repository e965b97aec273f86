import type { Policy } from '../decode/policy.js';

/** Monotonic attention decides itself: READ while one of its heads asks for a source token that has not been read. */
export function monotonic(): Policy {
  return {
    name: 'monotonic',
    look: () => [{}],
    decide: ({ ended, proposals }) => (!ended && (proposals[0]?.wantsMore ?? true) ? 'READ' : 'WRITE'),
  };
}
