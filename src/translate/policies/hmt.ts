import { complete, type OptionsOf, type Policy, type PolicyDescription, type PolicySetting } from './policy.js';

const settings = {
  /** Probability from which a moment is chosen. */
  p: { kind: 'share', default: 0.5, slider: { label: 'p', max: 1, start: 0.5 } },
} satisfies Record<string, PolicySetting>;

/** Settings of `hmt`. */
export type HmtOptions = OptionsOf<typeof settings>;

/**
 * The hidden Markov Transformer (Zhang and Feng 2023), over a model that was trained for it: WRITE at the first of the
 * token's moments that the model chooses with a probability of at least ½, at the last of them in any case.
 */
export function hmt(options: HmtOptions = {}): Policy {
  const { p } = complete(settings, options);
  return {
    name: `hmt:p=${p}`,
    look: () => [{}],
    decide: ({ ended, proposals: [next] }) => {
      if (ended) return 'WRITE';
      const { readiness = 0 } = next ?? {};
      return readiness > 0 && readiness >= p ? 'WRITE' : 'READ';
    },
  };
}

export const hmtPolicy: PolicyDescription = {
  name: 'hmt',
  title: 'hidden Markov Transformer (HMT)',
  label: 'HMT',
  latencyKeys: { L: ['problem.candidates.first'] },
  help: 'write at a moment the model chooses with probability p; for models with attention: hmt',
  settings,
  unnamed: 'p',
  models: ['hmt'],
  create: (spec) => hmt(spec as HmtOptions),
};
