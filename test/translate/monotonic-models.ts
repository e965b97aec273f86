import { Arena, Inference, traceModel } from '../../src/optim/index.js';
import { Random } from '../../src/random.js';
import {
  cast,
  cumsum,
  exp,
  f32,
  i64,
  less,
  linear,
  logSoftmax,
  type Parameters,
  reshape,
  sum,
  type Tensor,
  type Value,
} from '../../src/tensor/index.js';
import type { TranslationModel } from '../../src/translate/model/config.js';
import { outputWeight } from '../../src/translate/model/transformer.js';
import { translateMonotonically } from '../../src/translate/monotonic/attention.js';
import { type MonotonicKind, type MonotonicModel, monotonicModel } from '../../src/translate/monotonic/config.js';
import { translateByTransport } from '../../src/translate/monotonic/itst.js';
import { tinyModel } from './decode-models.js';

export function tinyMonotonic(attention: MonotonicKind, changes: Partial<TranslationModel> = {}): MonotonicModel {
  return monotonicModel(tinyModel({ dropout: 0, ...changes }), attention);
}

const sentences = { source: i64('S', 'B'), lengths: i64('B'), previous: i64('T', 'B'), thresholds: f32('B') };

const wholeModel =
  (model: MonotonicModel) =>
  (p: Parameters, { source, lengths, previous, thresholds }: Record<keyof typeof sentences, Tensor>) => {
    if (model.attention === 'itst') {
      const sources = { ids: source, lengths };
      const { states, information } = translateByTransport(p, model, sources, previous, thresholds);
      return { out: logSoftmax(linear(states, outputWeight(p, model))), delays: readingOf(information, thresholds) };
    }
    const { states, delays } = translateMonotonically(p, model, { ids: source, lengths }, previous, { noise: false });
    return { out: logSoftmax(linear(states, outputWeight(p, model))), delays };
  };

/** Source tokens that each target token needs for its information alone, [B, L, T]; at most all. */
function readingOf(information: Tensor, thresholds: Tensor): Tensor {
  const before = cumsum(exp(information), { exclusive: true });
  const limit = reshape(thresholds, [thresholds.shape[0], 1, 1, 1]);
  return sum(cast(less(before, limit), 'f32'), { axes: [-1] });
}

/**
 * Random parameters with which every moving head is as good as sure at every token: energies in the hundreds. What is
 * expected is then what happens.
 */
export function sureArena(model: MonotonicModel, seed: number): Arena {
  const { parameters } = traceModel(wholeModel(model), sentences);
  const arena = new Arena(parameters);
  const random = new Random(seed);
  for (const name of arena.names) {
    const values = arena.value(name) as Float32Array;
    if (name.includes('layer_norm.weight')) values.fill(1);
    // Heads stop at four tokens out of five or so, the furthest of them then being on its way for some steps.
    else if (name.endsWith('monotonic_bias')) values.fill(250);
    else random.fork(name).fillNormal(values, 0, deviation(name));
  }
  return arena;
}

function deviation(name: string): number {
  if (name.endsWith('bias')) return 0.1;
  if (name.includes('monotonic_')) return 6;
  return name.includes('embed_tokens') || name.includes('encoder_attn.') ? 1 : 0.3;
}

export interface WholeModelResult {
  /** Log-probabilities [T][V]. */
  readonly scores: readonly (readonly number[])[];
  /** Source tokens that the furthest head is expected to have read at each step. */
  readonly delays: readonly number[];
}

/** One sentence under the model as it is trained, not incremental, without noise. */
export async function wholeMonotonic(
  model: MonotonicModel,
  arena: Arena,
  source: readonly number[],
  previous: readonly number[],
  threshold = 1,
): Promise<WholeModelResult> {
  const inference = await Inference.create({ model: wholeModel(model), inputs: sentences, arena });
  const column = (ids: readonly number[]): Value => ({ data: BigInt64Array.from(ids, BigInt), shape: [ids.length, 1] });
  const { out, delays } = await inference.run({
    source: column(source),
    lengths: { data: BigInt64Array.of(BigInt(source.length)), shape: [1] },
    previous: column(previous),
    thresholds: { data: Float32Array.of(threshold), shape: [1] },
  });
  await inference.close();
  const size = model.vocabulary.target;
  const steps = previous.length;
  const heads = delays.shape[1];
  return {
    scores: previous.map((_, t) => Array.from((out.data as Float32Array).subarray(t * size, (t + 1) * size))),
    delays: previous.map((_, t) =>
      Math.max(...Array.from({ length: heads }, (_, h) => delays.data[h * steps + t] as number)),
    ),
  };
}
