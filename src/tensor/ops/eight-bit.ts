import type { Lowering } from '../lowering.js';
import { MICROSOFT } from '../onnx.js';
import { type Op, record } from '../tensor.js';
import { type Program, rewrite } from '../trace.js';

/**
 * The program with its products of states and weights (`linear`, and `linearCrossEntropy` without smoothing or bias) in
 * 8-bit integers: two to four times faster than f32, each result accurate to about 1 %. For values that are inspected
 * rather than trained with: there is no gradient.
 *
 * Each row of states is rounded to 127 steps on either side of zero, each row of a weight to 63. That is one bit less
 * than available: with all of them, processors that add two products in 16 bits overflow. Since every row of states has its
 * own scale, and integers are added without rounding, a sample's result does not depend on the others in its
 * batch: ranks that split a batch get the bits of a single process.
 */
export function inEightBits(program: Program): Program {
  return rewrite(program, {
    node: ({ op, attributes }, inputs) => {
      if (op.name === 'linear') return record(eightBitLinearOp, inputs, {});
      const isPlainLoss = op.name === 'linearCrossEntropy' && attributes.smoothing === 0 && inputs.length === 3;
      if (isPlainLoss) return record(eightBitLossOp, inputs, {});
      return undefined;
    },
  });
}

const eightBitLinearOp: Op = {
  name: 'eightBitLinear',
  infer: ([x, weight]) => [{ shape: [x.shape[0], weight.shape[0]], dtype: x.dtype }],
  lower: (to, [x, weight, bias]) => [product(to, x, weight, bias)],
};

/**
 * log Σ_v exp(l_v − l_t), in [0, 88], with the logit l_t of the target in f32. The vocabulary is processed in blocks
 * whose logits stay in the cache.
 */
const eightBitLossOp: Op = {
  name: 'eightBitLoss',
  infer: ([x]) => [{ shape: [x.shape[0]], dtype: x.dtype }],
  lower: (to, [x, weight, targets], { inputs: [, { shape }] }) => {
    const [classes, width] = shape as readonly number[];
    const ofTarget = rowSum(to, to.op('Mul', [x, to.op('Gather', [weight, targets], { axis: 0 })]), width); // [rows, 1]
    const sums: string[] = [];
    for (let first = 0; first < classes; first += BLOCK) {
      const last = Math.min(first + BLOCK, classes);
      const block = to.op('Slice', [weight, to.ints([first]), to.ints([last]), to.ints([0])]);
      sums.push(rowSum(to, to.op('Exp', [to.op('Sub', [product(to, x, block), ofTarget])]), last - first));
    }
    const sum = to.op('Clip', [to.op('Sum', sums), to.scalar('f32', 1), to.scalar('f32', 3e38)]);
    return [to.op('Squeeze', [to.op('Log', [sum]), to.ints([1])])];
  },
};

/**
 * Σ over the columns of [rows, width], as [rows, 1]. The order in which the runtime adds depends on where in a cache line
 * a row begins, and thus on the row number, unless all are aligned: hence the zero padding.
 */
function rowSum(to: Lowering, matrix: string, width: number): string {
  const missing = -width & (LINE - 1);
  const whole = missing === 0 ? matrix : to.op('Pad', [matrix, to.ints([0, 0, 0, missing])]);
  return to.op('ReduceSum', [whole, to.ints([1])], { keepdims: 1 });
}

/** Elements of a cache line. */
const LINE = 16;
/** Columns of logits made at a time. */
const BLOCK = 256;
/** Steps from zero to the largest number of a row. */
const STEPS = { state: 127, weight: 63 };
/** Unsigned, as the processors' instructions require for one factor: in the middle of 1 … 255. */
const STATE_ZERO = 128;
/** TensorProto.DataType */
const [UINT8, INT8] = [2, 3];

/** x·Wᵀ + bias for x [rows, in] and W [out, in]. */
function product(to: Lowering, x: string, weight: string, bias?: string): string {
  const scale = rowScale(to, weight, STEPS.weight);
  const zero = to.op('Cast', [to.op('Mul', [scale, to.scalar('f32', 0)])], { to: INT8 });
  const rounded = to.op('QuantizeLinear', [weight, scale, zero], { axis: 0 });
  const columns = to.op('Transpose', [rounded], { perm: [1, 0] }); // [in, out]
  const states = roundedStates(to, x);
  const inputs = [states.rounded, columns, to.scalar('f32', 1), scale, states.zero];
  const scaled = to.op('Mul', [to.op('MatMulIntegerToFloat', inputs, {}, MICROSOFT), states.scale]);
  return bias === undefined ? scaled : to.op('Add', [scaled, bias]);
}

/** States [rows, in] as integers, their scale [rows, 1] and zero point: computed once for all their products. */
function roundedStates(to: Lowering, x: string): { rounded: string; scale: string; zero: string } {
  const scales = to.once(`scales of ${x}`, () => rowScale(to, x, STEPS.state)); // [rows]
  const zero = to.once('zero of states', () => to.op('Cast', [to.scalar('f32', STATE_ZERO)], { to: UINT8 }));
  const rounded = to.once(`rounded ${x}`, () => {
    const zeros = to.op('Expand', [zero, to.op('Shape', [scales])]);
    return to.op('QuantizeLinear', [x, scales, zeros], { axis: 0 });
  });
  return { rounded, scale: to.once(`scale of ${x}`, () => to.op('Unsqueeze', [scales, to.ints([1])])), zero };
}

/** The step size in each row of a matrix, [rows]. A row of zeros, such as padding, stays zero. */
function rowScale(to: Lowering, matrix: string, steps: number): string {
  const largest = to.op('ReduceMax', [to.op('Abs', [matrix]), to.ints([1])], { keepdims: 0 });
  return to.op('Max', [to.op('Mul', [largest, to.scalar('f32', 1 / steps)]), to.scalar('f32', 1e-30)]);
}
