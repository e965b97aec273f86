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
  /** The last tokens that the next word may not be aligned with. */
  f: { kind: 'whole', default: 2, slider: { label: 'f', max: 10, start: 2 } },
} satisfies Record<string, PolicySetting>;
const settings = { ...own, ...attentionSettings };

/** Settings of `alignatt`. */
export type AlignAttOptions = OptionsOf<typeof settings>;

/**
 * AlignAtt (Papi et al. 2023), over any model, without training: with A the cross-attention of the next token over the n
 * source tokens read so far, averaged over heads of one layer, WRITE iff argmax_j A_j < n − f, j from 0: the word is
 * aligned with none of the last f tokens, whose successors may still change it.
 */
export function alignAtt(options: AlignAttOptions = {}): Policy {
  const { f } = complete(own, options);
  return {
    name: `alignatt:f=${f}${attentionSuffix(options)}`,
    attention: attentionChoice(options),
    look: () => [{}],
    decide: (state) => {
      const { ended, read, proposals } = state;
      if (ended) return 'WRITE';
      return !mustRead(state) && mostAttended(proposals[0]?.attention) < read - f ? 'WRITE' : 'READ';
    },
  };
}

function mostAttended(attention: Float32Array = new Float32Array()): number {
  return attention.reduce((best, weight, j) => (weight > attention[best] ? j : best), 0);
}

export const alignAttPolicy: PolicyDescription = {
  name: 'alignatt',
  title: 'AlignAtt',
  label: 'AlignAtt',
  help: 'write what is not aligned with the last f tokens; layer=l,heads=h+h choose the attention',
  settings,
  models: ['wait-k', 'full'],
  create: (spec) => alignAtt(spec as AlignAttOptions),
};
