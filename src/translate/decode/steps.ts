import { type Attend, decoderLayer, encoderLayer, linear } from '../../nn/index.js';
import { type Arena, type InputTypes, type Outputs, traceModel } from '../../optim/index.js';
import {
  add,
  and,
  attention,
  attentionBias,
  concat,
  constant,
  type DeviceName,
  type Dim,
  dimension,
  type Executable,
  equal,
  expandDims,
  f32,
  fill,
  greaterEqual,
  i64,
  LOWEST,
  lessEqual,
  logSoftmax,
  lower,
  matmul,
  mul,
  multiplyDims,
  type Parameters,
  linear as product,
  range,
  reshape,
  rewrite,
  slice,
  softmax,
  squeeze,
  sub,
  type Tensor,
  type TensorType,
  topK,
  transpose,
  where,
} from '../../tensor/index.js';
import { evaluationMode, type TranslationModel } from '../model/config.js';
import { embed, lastNorm, layerOptions, outputBias, outputWeight } from '../model/transformer.js';
import { special } from '../text/vocabulary.js';
import { candidatesFor, searchDefaults } from './search.js';
import { newName } from './step-model.js';

/*
 * The two programs of incremental translation, over the parameters of `model/transformer.ts`. Everything is time-major:
 * B sentences, N new tokens, T tokens before them, S encoded source tokens, width D. States are matrices
 * [N·B, D]: with one token per sentence, reshapes would be a third of the operations.
 *
 * Sentences of different lengths are aligned at the end: the T steps of a cache hold the last `lengths[b]` of sentence b and
 * arbitrary values before them.
 */

/** A program: its inputs, and what it does with them. */
export interface Step {
  readonly inputs: InputTypes;
  readonly model: (p: Parameters, inputs: Named) => Outputs;
}

export type Named = Readonly<Record<string, Tensor>>;

/** N new steps of B sentences. */
export type Size = readonly [steps: Dim, batch: Dim];

/** How the decoder attends to the source, step by step. Caches are [steps, B, D], named `<stem>.<layer>`. */
export interface SourceAttention {
  /** Stems of the source caches for each layer of the decoder. */
  readonly source: readonly string[];
  /** Stems of the target caches besides keys and values. */
  readonly target: readonly string[];
  /** Whether the decoder processes one token of each sentence at a time, or several. */
  readonly oneByOne: boolean;
  /** Inputs of the decoder that others do not have. */
  readonly inputs: InputTypes;
  /** What a layer keeps of newly encoded states x [N·B, D], in the order of `source`; `p` is its `encoder_attn`. */
  kept(p: Parameters, x: Tensor, size: Size): readonly Tensor[];
  /** The name under which the encoder's output is cached. Default: it is not. */
  readonly encoded?: string;
  /** Replaces the usual decoder; see `decoderStep` for its outputs. */
  readonly decoder?: (candidates: number) => Step;
  /** The attention of each layer, and the additional outputs of the decoder after the last layer. */
  over(inputs: Named, size: Size): { layer(l: number, outputs: Record<string, Tensor>): Attend; outputs(): Outputs };
}

export interface StepProgramOptions {
  /** Largest beam that will be searched with. Default 5. */
  readonly beam?: number;
  /** Whether the decoder outputs its attention over the source. Only of soft attention. Default false. */
  readonly weights?: boolean;
  /** Default soft attention. */
  readonly attend?: SourceAttention;
  /** As in `StepModelOptions`. */
  readonly first?: number;
  /** What the programs are written for. Default cpu. */
  readonly device?: DeviceName;
}

/** Both programs with the parameters inside them, in evaluation mode. */
export function stepPrograms(
  model: TranslationModel,
  arena: Arena,
  options: StepProgramOptions = {},
): { readonly encoder: Executable; readonly decoder: Executable } {
  const { beam = searchDefaults.beam, weights = false, attend = softAttention(model, weights), first } = options;
  const still = evaluationMode(model);
  // With parameters as constants, the runtime can prepack the weights for its matrix kernels once, and the written
  // model needs nothing else.
  const input = (name: string): Tensor | undefined =>
    arena.has(name) ? constant(arena.value(name), arena.dtype, arena.shape(name)) : undefined;
  const compile = ({ model: fn, inputs }: Step): Executable =>
    lower(rewrite(traceModel(fn, inputs, undefined, arena.dtype).program, { input }), { device: options.device });
  return {
    encoder: compile(encoderStep(still, attend)),
    decoder: compile(
      attend.decoder?.(candidatesFor(beam)) ?? decoderStep(still, attend, { candidates: candidatesFor(beam), first }),
    ),
  };
}

