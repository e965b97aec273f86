import { describe, it } from 'vitest';
import { attentionOver, decoderLayer, encoderLayer, multiHeadAttention } from '../../src/nn/index.js';
import { attentionBias, type Tensor, transpose } from '../../src/tensor/index.js';
import { describeWithShared, readSharedJson } from '../shared.js';
import { expectTorch, readVectors, renamed, type Stored } from './torch.js';

/** The files are batch-first; layers are time-major. */
const swap = (x: Tensor): Tensor => transpose(x, [1, 0, 2]);

/** Number of keys before the first that is padding, for each sample. */
function lengthsOf(padding: Stored): Stored {
  const [batch, keys] = padding.shape;
  const data = Array.from({ length: batch }, (_, b) => {
    const row = padding.data.slice(b * keys, (b + 1) * keys).map(Number);
    return row.includes(1) ? row.indexOf(1) : keys;
  });
  return { shape: [batch], data };
}

interface AttentionCase {
  readonly config: { num_heads: number; kind: string };
  readonly params: Record<string, Stored>;
  readonly query: Stored;
  readonly key_value?: Stored;
  readonly key_padding_mask?: Stored;
  readonly attn_mask_true_is_blocked?: Stored;
  readonly limit?: number[];
  readonly out: Stored;
  readonly loss_w: Stored;
  readonly loss: number;
  readonly grads: Record<string, Stored>;
  readonly grad_query: Stored;
  readonly grad_key_value?: Stored;
}

function checkAttention(c: AttentionCase): Promise<void> {
  const optional = (name: string, value: Stored | undefined): Record<string, Stored> =>
    value ? { [name]: value } : {};
  return expectTorch(
    (p, { query, memory = query, lengths, limit }) => {
      const causal = c.attn_mask_true_is_blocked !== undefined;
      const bias = attentionBias(query.shape[1], memory.shape[1], { causal, lengths, limit }, query.dtype as 'f32');
      return { out: swap(multiHeadAttention(p, swap(query), swap(memory), { heads: c.config.num_heads, bias })) };
    },
    {
      inputs: { query: c.query, ...optional('memory', c.key_value) },
      integers: {
        ...optional('lengths', c.key_padding_mask && lengthsOf(c.key_padding_mask)),
        ...optional('limit', c.limit && { shape: [c.limit.length], data: c.limit }),
      },
      parameters: renamed(c.params, {}),
      outputs: { out: c.out },
      weights: { out: c.loss_w },
      loss: c.loss,
      gradients: { ...renamed(c.grads, {}), query: c.grad_query, ...optional('memory', c.grad_key_value) },
    },
  );
}

describeWithShared('multi-head attention', () => {
  const { cases } = readSharedJson<{ cases: Record<string, AttentionCase> }>('vectors/torch/mha.json');
  it.each(Object.entries(cases))('agrees with PyTorch: %s', (_, c) => checkAttention(c));
});

describe('multi-head attention with a limit for each sample', () => {
  const { cases } = readVectors<{ cases: Record<string, AttentionCase> }>('attention_limit');
  it.each(Object.entries(cases))('agrees with PyTorch: %s', (_, c) => checkAttention(c));
});

interface LayerCase {
  readonly config: { nhead: number; dim_feedforward: number; norm_first: boolean };
  readonly params: Record<string, Stored>;
  readonly x: Stored;
  readonly memory?: Stored;
  readonly src_key_padding_mask?: Stored;
  readonly memory_key_padding_mask?: Stored;
  readonly memory_limit?: number[];
  readonly out: Stored;
  readonly loss_w: Stored;
  readonly loss: number;
  readonly grads: Record<string, Stored>;
  readonly grad_x: Stored;
  readonly grad_memory?: Stored;
}

function layerOptions({ config }: LayerCase): { heads: number; ffn: number; norm: 'pre' | 'post' } {
  return { heads: config.nhead, ffn: config.dim_feedforward, norm: config.norm_first ? 'pre' : 'post' };
}

describeWithShared('the encoder layer', () => {
  const { cases } = readSharedJson<{ cases: Record<string, LayerCase> }>('vectors/torch/encoder_layer.json');
  const names = { linear1: 'fc1', linear2: 'fc2', norm1: 'self_attn_layer_norm', norm2: 'final_layer_norm' };
  it.each(Object.entries(cases))('agrees with PyTorch: %s', (_, c) =>
    expectTorch(
      (p, { x, lengths }) => {
        const bias = attentionBias(x.shape[1], x.shape[1], { lengths }, x.dtype as 'f32');
        return { out: swap(encoderLayer(p, swap(x), bias, layerOptions(c))) };
      },
      {
        inputs: { x: c.x },
        integers: c.src_key_padding_mask ? { lengths: lengthsOf(c.src_key_padding_mask) } : {},
        parameters: renamed(c.params, names),
        outputs: { out: c.out },
        weights: { out: c.loss_w },
        loss: c.loss,
        gradients: { ...renamed(c.grads, names), x: c.grad_x },
      },
    ),
  );
});

describe('the decoder layer', () => {
  const { cases } = readVectors<{ cases: Record<string, LayerCase> }>('decoder_layer');
  const names = {
    multihead_attn: 'encoder_attn',
    linear1: 'fc1',
    linear2: 'fc2',
    norm1: 'self_attn_layer_norm',
    norm2: 'encoder_attn_layer_norm',
    norm3: 'final_layer_norm',
  };
  it.each(Object.entries(cases))('agrees with PyTorch: %s', (_, c) =>
    expectTorch(
      (p, { x, memory, lengths, limit }) => {
        const dtype = x.dtype as 'f32';
        const self = attentionBias(x.shape[1], x.shape[1], { causal: true }, dtype);
        const cross = attentionBias(x.shape[1], memory.shape[1], { lengths, limit }, dtype);
        return {
          out: swap(
            decoderLayer(
              p,
              swap(x),
              { self, cross: attentionOver(swap(memory), cross, layerOptions(c)) },
              layerOptions(c),
            ),
          ),
        };
      },
      {
        inputs: { x: c.x, memory: c.memory! },
        integers: {
          ...(c.memory_key_padding_mask ? { lengths: lengthsOf(c.memory_key_padding_mask) } : {}),
          ...(c.memory_limit ? { limit: { shape: [c.memory_limit.length], data: c.memory_limit } } : {}),
        },
        parameters: renamed(c.params, names),
        outputs: { out: c.out },
        weights: { out: c.loss_w },
        loss: c.loss,
        gradients: { ...renamed(c.grads, names), x: c.grad_x, memory: c.grad_memory! },
      },
    ),
  );
});
