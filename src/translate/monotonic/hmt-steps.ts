import { decoderLayer, linear } from '../../nn/index.js';
import type { Outputs } from '../../optim/index.js';
import {
  add,
  attention,
  broadcastTo,
  cast,
  concat,
  type Dim,
  dimension,
  equal,
  expandDims,
  f32,
  fill,
  greaterEqual,
  i64,
  maximum,
  minimum,
  mul,
  multiplyDims,
  oneHot,
  type Parameters,
  range,
  reshape,
  sigmoid,
  slice,
  sub,
  sum,
  type Tensor,
  transpose,
  where,
} from '../../tensor/index.js';
import { newName } from '../decode/cache.js';
import {
  cacheTypes,
  embedAt,
  keyValues,
  type Named,
  proposals,
  type SourceAttention,
  type Step,
} from '../decode/steps.js';
import { evaluationMode } from '../model/config.js';
import { lastNorm, layerOptions } from '../model/transformer.js';
import type { Candidates, MonotonicModel } from './config.js';
import { choiceEnergies, momentBias, moments, stateBias } from './hmt.js';

/**
 * The hidden Markov Transformer step by step. Kept of the source, [S, B, D]: `source.keys.<l>`, `source.values.<l>`, and
 * `source.encoded`, the encoder's output. Kept of each target token, [T, B, D]: `decoder.keys.<l>.<k>` and
 * `decoder.values.<l>.<k>` of its K states. They hold for one number of source tokens: a state whose moment has not come
 * is computed with what there is, is seen by nobody, and has to be computed anew when more has been read (`redecodes`).
 * `ended` i64 [B] is 1 where the visible source tokens are all.
 *
 * `readiness` [B] is put out: 0 before the first moment of the next token, 1 at its last, else the probability that the
 * moment is chosen.
 */
export function momentSteps(model: MonotonicModel): SourceAttention {
  return {
    source: ['source.keys', 'source.values'],
    target: [],
    oneByOne: false,
    inputs: {},
    encoded: ENCODED,
    kept: (p, x, size) => keyValues(p, x, size, model),
    over: () => {
      throw new TypeError('the states of all moments are decoded together');
    },
    decoder: (candidates) => momentDecoder({ ...model, ...evaluationMode(model) }, candidates),
  };
}

const ENCODED = 'source.encoded';

function momentDecoder(model: MonotonicModel, candidates: number): Step {
  const { decoderLayers, width } = model;
  const chosen = model.candidates!;
  const own = Array.from({ length: chosen.states }, (_, k) => k).flatMap((k) =>
    Object.entries(cacheTypes(['decoder.keys', 'decoder.values'], decoderLayers, 'T', model)).map(
      ([name, type]) => [`${name}.${k}`, type] as const,
    ),
  );
  return {
    inputs: {
      tokens: i64('N', 'B'),
      lengths: i64('B'),
      visible: i64('B'),
      ended: i64('B'),
      ...Object.fromEntries(own),
      ...cacheTypes(['source.keys', 'source.values'], decoderLayers, 'S', model),
      [ENCODED]: f32('S', 'B', width),
    },
    model: (p, inputs) => {
      const outputs: Record<string, Tensor> = {};
      const { states, read } = decodeNew(p, inputs, model, outputs);
      return { ...outputs, ...answers(p, inputs, model, { states, read }, candidates) };
    },
  };
}

/** The states [N, K, B, D] of new tokens, and the source tokens that each has read, i64 [N, K, B]. */
interface NewStates {
  readonly states: Tensor;
  readonly read: Tensor;
}

