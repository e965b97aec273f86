import {
  attentionChoice,
  attentionSettings,
  attentionSuffix,
  complete,
  mustRead,
  type OptionsOf,
  type Policy,
  type PolicyDescription,
  type PolicySetting,
} from './policy.js';

const own = {
  /** α: with less attention than this on the last tokens it WRITEs. */
  alpha: { kind: 'share', default: 0.4, slider: { label: 'α', max: 1, start: 0.4 } },
  /** λ: how many tokens are the last ones. */
  lambda: { kind: 'whole', default: 2, slider: { label: 'λ', max: 10, start: 2 } },
} satisfies Record<string, PolicySetting>;
const settings = { ...own, ...attentionSettings };

/** Settings of `edatt`. */
export type EdAttOptions = OptionsOf<typeof settings>;

/**
 * EDAtt (Papi et al. 2022), over any model, without training: with A the cross-attention of the next token over the n
 * source tokens read so far, averaged over heads of one layer, WRITE iff Σ_{j > n − λ} A_j < α, j from 1: the word does
 * not depend on the last λ tokens. With at most λ tokens read all attention is on them: READ.
 */
export function edAtt(options: EdAttOptions = {}): Policy {
  const { alpha, lambda } = complete(own, options);
  return {
    name: `edatt:alpha=${alpha},lambda=${lambda}${attentionSuffix(options)}`,
    attention: attentionChoice(options),
    look: () => [{}],
    decide: (state) => {
      const { ended, read, proposals } = state;
      if (ended) return 'WRITE';
      if (mustRead(state) || read <= lambda) return 'READ';
      const last = proposals[0]?.attention?.subarray(read - lambda) ?? new Float32Array();
      return last.reduce((sum, weight) => sum + weight, 0) < alpha ? 'WRITE' : 'READ';
    },
  };
}

export const edAttPolicy: PolicyDescription = {
  name: 'edatt',
  title: 'EDAtt',
  label: 'EDAtt',
  help: 'write what puts less than alpha of its attention on the last lambda tokens; layer, heads as for alignatt',
  settings,
  models: ['wait-k', 'full'],
  create: (spec) => edAtt(spec as EdAttOptions),
};
