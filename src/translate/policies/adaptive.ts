import { InputError } from '../../errors.js';
import {
  type Counts,
  complete,
  type OptionsOf,
  type Policy,
  type PolicyDescription,
  type PolicySetting,
  type View,
} from './policy.js';

const settings = {
  /** k_min: with a smaller lag it always READs. */
  min: { kind: 'whole', default: 1, slider: { label: 'shortest', max: 10, start: 1 } },
  /** k_max: with this lag it always WRITEs. */
  max: { kind: 'whole', default: 10, slider: { label: 'longest', max: 12, start: 10 } },
  /** ρ at the lag k_min. */
  from: { kind: 'share', default: 1, slider: { label: 'ρ first', max: 1, start: 1 } },
  /** ρ at the lag k_max; between the two ρ is linear. */
  to: { kind: 'share', default: 0, slider: { label: 'ρ last', max: 1, start: 0 } },
} satisfies Record<string, PolicySetting>;

/** Settings of `adaptive`. */
export type AdaptiveOptions = OptionsOf<typeof settings>;

/**
 * Choosing among wait-k_min … wait-k_max by confidence (Zheng et al. 2020). With the lag l = |read| − |written| the model
 * of wait-l is asked, and its token is written if max_v p_l(v) ≥ ρ_l, where ρ_l = ρ_min − (l − k_min)(ρ_min − ρ_max) /
 * (k_max − k_min). Once the source has ended the model of wait-k_max continues.
 *
 * @param waits what the models were trained for, one wait each; a lag uses the nearest one, the smaller of two equally
 * near. One model of many waits is used for all lags. In each case target position i sees i + l source tokens, as in
 * training for wait-l.
 */
export function adaptive(options: AdaptiveOptions = {}, waits: readonly number[] = [1]): Policy {
  const { min, max, from, to } = complete(settings, options);
  if (min > max) throw new InputError(`expected at most max = ${max}, found ${min}`, { key: 'min' });
  const threshold = (lag: number): number => from - ((lag - min) * (from - to)) / (max - min);
  const views = new Map<number, View>();
  for (let lag = min; lag <= max; lag++) views.set(lag, { model: nearest(waits, lag), wait: lag });
  const lagOf = ({ read, written, ended }: Counts): number => (ended ? max : Math.min(read - written, max));
  return {
    name: `adaptive:min=${min},max=${max},from=${from},to=${to}`,
    look: (counts) => {
      const view = views.get(lagOf(counts));
      return view === undefined ? [] : [view];
    },
    decide: (state) => {
      const lag = lagOf(state);
      if (lag === max) return 'WRITE';
      const [proposal] = state.proposals;
      return proposal !== undefined && Math.exp(proposal.score) >= threshold(lag) ? 'WRITE' : 'READ';
    },
  };
}

export const adaptivePolicy: PolicyDescription = {
  name: 'adaptive',
  title: 'adaptive',
  label: 'Zheng et al.',
  help: 'wait-min … wait-max by confidence, with thresholds from … to',
  settings,
  models: ['wait-k'],
  create: (spec, models) => {
    const waits = models.filter((wait) => typeof wait === 'number');
    if (waits.length === models.length) return adaptive(spec as AdaptiveOptions, waits);
    throw new InputError('adaptive is for wait-k models, this one was trained on whole sentences', {
      key: 'policy',
    });
  },
};

function nearest(waits: readonly number[], lag: number): number {
  const distance = (place: number): number => Math.abs(waits[place] - lag);
  return waits
    .map((_, place) => place)
    .reduce((a, b) => {
      const closer = distance(b) - distance(a) || waits[b] - waits[a];
      return closer < 0 ? b : a;
    });
}
