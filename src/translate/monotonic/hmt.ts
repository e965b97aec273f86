import { attentionOver, decoderLayer, linear, xavierUniform } from '../../nn/index.js';
import type { Outputs } from '../../optim/index.js';
import {
  add,
  and,
  attention,
  broadcastTo,
  cast,
  concat,
  cumsum,
  type Dim,
  dimension,
  div,
  dropout,
  equal,
  exp,
  expandDims,
  f32,
  fill,
  forwardAlgorithm,
  greaterEqual,
  i64,
  LOWEST,
  less,
  lessEqual,
  linearCrossEntropy,
  log,
  logSoftmax,
  max,
  maximum,
  mean,
  minimum,
  mul,
  multiplyDims,
  neg,
  oneHot,
  type Parameters,
  linear as product,
  range,
  reshape,
  sigmoid,
  slice,
  sub,
  sum,
  type Tensor,
  takeAlong,
  transpose,
  where,
} from '../../tensor/index.js';
import { newName } from '../decode/step-model.js';
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
import {
  embed,
  encode,
  lastNorm,
  layerOptions,
  outputBias,
  outputWeight,
  type Sources,
  smoothingTerm,
} from '../model/transformer.js';
import type { HmtCandidates, MonotonicModel } from './config.js';
import { logSigmoid } from './itst.js';
import type { Lengths } from './loss.js';

/*
 * The hidden Markov Transformer (Zhang and Feng 2023). Target token i, from 0, may be written at one of K moments: when
 * t_ik = L + i + k source tokens have been read, k = 0 … K − 1, but at least 1 and at most all. The decoder has a state for
 * each of them, which gives the token's probability and the probability p_ik that this moment is chosen once it is
 * reached; the last one always is. Which moments are chosen is a hidden Markov model: no token is written before an
 * earlier one.
 *
 * Names: B sentences, T target and S source positions, K states, width D. States are [T·K, B, D], the K of a token together.
 */

/** t of every state, i64 [B, T·K], for target positions [B, T]; `last` i64 [B, 1, 1] is the latest moment of a sentence. */
export function moments(positions: Tensor, { first, states }: HmtCandidates, last: Tensor): Tensor {
  const [batch, steps] = positions.shape;
  const each = add(expandDims(add(positions, first), -1), range(states)); // [B, T, K]
  return reshape(minimum(maximum(each, 1), last), [batch, multiplyDims(steps, states)]);
}

/**
 * Who sees whom among states, as a bias [B, 1, queries, keys]: a state sees those of its own and earlier target positions
 * whose moment is not later, itself the last. `order` i64 [B, states] counts the states.
 */
function stateBias(
  queries: { readonly order: Tensor; readonly moments: Tensor },
  keys: { readonly order: Tensor; readonly moments: Tensor },
  dtype: 'f32' | 'f64' = 'f32',
): Tensor {
  const [row, column] = [(x: Tensor) => expandDims(x, -1), (x: Tensor) => expandDims(x, 1)];
  const seen = and(
    lessEqual(column(keys.order), row(queries.order)),
    lessEqual(column(keys.moments), row(queries.moments)),
  );
  const known = lessEqual(fill(0, [], 'i64'), column(keys.order)); // what stands before the first position is none
  return expandDims(where(and(seen, known), fill(0, [], dtype), LOWEST), 1);
}

/** How each state sees the source tokens before its moment, as a bias [B, 1, T·K, S]. */
function momentBias(read: Tensor, source: Dim, dtype: 'f32' | 'f64' = 'f32'): Tensor {
  return expandDims(where(less(range(source), expandDims(read, -1)), fill(0, [], dtype), LOWEST), 1);
}

/**
 * Energies [T·K, B] of the choice, p = σ(energy), from the states and the mean of the encoder's output `memory` [S, B, D]
 * over what was read; `read` is i64 [T·K, B].
 */
export function choiceEnergies(
  p: Parameters,
  states: Tensor,
  memory: Tensor,
  read: Tensor,
  { width }: MonotonicModel,
): Tensor {
  const [count, batch] = states.shape;
  const [source] = memory.shape;
  const weight = p.under('decoder').get('choice.weight', [1, 2 * width], xavierUniform());
  const times = (x: Tensor, from: number): Tensor =>
    reshape(product(x, slice(weight, 1, from, width)), [x.shape[0], batch]);
  const places = reshape(add(range(source, p.dtype), 1), [source, 1]);
  const means = div(cumsum(times(memory, width), { axis: 0 }), places); // [S, B]
  return add(times(states, 0), reshape(takeAlong(means, sub(read, 1), 0), [count, batch]));
}

/** Of each sentence, [B]. */
export interface HiddenLosses {
  /** −log of the probability of the target, over all choices of moments. */
  readonly marginal: Tensor;
  /** How many tokens later than at the first moments it is expected to be written, the mean over the target. */
  readonly latency: Tensor;
  /** Label-smoothed loss, the sum over the target of the mean over the K states of each token. */
  readonly stateLoss: Tensor;
}

