import { join } from 'node:path';
import { readSafetensors } from '../../src/optim/safetensors.js';

/** A tensor of a file. */
export interface Numbers {
  readonly shape: readonly number[];
  readonly data: ArrayLike<number>;
}

export interface ReferenceModel {
  /** By name, `prefix` before it. */
  readonly tensors: ReadonlyMap<string, Numbers>;
  readonly prefix?: string;
  readonly layers: readonly [encoder: number, decoder: number];
  readonly heads: number;
  readonly norm: 'pre' | 'post';
  readonly activation: 'relu' | 'swish';
  readonly positions: 'fairseq' | 'marian';
  /** Names of the tables of both sides and of the output. */
  readonly tables: { readonly encoder: string; readonly decoder: string; readonly output: string };
  /** Name of the bias of the logits. */
  readonly bias?: string;
}

type Row = number[];

/**
 * Logits [T][V] of a Transformer, in loops over numbers: the counterpart of the forward pass in
 * `test/vectors/make_checkpoints.py`, and checked against its values, for parameters that are only known when a test
 * runs, such as those of a model that was trained further.
 */
export function referenceLogits(model: ReferenceModel, source: readonly number[], previous: readonly number[]): Row[] {
  const { prefix = '', heads } = model;
  const tensor = (name: string): Numbers => {
    const found = model.tensors.get(name);
    if (found === undefined) throw new Error(`there is no tensor ${name}`);
    return found;
  };
  const width = tensor(model.tables.encoder).shape[1];
  const product = (rows: Row[], weight: Numbers, bias?: Numbers): Row[] => {
    const [out, size] = weight.shape;
    return rows.map((row) =>
      Array.from({ length: out }, (_, o) => {
        let sum = bias === undefined ? 0 : bias.data[o];
        for (let i = 0; i < size; i++) sum += row[i] * weight.data[o * size + i];
        return sum;
      }),
    );
  };
  const linear = (name: string, rows: Row[]): Row[] =>
    product(rows, tensor(`${prefix}${name}.weight`), tensor(`${prefix}${name}.bias`));
  const normed = (name: string, rows: Row[]): Row[] => {
    const [weight, bias] = [tensor(`${prefix}${name}.weight`), tensor(`${prefix}${name}.bias`)];
    return rows.map((row) => {
      const mean = row.reduce((a, b) => a + b, 0) / width;
      const variance = row.reduce((sum, x) => sum + (x - mean) ** 2, 0) / width;
      return row.map((x, i) => ((x - mean) / Math.sqrt(variance + 1e-5)) * weight.data[i] + bias.data[i]);
    });
  };
  const sum = (a: Row[], b: Row[]): Row[] => a.map((row, t) => row.map((x, i) => x + b[t][i]));
  const block = (name: string, x: Row[], inner: (x: Row[]) => Row[]): Row[] =>
    model.norm === 'pre' ? sum(x, inner(normed(name, x))) : normed(name, sum(x, inner(x)));
  const attention = (name: string, x: Row[], memory: Row[], causal: boolean): Row[] => {
    const [q, k, v] = [linear(`${name}.q_proj`, x), linear(`${name}.k_proj`, memory), linear(`${name}.v_proj`, memory)];
    const size = width / heads;
    const mixed = q.map((query, t) => {
      const row: Row = [];
      for (let h = 0; h < heads; h++) {
        const seen = memory.map((_, j) => j).filter((j) => !causal || j <= t);
        const scores = seen.map((j) => {
          let dot = 0;
          for (let i = h * size; i < (h + 1) * size; i++) dot += query[i] * k[j][i];
          return Math.exp(dot / Math.sqrt(size));
        });
        const total = scores.reduce((a, b) => a + b, 0);
        for (let i = h * size; i < (h + 1) * size; i++) {
          row.push(seen.reduce((mean, j, n) => mean + (scores[n] / total) * v[j][i], 0));
        }
      }
      return row;
    });
    return linear(`${name}.out_proj`, mixed);
  };
  const ffn = (name: string, x: Row[]): Row[] => {
    const active = (value: number): number =>
      model.activation === 'relu' ? Math.max(0, value) : value / (1 + Math.exp(-value));
    return linear(
      `${name}.fc2`,
      linear(`${name}.fc1`, x).map((row) => row.map(active)),
    );
  };
  const embedded = (table: string, ids: readonly number[]): Row[] =>
    ids.map((id, t) =>
      Array.from({ length: width }, (_, i) => {
        const half = width / 2;
        const pair = i % half;
        const fairseq = model.positions === 'fairseq';
        const angle = (fairseq ? t + 2 : t) / 10000 ** (fairseq ? pair / (half - 1) : (2 * pair) / width);
        const position = i < half ? Math.sin(angle) : Math.cos(angle);
        return tensor(table).data[id * width + i] * Math.sqrt(width) + position;
      }),
    );
  let x = embedded(model.tables.encoder, source);
  for (let l = 0; l < model.layers[0]; l++) {
    const name = `encoder.layers.${l}`;
    x = block(`${name}.self_attn_layer_norm`, x, (h) => attention(`${name}.self_attn`, h, h, false));
    x = block(`${name}.final_layer_norm`, x, (h) => ffn(name, h));
  }
  const memory = model.norm === 'pre' ? normed('encoder.layer_norm', x) : x;
  x = embedded(model.tables.decoder, previous);
  for (let l = 0; l < model.layers[1]; l++) {
    const name = `decoder.layers.${l}`;
    x = block(`${name}.self_attn_layer_norm`, x, (h) => attention(`${name}.self_attn`, h, h, true));
    x = block(`${name}.encoder_attn_layer_norm`, x, (h) => attention(`${name}.encoder_attn`, h, memory, false));
    x = block(`${name}.final_layer_norm`, x, (h) => ffn(name, h));
  }
  if (model.norm === 'pre') x = normed('decoder.layer_norm', x);
  return product(x, tensor(model.tables.output), model.bias === undefined ? undefined : tensor(model.bias));
}

/** The largest difference between two tables of the same shape. */
export function largestDifference(a: readonly (readonly number[])[], b: readonly (readonly number[])[]): number {
  return Math.max(...a.flatMap((row, t) => row.map((value, i) => Math.abs(value - b[t][i]))));
}

/** A folder of Marian's layout as the reference sees it. */
export function marianReference(folder: string): ReferenceModel {
  const { tensors } = readSafetensors(join(folder, 'model.safetensors'));
  const table = 'model.shared.weight';
  return {
    tensors: tensors as unknown as ReadonlyMap<string, Numbers>,
    prefix: 'model.',
    layers: [2, 1],
    heads: 2,
    norm: 'post',
    activation: 'swish',
    positions: 'marian',
    tables: { encoder: table, decoder: table, output: table },
    bias: 'final_logits_bias',
  };
}
