import { type Arena, type Feeds, Inference, type InputTypes, type Model, type Outputs } from '../../optim/index.js';
import {
  add,
  attentionBias,
  cast,
  div,
  expandDims,
  f32,
  less,
  linearCrossEntropy,
  max,
  mean,
  mul,
  multiplyDims,
  type Parameters,
  range,
  reshape,
  softmax,
  square,
  sub,
  sum,
  type Tensor,
  transpose,
} from '../../tensor/index.js';
import type { Batch } from '../corpus/batches.js';
import type { PairedSequences } from '../corpus/corpus.js';
import { inOrder } from '../loss-evaluation.js';
import { adapted, evaluationMode } from '../model/config.js';
import { lossFeeds, lossInputs, outputBias, outputWeight, type Sources } from '../model/transformer.js';
import { translateMonotonically } from './attention.js';
import { type MonotonicModel, UNLIMITED } from './config.js';
import { hiddenLosses } from './hmt.js';
import { translateByTransport, transportLosses } from './itst.js';

/** What the loss of a batch is computed from. */
export const monotonicInputs = {
  ...lossInputs,
  /** Factor of each sentence's latency. */
  latencyWeights: f32('B'),
  /** δ of each sentence; `itst` alone looks at it. */
  thresholds: f32('B'),
} satisfies InputTypes;

/** What is chosen for the pairs of an update. */
export interface MonotonicChoice {
  /** Factor of each pair's loss. */
  readonly weights: Float32Array;
  /** Factor of each pair's latency. */
  readonly latencyWeights: Float32Array;
  /** δ, of all pairs. */
  readonly threshold: number;
}

/** The batches of an update as inputs of the loss; pairs are counted over all of them. */
export function monotonicFeeds(batches: readonly Batch[], choice: MonotonicChoice): Feeds[] {
  let start = 0;
  return batches.map((batch) => {
    const [first, end, shape] = [start, start + batch.size, [batch.size]];
    start = end;
    return {
      ...lossFeeds(batch, new Int32Array(batch.size), choice.weights.subarray(first, end)),
      latencyWeights: { data: choice.latencyWeights.subarray(first, end), shape },
      thresholds: { data: new Float32Array(batch.size).fill(choice.threshold), shape },
    };
  });
}

export interface MonotonicLossOptions {
  /** ε of label smoothing, in fairseq's form. */
  readonly smoothing: number;
  /** λ_var, of the variance between the heads or its equivalent. */
  readonly varianceWeight: number;
  /** Without noise, and with `plain`. Default false. */
  readonly evaluation?: boolean;
}

/**
 * What is trained: `loss` = Σ_b w_b·(ℓ_b + λ_b·latency_b + λ_var·variance_b), with ℓ_b the sum of the label-smoothed losses
 * of the tokens of sentence b. Other outputs, all [B]: the three parts `smoothed`, `latency` and `variance`, and in
 * evaluation the loss without smoothing, `plain`. The input `waits` is ignored.
 *
 * `latency` and `variance` are those of `latencyLosses`; with `itst`, cost and distance of `transportLosses`. With `hmt`
 * `smoothed` and `plain` are both the marginal loss of `hiddenLosses`, and `variance` is its loss of the states.
 */
