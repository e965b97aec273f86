import {
  complete,
  type OptionsOf,
  type Policy,
  type PolicyDescription,
  type PolicySetting,
  wroteTooMuch,
} from './policy.js';

const settings = {
  /** The information that a token must have received to be written. */
  delta: { kind: 'share', default: 0.7, slider: { label: 'δ', max: 1, start: 0.7 } },
} satisfies Record<string, PolicySetting>;

/** Settings of `itst`. */
export type ItstOptions = OptionsOf<typeof settings>;

/**
 * Information transport (Zhang and Feng 2022), over a model that was trained for it: WRITE iff in every layer of the
 * decoder the source tokens read so far have transported at least δ of one unit of information to the next token.
 */
export function itst(options: ItstOptions = {}): Policy {
  const { delta } = complete(settings, options);
  return {
    name: `itst:delta=${delta}`,
    look: () => [{}],
    decide: (state) => {
      const { ended, proposals } = state;
      if (ended) return 'WRITE';
      return !wroteTooMuch(state) && (proposals[0]?.readiness ?? 0) >= delta ? 'WRITE' : 'READ';
    },
  };
}

export const itstPolicy: PolicyDescription = {
  name: 'itst',
  title: 'information transport (ITST)',
  label: 'ITST',
  help: 'write a token that has received delta of information; for models with attention: itst',
  settings,
  unnamed: 'delta',
  models: ['itst'],
  create: (spec) => itst(spec as ItstOptions),
};
