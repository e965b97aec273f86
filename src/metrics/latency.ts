import { InputError } from '../errors.js';

/**
 * What the lengths mean.
 *
 * - `simuleval`: the tool of that name (≥ 1.1): words, no end-of-sentence counted, AL and AP against the reference
 *   length, LAAL against the longer of output and reference, DAL against the output length.
 * - `stacl`: the scripts of the wait-k authors (Ma et al. 2019): every measure against the length of the output,
 *   usually counted in subwords. LAAL then equals AL.
 */
export type LatencyConvention = 'simuleval' | 'stacl';

export const LATENCY_CONVENTIONS: readonly LatencyConvention[] = ['simuleval', 'stacl'];

/** One simultaneous translation, as far as its latency is concerned. */
export interface LatencyInstance {
  /** Source tokens read before each output token was written. */
  readonly delays: ArrayLike<number>;
  /** Tokens of the source, without an end-of-sentence. */
  readonly sourceLength: number;
  /** Tokens of the reference; absent where there is none, and the output length stands in (as in SimulEval). */
  readonly referenceLength?: number;
}

export interface Latency {
  readonly AL: number;
  readonly LAAL: number;
  readonly AP: number;
  readonly DAL: number;
}

export interface CorpusLatency extends Latency {
  /** Instances that count. */
  readonly counted: number;
  /** Instances without any output: they have no delays and do not count, as in SimulEval. */
  readonly skipped: number;
}

/** Delays that no translator of a text has: the figures are those of their definitions, but say little. */
export interface OddDelays {
  /** Instances with a delay below the one before it. */
  readonly falling: number;
  /** Instances with a delay beyond their source. */
  readonly beyondSource: number;
}

export function oddDelays(instances: readonly LatencyInstance[]): OddDelays {
  const having = (odd: (delays: readonly number[], sourceLength: number) => boolean): number =>
    instances.filter(({ delays, sourceLength }) => odd(Array.from(delays), sourceLength)).length;
  return {
    falling: having((delays) => delays.some((delay, i) => i > 0 && delay < delays[i - 1])),
    beyondSource: having((delays, sourceLength) => delays.some((delay) => delay > sourceLength)),
  };
}

/** The latency of one translation; undefined where nothing was written. */
export function instanceLatency(
  instance: LatencyInstance,
  convention: LatencyConvention = 'simuleval',
): Latency | undefined {
  const { delays, sourceLength } = instance;
  if (delays.length === 0) return undefined;
  const reference = convention === 'simuleval' ? (instance.referenceLength ?? delays.length) : delays.length;
  return {
    AL: averageLagging(delays, sourceLength, reference),
    LAAL: averageLagging(delays, sourceLength, Math.max(delays.length, reference)),
    AP: averageProportion(delays, sourceLength, reference),
    DAL: differentiableAverageLagging(delays, sourceLength),
  };
}

/** The mean over the instances that have an output. */
export function corpusLatency(
  instances: readonly LatencyInstance[],
  convention: LatencyConvention = 'simuleval',
): CorpusLatency {
  const sums = { AL: 0, LAAL: 0, AP: 0, DAL: 0 };
  let counted = 0;
  for (const instance of instances) {
    const latency = instanceLatency(instance, convention);
    if (latency === undefined) continue;
    counted++;
    sums.AL += latency.AL;
    sums.LAAL += latency.LAAL;
    sums.AP += latency.AP;
    sums.DAL += latency.DAL;
  }
  if (counted === 0) throw new InputError('latency is undefined: no instance has an output');
  return {
    AL: sums.AL / counted,
    LAAL: sums.LAAL / counted,
    AP: sums.AP / counted,
    DAL: sums.DAL / counted,
    counted,
    skipped: instances.length - counted,
  };
}

/**
 * Average lagging (Ma et al. 2019, STACL, eq. 8): how many tokens the output is behind an ideal translator that starts
 * at once and keeps the rate γ = |y|/|x|.
 *
 *     AL = 1/τ Σ_{i=1..τ} [g_i − (i−1)/γ],  τ = the first i with g_i ≥ |x| (all, if there is none)
 *
 * With the longer of output and reference as |y| it is LAAL (Polák et al. 2022; Papi et al. 2022). A first delay beyond
 * the source is returned as it is, as SimulEval does.
 */
export function averageLagging(delays: ArrayLike<number>, sourceLength: number, targetLength: number): number {
  if (delays[0] > sourceLength) return delays[0];
  const gamma = targetLength / sourceLength;
  let sum = 0;
  let tau = 0;
  while (tau < delays.length) {
    const delay = delays[tau];
    sum += delay - tau / gamma;
    tau++;
    if (delay >= sourceLength) break;
  }
  return sum / tau;
}

/**
 * Average proportion (Cho & Esipova 2016): the mean share of the source that was read,
 *
 *     AP = Σ_i g_i / (|x| · |y|).
 *
 * With the reference length as |y| it can exceed 1.
 */
export function averageProportion(delays: ArrayLike<number>, sourceLength: number, targetLength: number): number {
  let sum = 0;
  for (let i = 0; i < delays.length; i++) sum += delays[i];
  return sum / (sourceLength * targetLength);
}

/**
 * Differentiable average lagging (Cherry & Foster 2019; Arivazhagan et al. 2019), always against the output length:
 *
 *     DAL = 1/|y| Σ_i [g'_i − (i−1)/γ],  g'_1 = g_1,  g'_i = max(g_i, g'_{i−1} + 1/γ),  γ = |y|/|x|.
 */
export function differentiableAverageLagging(delays: ArrayLike<number>, sourceLength: number): number {
  const gamma = delays.length / sourceLength;
  let last = delays[0];
  let sum = last;
  for (let i = 1; i < delays.length; i++) {
    last = Math.max(delays[i], last + 1 / gamma);
    sum += last - i / gamma;
  }
  return sum / delays.length;
}