export function monotonicLossModel(
  model: MonotonicModel,
  { smoothing, varianceWeight, evaluation = false }: MonotonicLossOptions,
): Model<typeof monotonicInputs> {
  return (own, { source, sourceLengths, previous, target, targetLengths, weights, latencyWeights, thresholds }) => {
    const p = adapted(own, model);
    const lengths = { source: wide(sourceLengths), target: wide(targetLengths) };
    const sources = { ids: wide(source), lengths: lengths.source };
    const total = (smoothed: Tensor, latency: Tensor, variance: Tensor): Tensor =>
      sum(mul(add(smoothed, add(mul(latency, latencyWeights), mul(variance, varianceWeight))), weights));
    if (model.attention === 'hmt') {
      const pair = { previous: wide(previous), target: wide(target) };
      const { marginal, latency, stateLoss } = hiddenLosses(p, model, sources, pair, lengths, smoothing);
      const loss = total(marginal, latency, stateLoss);
      return { loss, smoothed: marginal, latency, variance: stateLoss, ...(evaluation ? { plain: marginal } : {}) };
    }
    const { states, latency, variance } =
      model.attention === 'itst'
        ? transported(p, model, sources, wide(previous), lengths, cast(thresholds, p.dtype))
        : moved(p, model, sources, wide(previous), lengths, { noise: !evaluation });
    const [steps, batch] = target.shape;
    const rows = multiplyDims(steps, batch);
    const x = reshape(states, [rows, model.width]);
    const real = cast(less(expandDims(range(steps), 1), lengths.target), x.dtype); // [T, B]
    const perSentence = (mass: number): Tensor => {
      const losses = linearCrossEntropy(x, outputWeight(p, model), reshape(wide(target), [rows]), {
        smoothing: mass,
        form: 'fairseq',
        bias: outputBias(p, model),
      });
      return sum(mul(reshape(losses, [steps, batch]), real), { axes: [0] });
    };
    const smoothed = perSentence(smoothing);
    const plain: Outputs = evaluation ? { plain: perSentence(0) } : {};
    return { loss: total(smoothed, latency, variance), smoothed, latency, variance, ...plain };
  };
}

/** The decoder's states, and the two further losses of each sentence. */
interface Decided {
  readonly states: Tensor;
  readonly latency: Tensor;
  readonly variance: Tensor;
}

function moved(
  p: Parameters,
  model: MonotonicModel,
  sources: Sources,
  previous: Tensor,
  lengths: Lengths,
  options: { readonly noise: boolean },
): Decided {
  const { states, delays } = translateMonotonically(p, model, sources, previous, options);
  const { lagging: latency, variance } = latencyLosses(delays, lengths);
  return { states, latency, variance };
}

function transported(
  p: Parameters,
  model: MonotonicModel,
  sources: Sources,
  previous: Tensor,
  lengths: Lengths,
  thresholds: Tensor,
): Decided {
  const { states, information } = translateByTransport(p, model, sources, previous, thresholds);
  const { cost: latency, distance: variance } = transportLosses(information, lengths);
  return { states, latency, variance };
}

const wide = (x: Tensor): Tensor => cast(x, 'i64');

export interface Lengths {
  /** |x|, i64 [B], including its end. */
  readonly source: Tensor;
  /** |y|, i64 [B], including its end. */
  readonly target: Tensor;
}

/**
 * The two latency losses of each sentence, both [B], from the expected delays g [B, N, T] of its N moving heads:
 *
 * - `lagging`: the differentiable average lagging of the heads' mean delay, weighted by softmax(g) over the heads (Ma
 *   et al. 2020): the head that is furthest ahead keeps the others waiting.
 * - `variance`: (1/|y|) Σ_i Var(g_i) over the heads, which keeps them together.
 */
export function latencyLosses(
  delays: Tensor,
  lengths: Lengths,
): { readonly lagging: Tensor; readonly variance: Tensor } {
  const g = transpose(delays, [0, 2, 1]); // [B, T, N]
  const weighted = sum(mul(softmax(g), g), { axes: [-1] }); // [B, T]
  const spread = mean(square(sub(g, mean(g, { axes: [-1], keepDims: true }))), { axes: [-1] });
  return { lagging: differentiableLagging(weighted, lengths), variance: meanOverTarget(spread, lengths.target) };
}

/**
 * DAL (Arivazhagan et al. 2019) of delays g [B, T], as [B]: (1/|y|) Σ_i (g′_i − i/γ) with γ = |y|/|x|, i from 0 and
 * g′_i = max(g_i, g′_i−1 + 1/γ). Unrolled, g′_i − i/γ is the largest g_k − k/γ of all k ≤ i.
 */