/**
 * Encodes N new source tokens.
 *
 * - `tokens` i64 [N, B]
 * - `lengths` i64 [B]: unidirectional, tokens of each sentence that are already encoded; bidirectional, tokens of each
 *   sentence among `tokens`, which are then all that have been read
 * - `encoder.keys.<l>`, `encoder.values.<l>` [T, B, D]: those tokens (unidirectional only)
 *
 * Outputs: `new.encoder.….<l>` [N, B, D], to be appended (unidirectional only), and `new.source.….<l>` [N, B, D], the
 * keys and values through which layer l of the decoder sees them, or what else its attention keeps.
 */
function encoderStep(model: TranslationModel, { source, kept, encoded }: SourceAttention): Step {
  const causal = model.encoder === 'unidirectional';
  const caches = causal ? cacheTypes(KEPT.encoder, model.encoderLayers, 'T', model) : {};
  return {
    inputs: { tokens: i64('N', 'B'), lengths: i64('B'), ...caches },
    model: (p, inputs) => {
      const { tokens, lengths } = inputs;
      const [count, batch] = tokens.shape;
      const size: Size = [count, batch];
      const bias = causal
        ? pastBias(lengths, count, inputs['encoder.keys.0'])
        : attentionBias(count, count, { lengths });
      const outputs: Record<string, Tensor> = {};
      let x = embedAt(p, model, 'encoder', tokens, causal ? lengths : undefined); // [N·B, D]
      for (let l = 0; l < model.encoderLayers; l++) {
        const layer = p.under('encoder').under('layers').under(l);
        const past = causal ? cacheOf(inputs, 'encoder', l) : undefined;
        const self = cachedSelfAttention(model, size, past, bias, (fresh) => {
          if (causal) keep(outputs, KEPT.encoder, l, fresh);
        });
        x = encoderLayer(layer, x, self, layerOptions(model));
      }
      x = lastNorm(p, model, 'encoder', x);
      if (encoded !== undefined) outputs[newName(encoded)] = reshape(x, [count, batch, model.width]);
      for (let l = 0; l < model.decoderLayers; l++) {
        const layer = p.under('decoder').under('layers').under(l);
        keep(outputs, source, l, kept(layer.under('encoder_attn'), x, size));
      }
      return outputs;
    },
  };
}

/**
 * Processes N more target tokens, the first of a sentence being `</s>`, and proposes the next one.
 *
 * - `tokens` i64 [N, B]
 * - `lengths` i64 [B]: tokens of each sentence processed before
 * - `decoder.keys.<l>`, `decoder.values.<l>` [T, B, D]: those tokens
 * - `visible` i64 [B]: source tokens that each sentence may see, the first ones of
 * - `source.keys.<l>`, `source.values.<l>` [S, B, D]
 *
 * Outputs: `new.decoder.….<l>` [N, B, D], to be appended; `logProbabilities` [B, V] of the next token, and the best of
 * them, `candidates` i64 and `scores` [B, C], in descending order. Padding and `<s>` are never proposed. On request,
 * `attention` [B, L·H, S]: how the last token of each sentence attends over the source, head by head, layer by layer.
 */