export function hiddenLosses(
  p: Parameters,
  model: MonotonicModel,
  source: Sources,
  { previous, target }: { readonly previous: Tensor; readonly target: Tensor },
  lengths: Lengths,
  smoothing: number,
): HiddenLosses {
  const candidates = model.candidates!;
  const { states: K } = candidates;
  const [T, B] = previous.shape;
  const count = multiplyDims(T, K);
  const rows = multiplyDims(count, B);
  const positions = broadcastTo(expandDims(range(T), 0), [B, T]);
  const read = moments(positions, candidates, reshape(lengths.source, [B, 1, 1])); // [B, T·K]
  const { states, memory } = decodeStates(p, model, source, previous, read);

  const energy = choiceEnergies(p, states, memory, transpose(read, [1, 0]), model);
  const x = reshape(states, [rows, model.width]);
  const targets = reshape(broadcastTo(expandDims(target, 1), [T, K, B]), [rows]);
  const [weight, bias] = [outputWeight(p, model), outputBias(p, model)];
  const smoothed = linearCrossEntropy(x, weight, targets, { smoothing, form: 'fairseq', bias });
  const plain = smoothing === 0 ? smoothed : sub(smoothed, smoothingTerm(x, { weight, bias }, targets, smoothing));

  const byState = (values: Tensor): Tensor => transpose(reshape(values, [T, K, B]), [0, 2, 1]); // [T, B, K]
  const moment = byState(transpose(read, [1, 0]));
  const transitions = momentTransitions(byState(energy), moment); // [T, B, K, K]
  const spoken = forwardAlgorithm(sub(transitions, expandDims(byState(plain), 2))); // [T, B, K]
  const chosen = exp(forwardAlgorithm(transitions));
  const late = cast(sub(moment, slice(moment, 2, 0, 1)), p.dtype);
  const i = expandDims(range(T), 1);
  const real = cast(less(i, lengths.target), p.dtype); // [T, B]
  const end = cast(equal(i, sub(lengths.target, 1)), p.dtype);
  const overTarget = (values: Tensor, mask: Tensor): Tensor => sum(mul(values, mask), { axes: [0] });
  return {
    marginal: neg(overTarget(logSum(spoken), end)),
    latency: div(overTarget(sum(mul(chosen, late), { axes: [-1] }), real), cast(lengths.target, p.dtype)),
    stateLoss: overTarget(mean(byState(smoothed), { axes: [-1] }), real),
  };
}

/** The states [T·K, B, D] of all moments `read` [B, T·K], and what they look at. */
export function decodeStates(
  p: Parameters,
  model: MonotonicModel,
  source: Sources,
  previous: Tensor,
  read: Tensor,
): { readonly states: Tensor; readonly memory: Tensor } {
  const { states: K } = model.candidates!;
  const [T, B] = previous.shape;
  const count = multiplyDims(T, K);
  const memory = encode(p, model, source); // [S, B, D]
  const order = broadcastTo(expandDims(range(count), 0), [B, count]);
  const dtype = p.dtype as 'f32' | 'f64';
  const self = stateBias({ order, moments: read }, { order, moments: read }, dtype);
  const cross = attentionOver(memory, momentBias(read, memory.shape[0], dtype), layerOptions(model));
  const tokens = embed(p, { ...model, dropout: 0 }, 'decoder', previous); // [T, B, D]
  const repeated = broadcastTo(expandDims(tokens, 1), [T, K, B, model.width]);
  let x = dropout(reshape(repeated, [count, B, model.width]), model.dropout);
  for (let l = 0; l < model.decoderLayers; l++) {
    x = decoderLayer(p.under('decoder').under('layers').under(l), x, { self, cross }, layerOptions(model));
  }
  return { states: lastNorm(p, model, 'decoder', x), memory };
}

/**
 * Logarithms of the transitions [T, B, K, K], from energies and moments [T, B, K]: of moments that are not before that of
 * the previous token, each is chosen with p if none before it was. Before the first token all moments are open.
 */
export function momentTransitions(energy: Tensor, moment: Tensor): Tensor {
  const [T, B, K] = energy.shape as [Dim, Dim, number];
  const last = equal(range(K), K - 1);
  const yes = where(last, fill(0, [], energy.dtype), logSigmoid(energy)); // the last moment is always taken
  const no = cumsum(logSigmoid(neg(energy)), { exclusive: true });
  const choice = expandDims(add(yes, no), 2); // [T, B, 1, K]
  const earlier = slice(concat([fill(0, [1, B, K], 'i64'), moment], 0), 0, 0, T); // t of the previous token, 0 before all
  const open = lessEqual(expandDims(earlier, -1), expandDims(moment, 2)); // [T, B, K′, K]
  return logSoftmax(broadcastTo(choice, [T, B, K, K]), open);
}

/** log Σ exp over the last axis. */
function logSum(x: Tensor): Tensor {
  const top = max(x, { axes: [-1], keepDims: true });
  return add(reshape(top, x.shape.slice(0, -1)), log(sum(exp(sub(x, top)), { axes: [-1] })));
}

/**
 * The hidden Markov Transformer step by step. Kept of the source, [S, B, D]: `source.keys.<l>`, `source.values.<l>`, and
 * `source.encoded`, the encoder's output. Kept of each target token, [T, B, D]: `decoder.keys.<l>.<k>` and
 * `decoder.values.<l>.<k>` of its K states. They hold for one number of source tokens: a state whose moment has not come
 * is computed with the available source, is hidden from the others, and is recomputed when more has been read (`redecodes`).
 * `ended` i64 [B] is 1 where the visible source tokens are all.
 *
 * `readiness` [B] is output: 0 before the first moment of the next token, 1 at its last, else the probability that the
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
  // Caches are stored state by state and may be empty, which cannot be reshaped.
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
  const { first, states: K } = model.candidates as HmtCandidates;
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
