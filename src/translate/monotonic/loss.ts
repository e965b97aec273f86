import type { Model, Outputs } from '../../optim/index.js';
import {
  add,
  cast,
  expandDims,
  less,
  linearCrossEntropy,
  mul,
  multiplyDims,
  range,
  reshape,
  sum,
  type Tensor,
} from '../../tensor/index.js';
import type { lossInputs } from '../model/loss.js';
import { outputWeight } from '../model/transformer.js';
import type { MonotonicModel } from './config.js';
import { latencyLosses } from './latency.js';
import { translateMonotonically } from './transformer.js';

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