function decodeNew(p: Parameters, inputs: Named, model: MonotonicModel, outputs: Record<string, Tensor>): NewStates {
  const { width, heads, decoderLayers } = model;
  const candidates = model.candidates!;
  const { first, states: K } = candidates;
  const { tokens, lengths, visible, ended } = inputs;
  const [N, B] = tokens.shape;
  const count = multiplyDims(N, K);
  const past = inputs['decoder.keys.0.0'].shape[0];
  const last = expandDims(where(equal(ended, 1), visible, FAR), -1); // [B, 1]
  const positions = add(range(N), expandDims(lengths, -1)); // [B, N]
  const order = reshape(add(mul(expandDims(positions, -1), K), range(K)), [B, count]);
  const queries = { order, moments: moments(positions, candidates, expandDims(last, -1)) };
  // What is kept lies state by state, and there may be none of it, which cannot be given another shape.
  const before = add(sub(range(past), dimension(past)), expandDims(lengths, -1)); // [B, T]
  const each = Array.from({ length: K }, (_, k) => ({
    order: add(mul(before, K), k),
    moments: minimum(maximum(add(before, first + k), 1), last),
  }));
  const keys = {
    order: concat([...each.map((one) => one.order), queries.order], 1),
    moments: concat([...each.map((one) => one.moments), queries.moments], 1),
  };
  const self = stateBias(queries, keys);
  const read = minimum(queries.moments, expandDims(visible, -1)); // [B, N·K]
  const cross = momentBias(read, inputs[ENCODED].shape[0]);

  const perState = (x: Tensor, size: Dim): Tensor => reshape(x, [size, K, B, width]);
  const embedded = reshape(embedAt(p, model, 'decoder', tokens, lengths), [N, 1, B, width]);
  let x = reshape(broadcastTo(embedded, [N, K, B, width]), [count, B, width]);
  const attend = (q: Parameters, states: Tensor, keys: Tensor, values: Tensor, bias: Tensor): Tensor =>
    linear(
      q.under('out_proj'),
      attention(linear(q.under('q_proj'), states, width), keys, values, { heads, bias }),
      width,
    );
  for (let l = 0; l < decoderLayers; l++) {
    const layer = p.under('decoder').under('layers').under(l);
    const joined = (name: string, fresh: Tensor): Tensor => {
      for (let k = 0; k < K; k++) {
        const own = slice(perState(fresh, N), 1, k, 1); // [N, 1, B, D]
        outputs[newName(`decoder.${name}.${l}.${k}`)] = reshape(own, [N, B, width]);
      }
      return concat([...Array.from({ length: K }, (_, k) => inputs[`decoder.${name}.${l}.${k}`]), fresh], 0);
    };
    x = decoderLayer(
      layer,
      x,
      {
        self: (q, states) => {
          const [fresh, values] = keyValues(q, states, [count, B], model);
          return attend(q, states, joined('keys', fresh), joined('values', values), self);
        },
        cross: (q, states) => attend(q, states, inputs[`source.keys.${l}`], inputs[`source.values.${l}`], cross),
      },
      layerOptions(model),
    );
  }
  x = lastNorm(p, model, 'decoder', x);
  return { states: perState(x, N), read: reshape(transpose(read, [1, 0]), [N, K, B]) };
}

/** Later than any moment. */
const FAR = 1_000_000_000;

/** What comes after the last new token, from its state at the moment that has come, and whether that is chosen. */
function answers(
  p: Parameters,
  inputs: Named,
  model: MonotonicModel,
  { states, read }: NewStates,
  candidates: number,
): Outputs {
  const { visible, lengths, tokens } = inputs;
  const { first, states: K } = model.candidates as Candidates;
  const [N, B] = tokens.shape;
  const at = sub(visible, add(add(lengths, sub(dimension(N), 1)), first)); // k of the moment, [B]; below 0: none has come
  const now = oneHot(minimum(maximum(at, 0), K - 1), K); // [B, K]
  const ofLast = (x: Tensor, shape: readonly Dim[]): Tensor => reshape(slice(x, 0, -1, 1), shape);
  const own = ofLast(states, [K, B, model.width]);
  const state = sum(mul(own, expandDims(transpose(now, [1, 0]), -1)), { axes: [0] }); // [B, D]
  const energies = choiceEnergies(p, own, inputs[ENCODED], ofLast(read, [K, B]), model); // [K, B]
  const chosen = sum(mul(sigmoid(transpose(energies, [1, 0])), now), { axes: [1] }); // [B]
  const until = where(greaterEqual(at, K - 1), fill(1, []), chosen);
  const readiness = mul(until, cast(greaterEqual(at, 0), 'f32'));
  return { ...proposals(p, model, state, candidates), readiness };
}
