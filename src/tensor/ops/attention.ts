import { type Dim, formatShape, multiplyDims } from '../dim.js';
import type { Lowering } from '../lowering.js';
import { MICROSOFT } from '../onnx.js';
import type { DType } from '../tensor.js';
import { describeType, Mismatch, type Node, type Op, record, sameShape, type Tensor } from '../tensor.js';
import { LOWEST } from './activations.js';
import { add, and, broadcastShapes, less, lessEqual, where } from './elementwise.js';
import { fill, range } from './fill.js';
import { expandDims, reshape } from './shape.js';

/** Options of `attention`. */
export interface AttentionOptions {
  readonly heads: number;
  /** Added to the scores before the softmax, [1 | B, 1, Tq, Tk]; see `attentionBias`. No gradient. */
  readonly bias?: Tensor;
  /** Multiplied with the probabilities, [B·heads, Tq, Tk]; see `dropoutMask`. */
  readonly mask?: Tensor;
}

/**
 * Multi-head scaled dot-product attention (Vaswani et al. 2017), time-major: queries [Tq, B, D], keys and values
 * [Tk, B, D], result [Tq, B, D] with the heads side by side. Time-major because then the heads of all sentences are
 * batch axes in place: no tensor is rearranged before the products.
 */
export function attention(query: Tensor, key: Tensor, value: Tensor, { heads, bias, mask }: AttentionOptions): Tensor {
  const extra = [bias, mask].filter((tensor) => tensor !== undefined);
  const flags = { heads, hasBias: bias !== undefined, hasMask: mask !== undefined };
  return record(attentionOp, [query, key, value, ...extra], flags)[0];
}

/** Which keys a query sees; all conditions must hold. */
export interface Visibility {
  /** Query i sees key j iff j ≤ i. */
  readonly causal?: boolean;
  /** i64 [B]: query i of sample b sees key j iff j ≤ i + limit_b. */
  readonly limit?: Tensor;
  /** i64 [Tq]: query i sees key j iff j ≤ reach_i. */
  readonly reach?: Tensor;
  /** i64 [B]: keys j ≥ length_b are padding and seen by no query. */
  readonly lengths?: Tensor;
}

/** The additive form of a visibility rule, [1 | B, 1, Tq, Tk]: 0 where the key is seen, `LOWEST` where it is not. */
export function attentionBias(
  queries: Dim,
  keys: Dim,
  { causal = false, limit, reach, lengths }: Visibility,
  dtype: DType = 'f32',
): Tensor | undefined {
  const i = reshape(range(queries), [1, queries, 1]);
  const j = reshape(range(keys), [1, 1, keys]);
  const perSample = (x: Tensor): Tensor => expandDims(expandDims(x, -1), -1);
  const rules = [
    ...(causal ? [lessEqual(j, i)] : []),
    ...(limit === undefined ? [] : [lessEqual(j, add(i, perSample(limit)))]),
    ...(reach === undefined ? [] : [lessEqual(j, reshape(reach, [1, queries, 1]))]),
    ...(lengths === undefined ? [] : [less(j, perSample(lengths))]),
  ];
  if (rules.length === 0) return undefined;
  return expandDims(where(rules.reduce(and), fill(0, [], dtype), LOWEST), 1);
}

interface Sizes {
  readonly dtype: DType;
  readonly queries: Dim;
  readonly keys: Dim;
  readonly batch: Dim;
  readonly width: number;
  readonly heads: number;
}

function sizesOf({ inputs: [query, key], attributes }: Pick<Node, 'inputs' | 'attributes'>): Sizes {
  const [queries, batch, width] = query.shape;
  return {
    dtype: query.dtype,
    queries,
    keys: key.shape[0],
    batch,
    width: width as number,
    heads: attributes.heads as number,
  };
}

type Flags = { heads: number; hasBias: boolean; hasMask: boolean };

/** Outputs: the result, and the probabilities [B·heads, Tq, Tk] that the gradient needs again. */
const attentionOp: Op<Flags> = {
  name: 'attention',
  infer: ([query, key, value, ...extra], { heads, hasBias, hasMask }) => {
    const [queries, batch, width] = query.shape;
    const keys = key.shape[0];
    const fits =
      query.shape.length === 3 &&
      typeof width === 'number' &&
      width % heads === 0 &&
      sameShape(key.shape, [keys, batch, width]) &&
      sameShape(value.shape, key.shape) &&
      [key, value].every(({ dtype }) => dtype === query.dtype);
    if (!fits) {
      const types = [query, key, value].map(describeType).join(', ');
      throw new Mismatch(`expected [Tq, B, D], [Tk, B, D], [Tk, B, D] with D divisible by ${heads}, got ${types}`);
    }
    const rows = multiplyDims(batch, heads);
    if (hasBias) {
      const target = [batch, 1, queries, keys];
      const { shape, dtype } = extra[0];
      if (shape.length !== 4 || dtype !== query.dtype || !sameShape(broadcastShapes(shape, target), target)) {
        throw new Mismatch(`expected a bias ${query.dtype}${formatShape(target)}, got ${describeType(extra[0])}`);
      }
    }
    if (hasMask && !sameShape(extra.at(-1)!.shape, [rows, queries, keys])) {
      throw new Mismatch(`expected a mask ${formatShape([rows, queries, keys])}, got ${describeType(extra.at(-1)!)}`);
    }
    return [query, { shape: [rows, queries, keys], dtype: query.dtype }];
  },
  lower: (to, [query, key, value, ...extra], node) => {
    const s = sizesOf(node);
    const { hasBias, hasMask } = node.attributes as Flags;
    const [q, k, v] = [heads(to, query, s, s.queries), heads(to, key, s, s.keys), heads(to, value, s, s.keys)];
    let scores = product(to, s, q, k, { timeA: true, timeB: true, transB: true, alpha: scale(s) });
    if (hasBias) scores = to.op('Add', [scores, headBias(to, extra[0], node.inputs[3].shape, s)]);
    const probabilities = to.op('Softmax', [scores], { axis: -1 });
    const weights = hasMask ? to.op('Mul', [probabilities, extra.at(-1)!]) : probabilities;
    return [unheads(to, product(to, s, weights, v, { timeB: true }), s, s.queries), probabilities];
  },
  gradient: (node, [g]) => {
    const [query, key, value, ...extra] = node.inputs;
    const { heads: count, hasMask } = node.attributes as Flags;
    const mask = hasMask ? [extra.at(-1)!] : [];
    const inputs = [query, key, value, node.outputs[1], g!, ...mask];
    return record(attentionGradientOp, inputs, { heads: count, hasMask });
  },
};