function decoderStep(
  model: TranslationModel,
  attend: SourceAttention,
  { candidates, first }: { readonly candidates: number; readonly first?: number },
): Step {
  return {
    inputs: {
      tokens: i64(attend.oneByOne ? 1 : 'N', 'B'),
      lengths: i64('B'),
      visible: i64('B'),
      ...attend.inputs,
      ...cacheTypes([...KEPT.decoder, ...attend.target], model.decoderLayers, 'T', model),
      ...cacheTypes(attend.source, model.decoderLayers, 'S', model),
    },
    model: (p, inputs) => {
      const { tokens, lengths } = inputs;
      const [added, batch] = tokens.shape;
      const size: Size = [added, batch];
      const bias = pastBias(lengths, added, inputs['decoder.keys.0']);
      const over = attend.over(inputs, size);
      const outputs: Record<string, Tensor> = {};
      let x = embedAt(p, model, 'decoder', tokens, lengths); // [N·B, D]
      for (let l = 0; l < model.decoderLayers; l++) {
        const layer = p.under('decoder').under('layers').under(l);
        const self = cachedSelfAttention(model, size, cacheOf(inputs, 'decoder', l), bias, (fresh) =>
          keep(outputs, KEPT.decoder, l, fresh),
        );
        x = decoderLayer(layer, x, { self, cross: over.layer(l, outputs) }, layerOptions(model));
      }
      x = lastNorm(p, model, 'decoder', x);
      const last = squeeze(slice(reshape(x, [added, batch, model.width]), 0, -1, 1), 0); // [B, D]
      const begun = (free: Tensor): Tensor =>
        first === undefined ? free : beginningWith(first, add(lengths, dimension(added)), free);
      return { ...outputs, ...over.outputs(), ...proposals(p, model, last, candidates, begun) };
    },
  };
}

/**
 * What may come next after states [B, D].
 *
 * @param chosen the log-probabilities [B, V] to keep; default all
 */
export function proposals(
  p: Parameters,
  model: TranslationModel,
  states: Tensor,
  candidates: number,
  chosen: (free: Tensor) => Tensor = (free) => free,
): Outputs {
  const logits = product(states, outputWeight(p, model), outputBias(p, model)); // [B, V]
  const logProbabilities = chosen(add(logSoftmax(logits), neverProposed(model)));
  const best = topK(logProbabilities, Math.min(candidates, model.vocabulary.target));
  return { logProbabilities, candidates: best.indices, scores: best.values };
}

/** Soft attention over all of the source that is visible; `weights`: which it outputs. */
function softAttention(model: TranslationModel, weights: boolean): SourceAttention {
  return {
    source: ['source.keys', 'source.values'],
    target: [],
    oneByOne: false,
    inputs: {},
    kept: (p, x, size) => keyValues(p, x, size, model),
    over: (inputs, size) => {
      const bias = attentionBias(1, inputs['source.keys.0'].shape[0], { lengths: inputs.visible })!;
      const attended: Tensor[] = [];
      return {
        layer: (l) => (p, x) => {
          const [keys, values] = cacheOf(inputs, 'source', l);
          if (weights) attended.push(lastAttention(p, x, size, keys, bias, model));
          return cachedAttention(p, x, size, [keys, values], bias, model);
        },
        outputs: (): Outputs => (weights ? { attention: concat(attended, 1) } : {}),
      };
    },
  };
}

/** Keys and values of an attention, [T, B, D] each. */
type KeyValues = readonly [keys: Tensor, values: Tensor];

/** Self-attention of new states over `past` and themselves; `keepFresh` is given what the next step will need too. */
function cachedSelfAttention(
  model: TranslationModel,
  size: Size,
  past: KeyValues | undefined,
  bias: Tensor | undefined,
  keepFresh: (fresh: KeyValues) => void,
): Attend {
  return (p, x) => {
    const fresh = keyValues(p, x, size, model);
    keepFresh(fresh);
    const [keys, values] = fresh;
    const all: KeyValues = past === undefined ? fresh : [concat([past[0], keys], 0), concat([past[1], values], 0)]; // [T + N, B, D]
    return cachedAttention(p, x, size, all, bias, model);
  };
}

/** `nn.multiHeadAttention` of states [N·B, D] over keys and values that already exist. */
function cachedAttention(
  p: Parameters,
  x: Tensor,
  [steps, batch]: Size,
  [keys, values]: KeyValues,
  bias: Tensor | undefined,
  { width, heads }: TranslationModel,
): Tensor {
  const query = reshape(linear(p.under('q_proj'), x, width), [steps, batch, width]);
  const found = attention(query, keys, values, { heads, bias });
  return linear(p.under('out_proj'), reshape(found, x.shape), width);
}