export function differentiableLagging(g: Tensor, { source, target }: Lengths): Tensor {
  const [batch, steps] = g.shape;
  const rate = expandDims(div(cast(source, g.dtype), cast(target, g.dtype)), 1); // 1/γ, [B, 1]
  const lags = sub(g, mul(rate, range(steps, g.dtype as 'f32' | 'f64')));
  const past = reshape(attentionBias(steps, steps, { causal: true }, g.dtype)!, [1, steps, steps]);
  const largest = max(add(reshape(lags, [batch, 1, steps]), past), { axes: [-1] }); // [B, T]
  return meanOverTarget(largest, target);
}

/** Mean over the steps of [B, T] that are not padding. */
function meanOverTarget(x: Tensor, lengths: Tensor): Tensor {
  const real = cast(less(range(x.shape[1]), expandDims(lengths, 1)), x.dtype); // [B, T]
  return div(sum(mul(x, real), { axes: [1] }), cast(lengths, x.dtype));
}

/** Of each sentence, [B]: losses as sums over its tokens, in nats, and the two further losses. */
export interface SentenceFigures {
  /** −log P. */
  readonly plain: Float32Array;
  /** With label smoothing. */
  readonly smoothed: Float32Array;
  readonly latency: Float32Array;
  readonly variance: Float32Array;
}

/** Means over a corpus. */
export interface CorpusFigures {
  /** What is trained, without noise and dropout, per target token, in nats. */
  readonly objective: number;
  /** Losses per target token, in nats. */
  readonly plain: number;
  readonly smoothed: number;
  /** The further losses per sentence. */
  readonly latency: number;
  readonly variance: number;
}

export interface MonotonicEvaluationOptions extends MonotonicLossOptions {
  /** λ of the main task. */
  readonly latencyWeight: number;
  /** δ of `itst`. Default: no limit. */
  readonly threshold?: number;
  readonly threads?: number;
}

/** The losses of a model in evaluation mode, with the current parameters of an arena. */
export class MonotonicEvaluation {
  private constructor(
    private readonly inference: Inference,
    private readonly options: MonotonicEvaluationOptions,
  ) {}

  static async create(
    model: MonotonicModel,
    arena: Arena,
    options: MonotonicEvaluationOptions,
  ): Promise<MonotonicEvaluation> {
    const still = { ...model, ...evaluationMode(model) };
    const inference = await Inference.create({
      model: monotonicLossModel(still, { ...options, evaluation: true }),
      inputs: monotonicInputs,
      arena,
      threads: options.threads,
    });
    return new MonotonicEvaluation(inference, options);
  }

  async sentences(batch: Batch): Promise<SentenceFigures> {
    const none = new Float32Array(batch.size);
    const { threshold = UNLIMITED } = this.options;
    const [feeds] = monotonicFeeds([batch], { weights: none, latencyWeights: none, threshold });
    const found = await this.inference.run(feeds, { outputs: FIGURES });
    const floats = (name: (typeof FIGURES)[number]): Float32Array => found[name].data as Float32Array;
    return {
      plain: floats('plain'),
      smoothed: floats('smoothed'),
      latency: floats('latency'),
      variance: floats('variance'),
    };
  }

  /** Of a whole split, in batches of at most `maxTokens` tokens. */
  async corpus(pairs: PairedSequences, maxTokens: number): Promise<CorpusFigures> {
    const sums = { plain: 0, smoothed: 0, latency: 0, variance: 0 };
    let [tokens, sentences] = [0, 0];
    for (const batch of inOrder(pairs, maxTokens)) {
      const figures = await this.sentences(batch);
      for (const name of FIGURES) for (const value of figures[name]) sums[name] += value;
      for (const length of batch.targetLengths) tokens += length;
      sentences += batch.size;
    }
    const { latencyWeight, varianceWeight } = this.options;
    const objective = sums.smoothed + latencyWeight * sums.latency + varianceWeight * sums.variance;
    return {
      objective: objective / tokens,
      plain: sums.plain / tokens,
      smoothed: sums.smoothed / tokens,
      latency: sums.latency / sentences,
      variance: sums.variance / sentences,
    };
  }

  close(): Promise<void> {
    return this.inference.close();
  }
}

const FIGURES = ['plain', 'smoothed', 'latency', 'variance'] as const;
