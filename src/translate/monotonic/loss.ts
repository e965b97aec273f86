import { type Arena, Inference, type Model, type Outputs } from '../../optim/index.js';
import {
  add,
  attentionBias,
  cast,
  div,
  expandDims,
  less,
  linearCrossEntropy,
  max,
  mean,
  mul,
  multiplyDims,
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
import { evaluationMode } from '../model/config.js';
import { lossFeeds, lossInputs } from '../model/loss.js';
import { outputBias, outputWeight } from '../model/transformer.js';
import { translateMonotonically } from './attention.js';
import type { MonotonicModel } from './config.js';

export interface MonotonicLossOptions {
  /** ε of label smoothing, in fairseq's form. */
  readonly smoothing: number;
  /** λ_avg, of the average lagging. */
  readonly latencyWeight: number;
  /** λ_var, of the variance between the heads. */
  readonly varianceWeight: number;
  /** Without noise, and with `plain`. Default false. */
  readonly evaluation?: boolean;
}

/**
 * What is trained: `loss` = Σ_b w_b·(ℓ_b + λ_avg·DAL_b + λ_var·Var_b), with ℓ_b the sum of the label-smoothed losses of
 * the tokens of sentence b. Other outputs, all [B]: the three parts `smoothed`, `lagging` and `variance`, and in
 * evaluation the loss without smoothing, `plain`. Of the inputs, `waits` is not looked at.
 */
export function monotonicLossModel(
  model: MonotonicModel,
  { smoothing, latencyWeight, varianceWeight, evaluation = false }: MonotonicLossOptions,
): Model<typeof lossInputs> {
  return (p, { source, sourceLengths, previous, target, targetLengths, weights }) => {
    const lengths = { source: wide(sourceLengths), target: wide(targetLengths) };
    const sources = { ids: wide(source), lengths: lengths.source };
    const { states, delays } = translateMonotonically(p, model, sources, wide(previous), { noise: !evaluation });
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
    const { lagging, variance } = latencyLosses(delays, lengths);
    const whole = add(smoothed, add(mul(lagging, latencyWeight), mul(variance, varianceWeight)));
    const plain: Outputs = evaluation ? { plain: perSentence(0) } : {};
    return { loss: sum(mul(whole, weights)), smoothed, lagging, variance, ...plain };
  };
}

const wide = (x: Tensor): Tensor => cast(x, 'i64');

export interface Lengths {
  /** |x|, i64 [B], the end of the sentence counted. */
  readonly source: Tensor;
  /** |y|, i64 [B], the end of the sentence counted. */
  readonly target: Tensor;
}

/**
 * The two latency losses of each sentence, both [B], from the expected delays g [B, N, T] of its N moving heads:
 *
 * - `lagging`: the differentiable average lagging of the heads' mean delay, weighted with softmax(g) over the heads (Ma
 *   et al. 2020): the head that is furthest on keeps the others waiting.
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

/** Of each sentence, [B]: losses as sums over its tokens, in nats, and the expected latency. */
export interface SentenceFigures {
  /** −log P. */
  readonly plain: Float32Array;
  /** With label smoothing. */
  readonly smoothed: Float32Array;
  /** DAL. */
  readonly lagging: Float32Array;
  readonly variance: Float32Array;
}

/** Means over a corpus. */
export interface CorpusFigures {
  /** What is trained, without noise and dropout, per target token, in nats. */
  readonly objective: number;
  /** Losses per target token, in nats. */
  readonly plain: number;
  readonly smoothed: number;
  /** Expected latency per sentence. */
  readonly lagging: number;
  readonly variance: number;
}

/** The losses of a model in evaluation mode, with the current parameters of an arena. */
export class MonotonicEvaluation {
  private constructor(
    private readonly inference: Inference,
    private readonly options: MonotonicLossOptions,
  ) {}

  static async create(
    model: MonotonicModel,
    arena: Arena,
    { threads, ...options }: MonotonicLossOptions & { readonly threads?: number },
  ): Promise<MonotonicEvaluation> {
    const still = { ...evaluationMode(model), attention: model.attention };
    const inference = await Inference.create({
      model: monotonicLossModel(still, { ...options, evaluation: true }),
      inputs: lossInputs,
      arena,
      threads,
    });
    return new MonotonicEvaluation(inference, options);
  }

  async sentences(batch: Batch): Promise<SentenceFigures> {
    const feeds = lossFeeds(batch, new Int32Array(batch.size), new Float32Array(batch.size));
    const found = await this.inference.run(feeds, { outputs: FIGURES });
    const floats = (name: (typeof FIGURES)[number]): Float32Array => found[name].data as Float32Array;
    return {
      plain: floats('plain'),
      smoothed: floats('smoothed'),
      lagging: floats('lagging'),
      variance: floats('variance'),
    };
  }

  /** Of a whole split, in batches of at most `maxTokens` tokens. */
  async corpus(pairs: PairedSequences, maxTokens: number): Promise<CorpusFigures> {
    const sums = { plain: 0, smoothed: 0, lagging: 0, variance: 0 };
    let [tokens, sentences] = [0, 0];
    for (const batch of inOrder(pairs, maxTokens)) {
      const figures = await this.sentences(batch);
      for (const name of FIGURES) for (const value of figures[name]) sums[name] += value;
      for (const length of batch.targetLengths) tokens += length;
      sentences += batch.size;
    }
    const { latencyWeight, varianceWeight } = this.options;
    const objective = sums.smoothed + latencyWeight * sums.lagging + varianceWeight * sums.variance;
    return {
      objective: objective / tokens,
      plain: sums.plain / tokens,
      smoothed: sums.smoothed / tokens,
      lagging: sums.lagging / sentences,
      variance: sums.variance / sentences,
    };
  }

  close(): Promise<void> {
    return this.inference.close();
  }
}

const FIGURES = ['plain', 'smoothed', 'lagging', 'variance'] as const;
