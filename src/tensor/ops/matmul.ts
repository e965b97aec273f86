import { type Dim, formatShape, sameDim, sizeOf } from '../dim.js';
import { describeType, isFloat, Mismatch, type Op, record, type Tensor, type TensorType } from '../tensor.js';
import { broadcastShapes } from './elementwise.js';
import { sum, sumTo } from './reduce.js';
import { reshape } from './shape.js';

/** Which factors are transposed. */
export interface MatmulOptions {
  /** Use a with its last two axes exchanged. */
  readonly transA?: boolean;
  /** Use b with its last two axes exchanged. */
  readonly transB?: boolean;
}

/** Matrix product over the last two axes; leading axes broadcast. */
export function matmul(a: Tensor, b: Tensor, { transA = false, transB = false }: MatmulOptions = {}): Tensor {
  // One matrix applied to many rows is a single two-dimensional product.
  if (a.shape.length > 2 && b.shape.length === 2 && !transA) {
    const lead = a.shape.slice(0, -1);
    const rows = reshape(a, [sizeOf(lead), a.shape.at(-1)!]);
    const product = record(matmulOp, [rows, b], { transA, transB })[0];
    return reshape(product, [...lead, product.shape[1]]);
  }
  return record(matmulOp, [a, b], { transA, transB })[0];
}

/** x·weightᵀ + bias, with the weight as [out, in] like PyTorch's. */
export function linear(x: Tensor, weight: Tensor, bias?: Tensor): Tensor {
  const lead = x.shape.slice(0, -1);
  const rows = reshape(x, [sizeOf(lead), x.shape.at(-1) ?? 1]);
  const out = record(linearOp, bias === undefined ? [rows, weight] : [rows, weight, bias], {})[0];
  return reshape(out, [...lead, out.shape[1]]);
}

const matmulOp: Op<{ transA: boolean; transB: boolean }> = {
  name: 'matmul',
  infer: ([a, b], { transA, transB }) => {
    const [m, k] = matrixShape(a, transA);
    const [otherK, n] = matrixShape(b, transB);
    if (a.dtype !== b.dtype || !isFloat(a.dtype)) {
      throw new Mismatch(`expected two f32 or two f64 tensors, got ${describeType(a)} and ${describeType(b)}`);
    }
    if (!sameDim(k, otherK)) {
      const flags = transA || transB ? ` (transA ${transA}, transB ${transB})` : '';
      throw new Mismatch(
        `inner sizes ${k} and ${otherK} of ${formatShape(a.shape)} and ${formatShape(b.shape)} differ${flags}`,
      );
    }
    return [{ shape: [...broadcastShapes(a.shape.slice(0, -2), b.shape.slice(0, -2)), m, n], dtype: a.dtype }];
  },
  lower: (to, [a, b], { attributes, inputs }) => {
    const { transA, transB } = attributes as { transA: boolean; transB: boolean };
    const ranks = [inputs[0].shape.length, inputs[1].shape.length] as const;
    return [to.matmul(a, b, inputs[0].dtype, { transA, transB }, ranks)];
  },
  gradient: ({ inputs: [a, b], attributes }, [g]) => {
    const { transA, transB } = attributes as { transA: boolean; transB: boolean };
    const da = transA ? matmul(b, g!, { transA: transB, transB: true }) : matmul(g!, b, { transB: !transB });
    const db = transB ? matmul(g!, a, { transA: true, transB: transA }) : matmul(a, g!, { transA: !transA });
    return [sumTo(da, a.shape), sumTo(db, b.shape)];
  },
};

const linearOp: Op = {
  name: 'linear',
  infer: ([x, weight, bias]) => {
    const fits =
      weight.shape.length === 2 &&
      sameDim(x.shape[1], weight.shape[1]) &&
      (bias === undefined || (bias.shape.length === 1 && sameDim(bias.shape[0], weight.shape[0])));
    const types = [x, weight, ...(bias === undefined ? [] : [bias])];
    if (!fits || types.some(({ dtype }) => dtype !== x.dtype || !isFloat(dtype))) {
      throw new Mismatch(
        `expected x [rows, in], weight [out, in] and bias [out] of one type, got ${types.map(describeType).join(', ')}`,
      );
    }
    return [{ shape: [x.shape[0], weight.shape[0]], dtype: x.dtype }];
  },
  lower: (to, inputs) => [to.op('Gemm', inputs, { transB: 1 })],
  gradient: ({ inputs: [x, weight, bias] }, [g]) => {
    const gradients = [matmul(g!, weight), matmul(g!, x, { transA: true })];
    return bias === undefined ? gradients : [...gradients, sum(g!, { axes: [0] })];
  },
};

function matrixShape({ shape }: TensorType, transposed: boolean): [Dim, Dim] {
  if (shape.length < 2) throw new Mismatch(`expected at least 2 axes, got ${formatShape(shape)}`);
  const [rows, columns] = shape.slice(-2);
  return transposed ? [columns, rows] : [rows, columns];
}