/** How the last of new states [N·B, D] attends over keys [S, B, D], as [B, H, S]. */
function lastAttention(
  p: Parameters,
  x: Tensor,
  [steps, batch]: Size,
  keys: Tensor,
  bias: Tensor,
  { width, heads }: TranslationModel,
): Tensor {
  const rows = multiplyDims(batch, heads);
  const apart = (of: Tensor): Tensor => transpose(reshape(of, [of.shape[0], rows, width / heads]), [1, 0, 2]); // [B·H, T, d]
  const query = slice(reshape(linear(p.under('q_proj'), x, width), [steps, batch, width]), 0, -1, 1); // [1, B, D]
  const energy = matmul(apart(mul(query, 1 / Math.sqrt(width / heads))), apart(keys), { transB: true }); // [B·H, 1, S]
  const hidden = reshape(bias, [batch, 1, keys.shape[0]]);
  return softmax(add(reshape(energy, [batch, heads, keys.shape[0]]), hidden));
}

/** What an attention needs from the states it attends to, [N, B, D]. */
export function keyValues(p: Parameters, x: Tensor, [steps, batch]: Size, { width }: TranslationModel): KeyValues {
  const projected = (name: string): Tensor => reshape(linear(p.under(name), x, width), [steps, batch, width]);
  return [projected('k_proj'), projected('v_proj')];
}

/** Stems of the caches of self-attention. */
const KEPT = {
  encoder: ['encoder.keys', 'encoder.values'],
  decoder: ['decoder.keys', 'decoder.values'],
} as const;

export function cacheTypes(
  stems: readonly string[],
  layers: number,
  steps: string,
  { width }: TranslationModel,
): Record<string, TensorType> {
  const names = Array.from({ length: layers }, (_, l) => stems.map((stem) => `${stem}.${l}`)).flat();
  return Object.fromEntries(names.map((name) => [name, f32(steps, 'B', width)]));
}

function cacheOf(inputs: Named, owner: string, layer: number): KeyValues {
  return [inputs[`${owner}.keys.${layer}`], inputs[`${owner}.values.${layer}`]];
}

function keep(
  outputs: Record<string, Tensor>,
  stems: readonly string[],
  layer: number,
  fresh: readonly Tensor[],
): void {
  stems.forEach((stem, i) => {
    outputs[newName(`${stem}.${layer}`)] = fresh[i];
  });
}

/** New token i sees the step j of T + N iff T − length ≤ j ≤ T + i. As a bias [B, 1, N, T + N]. */
function pastBias(lengths: Tensor, added: Dim, past: Tensor): Tensor {
  const [before] = past.shape;
  const steps = concat([sub(range(before), dimension(before)), range(added)], 0); // −T … N − 1
  const j = reshape(steps, [1, 1, steps.shape[0]]);
  const i = reshape(range(added), [1, added, 1]);
  const first = reshape(sub(0, lengths), [lengths.shape[0], 1, 1]);
  return expandDims(where(and(lessEqual(j, i), greaterEqual(j, first)), fill(0, []), LOWEST), 1);
}

/** Embedded tokens [N·B, D] of [N, B]; the first of sentence b stands at position lengths[b], or at 0. */
export function embedAt(
  p: Parameters,
  model: TranslationModel,
  side: 'encoder' | 'decoder',
  tokens: Tensor,
  lengths?: Tensor,
): Tensor {
  const [added, batch] = tokens.shape;
  const all = multiplyDims(added, batch);
  if (lengths === undefined) return reshape(embed(p, model, side, tokens), [all, model.width]);
  const positions = add(reshape(range(added), [added, 1]), lengths); // [N, B]
  return reshape(embed(p, model, side, reshape(tokens, [all, 1]), reshape(positions, [all])), [all, model.width]);
}

/** The log-probabilities [B, V] after `taken` tokens [B]; after the start token alone, those of a certain token. */
function beginningWith(first: number, taken: Tensor, free: Tensor): Tensor {
  const row = new Float32Array(free.shape[1] as number).fill(LOWEST);
  row[first] = 0;
  return where(expandDims(equal(taken, 1), 1), constant(row, 'f32', [1, row.length]), free);
}

/** A row [V] to be added to log-probabilities. */
function neverProposed({ vocabulary }: TranslationModel): Tensor {
  const row = new Float32Array(vocabulary.target);
  for (const id of [special.pad, special.bos]) row[id] = LOWEST;
  return constant(row);
}
