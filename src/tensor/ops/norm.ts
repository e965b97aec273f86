import { type Dim, formatShape, sameDim, sizeOf } from '../dim.js';
import { describeType, Mismatch, type Op, record, type Tensor } from '../tensor.js';
import { add, cast, div, mul, sqrt, square, sub } from './elementwise.js';
import { dimension } from './fill.js';
import { mean } from './reduce.js';

/** (x − mean)/√(variance + eps)·weight + bias over the last axis (Ba et al. 2016). */
export function layerNorm(x: Tensor, weight: Tensor, bias: Tensor, eps = 1e-5): Tensor {
  return record(layerNormOp, [x, weight, bias], { eps })[0];
}

/** Options of `batchNorm`. */
export interface BatchNormOptions {
  readonly training: boolean;
  /** Weight of the newest batch in the running statistics. Default 0.1. */
  readonly momentum?: number;
  readonly eps?: number;
}

/**
 * Normalises each column of [rows, columns] by the batch (training) or by the running statistics (Ioffe & Szegedy
 * 2015). Returns the statistics to keep for the next step; the running variance is the unbiased one, as in PyTorch.
 */
export function batchNorm(
  x: Tensor,
  weight: Tensor,
  bias: Tensor,
  runningMean: Tensor,
  runningVariance: Tensor,
  { training, momentum = 0.1, eps = 1e-5 }: BatchNormOptions,
): { out: Tensor; mean: Tensor; variance: Tensor } {
  const normal = (center: Tensor, variance: Tensor): Tensor =>
    add(mul(sub(x, center), div(weight, sqrt(add(variance, eps)))), bias);
  if (!training) {
    return { out: normal(runningMean, runningVariance), mean: runningMean, variance: runningVariance };
  }
  const center = mean(x, { axes: [0] });
  const variance = mean(square(sub(x, center)), { axes: [0] });
  const rows = cast(dimension(x.shape[0]), x.dtype);
  const unbiased = mul(variance, div(rows, sub(rows, 1)));
  const running = (old: Tensor, now: Tensor): Tensor => add(mul(old, 1 - momentum), mul(now, momentum));
  return {
    out: normal(center, variance),
    mean: running(runningMean, center),
    variance: running(runningVariance, unbiased),
  };
}

/** Outputs: the result, and what the gradient needs again: mean and 1/√(variance + eps) of each row. */
const layerNormOp: Op<{ eps: number }> = {
  name: 'layerNorm',
  infer: ([x, weight, bias]) => {
    const width = x.shape.at(-1);
    for (const parameter of [weight, bias]) {
      const fits = parameter.shape.length === 1 && width !== undefined && sameDim(parameter.shape[0], width);
      if (!fits || parameter.dtype !== x.dtype) {
        throw new Mismatch(`${describeType(parameter)} does not fit the last axis of ${describeType(x)}`);
      }
    }
    const rows = { shape: x.shape.with(-1, 1), dtype: x.dtype };
    return [x, rows, rows];
  },
  lower: (to, inputs, { attributes, inputs: [x] }) => {
    const eps = attributes.eps as number;
    // Devices compute the variance as a difference of large numbers.
    if (x.dtype === 'f32' && to.device === 'cpu') {
      return to.graph.multi('LayerNormalization', inputs, 3, { axis: -1, epsilon: { float: eps } });
    }
    const average = (name: string): string => to.op('ReduceMean', [name, to.ints([-1])], { keepdims: 1 });
    const center = average(inputs[0]);
    const centred = to.op('Sub', [inputs[0], center]);
    const variance = average(to.op('Mul', [centred, centred]));
    const deviation = to.op('Sqrt', [to.op('Add', [variance, to.scalar(x.dtype, eps)])]);
    const inverse = to.op('Div', [to.scalar(x.dtype, 1), deviation]);
    const normal = to.op('Mul', [centred, inverse]);
    return [to.op('Add', [to.op('Mul', [normal, inputs[1]]), inputs[2]]), center, inverse];
  },
  gradient: ({ inputs: [x, weight], outputs: [, center, inverse] }, [g]) =>
    record(layerNormGradientOp, [x, weight, center, inverse, g!], {}),
};

/**
 * With x̂ = (x − mean)·inv, w = weight and D columns:
 * dx = inv·(g·w − (Σ g·w)/D − x̂·(Σ g·x̂·w)/D), dw = Σ_rows g·x̂, db = Σ_rows g. The row sums are products with the
 * vector w/D and the column sums products with ones, which run in the matrix kernel.
 */
const layerNormGradientOp: Op = {
  name: 'layerNormGradient',
  infer: ([x, weight]) => [x, weight, weight],
  lower: (to, [x, weight, center, inverse, g], { inputs: [{ shape, dtype }] }) => {
    const width = shape.at(-1)!;
    if (typeof width !== 'number') {
      throw new Error(`layerNorm: the normalised size must be a number, got ${formatShape(shape)}`);
    }
    const rows = sizeOf(shape.slice(0, -1));
    const flat = (name: string, last: Dim): string => to.reshape(name, shape.with(-1, last), [rows, last]);
    const [x2, g2, center2, inverse2] = [flat(x, width), flat(g, width), flat(center, 1), flat(inverse, 1)];
    const normal = to.op('Mul', [to.op('Sub', [x2, center2]), inverse2]);
    const product = to.op('Mul', [g2, normal]);
    const column = to.op('Reshape', [to.op('Mul', [weight, to.scalar(dtype, 1 / width)]), to.ints([-1, 1])]);
    const meanG = to.op('MatMul', [g2, column]);
    const meanProduct = to.op('MatMul', [product, column]);
    const weighted = to.op('Sub', [to.op('Mul', [g2, weight]), meanG]);
    const dx = to.op('Mul', [to.op('Sub', [weighted, to.op('Mul', [normal, meanProduct])]), inverse2]);
    return [
      to.reshape(dx, [rows, width], shape),
      to.columnSums(product, rows, width, dtype),
      to.columnSums(g2, rows, width, dtype),
    ];
  },
};