/** With P the probabilities and M the mask: dV = (PM)ᵀ dO, dP = (dO Vᵀ)M, dS = P(dP − Σ dP·P), dQ = s·dS K, dK = s·dSᵀ Q. */
const attentionGradientOp: Op<{ heads: number; hasMask: boolean }> = {
  name: 'attentionGradient',
  infer: ([query, key, value]) => [query, key, value],
  lower: (to, [query, key, value, probabilities, g, mask], node) => {
    const s = sizesOf(node);
    const [q, k, v] = [heads(to, query, s, s.queries), heads(to, key, s, s.keys), heads(to, value, s, s.keys)];
    const out = heads(to, g, s, s.queries);
    const masked = (name: string): string => (mask === undefined ? name : to.op('Mul', [name, mask]));
    const dV = product(to, s, masked(probabilities), out, { transA: true, timeB: true });
    const dP = masked(product(to, s, out, v, { timeA: true, timeB: true, transB: true }));
    const inner = to.op('ReduceSum', [to.op('Mul', [dP, probabilities]), to.ints([-1])], { keepdims: 1 });
    const dS = to.op('Mul', [probabilities, to.op('Sub', [dP, inner])]);
    const dQ = product(to, s, dS, k, { timeB: true, alpha: scale(s) });
    const dK = product(to, s, dS, q, { transA: true, timeB: true, alpha: scale(s) });
    return [unheads(to, dQ, s, s.queries), unheads(to, dK, s, s.keys), unheads(to, dV, s, s.keys)];
  },
};

/** A bias [1 | B, 1, Tq, Tk] as [1 | B·heads, Tq, Tk]: once for all layers. */
function headBias(to: Lowering, bias: string, shape: readonly Dim[], { batch, heads: count }: Sizes): string {
  const [samples, , queries, keys] = shape;
  if (samples === 1) return to.reshape(bias, shape, [1, queries, keys]);
  return to.once(`${bias} for ${count} heads`, () => {
    const repeated = to.op('Expand', [bias, to.ints([1, count, 1, 1])]);
    return to.reshape(repeated, [batch, count, queries, keys], [multiplyDims(batch, count), queries, keys]);
  });
}

const scale = ({ width, heads: count }: Sizes): number => 1 / Math.sqrt(width / count);

/** [T, B, D] → [T, B·heads, D/heads], in place. */
function heads(to: Lowering, name: string, { batch, width, heads: count }: Sizes, steps: Dim): string {
  return to.reshape(name, [steps, batch, width], [steps, multiplyDims(batch, count), width / count]);
}

/** [B·heads, T, D/heads] → [T, B, D] */
function unheads(to: Lowering, name: string, { batch, width, heads: count }: Sizes, steps: Dim): string {
  const rows = multiplyDims(batch, count);
  const timeMajor = to.op('Transpose', [name], { perm: [1, 0, 2] });
  return to.reshape(timeMajor, [steps, rows, width / count], [steps, batch, width]);
}

interface ProductOptions {
  readonly transA?: boolean;
  readonly transB?: boolean;
  /** The operand is [T, rows, d] rather than [rows, T, d]. */
  readonly timeA?: boolean;
  readonly timeB?: boolean;
  readonly alpha?: number;
}

function product(
  to: Lowering,
  { dtype }: Sizes,
  a: string,
  b: string,
  { transA = false, transB = false, timeA = false, timeB = false, alpha = 1 }: ProductOptions,
): string {
  if (dtype === 'f32' && to.device === 'cpu') {
    const attributes = {
      transA: Number(transA),
      transB: Number(transB),
      transBatchA: Number(timeA),
      transBatchB: Number(timeB),
      alpha: { float: alpha },
    };
    return to.op('FusedMatMul', [a, b], attributes, MICROSOFT);
  }
  const rowMajor = (name: string, time: boolean): string =>
    time ? to.op('Transpose', [name], { perm: [1, 0, 2] }) : name;
  return to.matmul(rowMajor(a, timeA), rowMajor(b, timeB), dtype, { transA, transB, alpha }, [3, 3]);
}
