import { bareName, type Dim, namesIn, SymbolicDim, sameDim } from './dim.js';
import { MICROSOFT, OnnxGraph } from './onnx.js';
import { type DType, type Tensor, type TensorType, TraceError, typedArray } from './tensor.js';
import type { Program } from './trace.js';

/** A program written as an ONNX model, with what a runner must know to feed it. Plain data: it can be sent to a worker. */
export interface Executable {
  readonly onnx: Uint8Array;
  /** The inputs that the program really uses. */
  readonly inputs: Readonly<Record<string, TensorType>>;
  readonly outputs: Readonly<Record<string, TensorType>>;
  /** Dropout masks and other random arrays, filled again for each run. */
  readonly masks: readonly MaskInput[];
}

/** Writes a program as an ONNX graph. */
export function lower(program: Program): Executable {
  const to = new Lowering();
  const names = new Map<Tensor, string>();
  const used = new Set(program.nodes);

  const inputs: Record<string, TensorType> = {};
  for (const [name, tensor] of program.inputs) {
    const bindsName = tensor.shape.some((size) => bareName(size) !== undefined);
    if (!used.has(tensor.node) && !bindsName) continue;
    names.set(tensor, to.graph.input(name, tensor.dtype, tensor.shape));
    inputs[name] = { shape: tensor.shape, dtype: tensor.dtype };
    tensor.shape.forEach((size, axis) => {
      const dimension = bareName(size);
      if (dimension !== undefined) to.bindSize(dimension, name, axis);
      else if (namesIn(size).length > 0) {
        throw new TraceError(
          'input',
          `axis ${axis} of ${name} must be a number or a name, got ${size}`,
          tensor.node.site,
        );
      }
    });
  }
  for (const node of program.nodes) {
    if (node.op.name === 'input') continue;
    const lowered = node.op.lower(
      to,
      node.inputs.map((tensor) => names.get(tensor)!),
      node,
    );
    node.outputs.forEach((tensor, i) => {
      names.set(tensor, lowered[i]);
      if (lowered[i] !== undefined) to.graph.annotate(lowered[i], tensor.dtype, tensor.shape);
    });
  }

  const outputs: Record<string, TensorType> = {};
  for (const [name, tensor] of program.outputs) {
    to.graph.output(name, names.get(tensor)!, tensor.dtype, tensor.shape);
    outputs[name] = { shape: tensor.shape, dtype: tensor.dtype };
  }
  const { bytes, usedInputs } = to.graph.encode();
  for (const name of Object.keys(inputs)) if (!usedInputs.has(name)) delete inputs[name];
  return { onnx: bytes, inputs, outputs, masks: to.masks.filter(({ name }) => usedInputs.has(name)) };
}

/** An array that the caller fills with random numbers before each run. */
export interface MaskInput {
  readonly name: string;
  readonly shape: readonly Dim[];
  /** With zeros, and 1/keep in this share of the places; undefined: with uniform numbers in (0, 1). */
  readonly keep?: number;
}

/** What an operation needs while it is written into an ONNX graph: the graph itself, constants and run-time sizes. */
export class Lowering {
  readonly graph = new OnnxGraph();
  readonly masks: MaskInput[] = [];
  private readonly sizes = new Map<string, string>();
  private readonly shared = new Map<string, string>();
  private readonly reshaped = new Map<string, { readonly input: string; readonly from: readonly Dim[] }>();
  private readonly splits = new Map<string, string[]>();

  op(...args: Parameters<OnnxGraph['op']>): string {
    return this.graph.op(...args);
  }

  scalar(dtype: DType, value: number): string {
    return this.graph.constant(dtype, typedArray(dtype, [value]), []);
  }

  ints(values: readonly number[]): string {
    return this.graph.constant('i64', typedArray('i64', values), [values.length]);
  }

  /** A tensor of zeros with a run-time shape. */
  zeros(dtype: DType, shape: readonly Dim[]): string {
    const name = this.op('Expand', [this.scalar(dtype, 0), this.shape(shape)]);
    this.graph.annotate(name, dtype, shape);
    return name;
  }

  /** Declares that the named size can be read off axis `axis` of graph input `input`. */
  bindSize(name: string, input: string, axis: number): void {
    if (this.sizes.has(name)) return;
    this.sizes.set(name, this.op('Shape', [input], { start: axis, end: axis + 1 }));
  }

  /** An i64[1] tensor with the run-time value of a dimension. */
  size(value: Dim): string {
    if (typeof value === 'number') return this.ints([value]);
    const known = this.sizes.get(value.key);
    if (known !== undefined) return known;
    const name = bareName(value);
    if (name !== undefined) throw new RangeError(`no input of the program has the dimension ${name}`);
    let sum: string | undefined;
    for (const [names, coefficient] of value.terms) {
      let product = this.ints([coefficient]);
      for (const factor of names === '' ? [] : names.split('*')) {
        product = this.op('Mul', [product, this.size(new SymbolicDim(new Map([[factor, 1]])))]);
      }
      sum = sum === undefined ? product : this.op('Add', [sum, product]);
    }
    this.sizes.set(value.key, sum!);
    return sum!;
  }

  /** An i64 vector with the run-time shape. */
  shape(shape: readonly Dim[]): string {
    if (shape.every((size) => typeof size === 'number')) return this.ints(shape);
    return this.once(`[${shape.join()}]`, () => {
      const sizes = shape.map((size) => this.size(size));
      return this.op('Concat', sizes, { axis: 0 });
    });
  }

  /**
   * Reshapes without run-time arithmetic where ONNX's `0` (keep) and `-1` (infer) suffice. What is reshaped already is
   * taken from where it came: the step between is not written if nothing else needs it.
   */
  reshape(value: string, shape: readonly Dim[], to: readonly Dim[]): string {
    const { input, from } = this.reshaped.get(value) ?? { input: value, from: shape };
    if (from.length === to.length && from.every((size, i) => sameDim(size, to[i]))) return input;
    const sizes = to.map((size, i) =>
      typeof size === 'number' ? size : i < from.length && sameDim(size, from[i]) ? 0 : -1,
    );
    const simple = sizes.filter((size) => size === -1).length <= 1 && !to.includes(0);
    const name = this.op('Reshape', [input, simple ? this.ints(sizes) : this.shape(to)]);
    this.reshaped.set(name, { input, from });
    return name;
  }

  /** Σ over the rows of [rows, columns], as [columns]. In f32 a product with ones: the matrix kernel is threaded. */
  columnSums(matrix: string, rows: Dim, columns: Dim, dtype: DType): string {
    if (dtype !== 'f32') return this.op('ReduceSum', [matrix, this.ints([0])], { keepdims: 0 });
    return this.reshape(this.op('MatMul', [this.ones(rows), matrix]), [1, columns], [columns]);
  }

  /** A row [1, size] of f32 ones. */
  private ones(size: Dim): string {
    return this.once(`ones ${size}`, () => this.op('Expand', [this.scalar('f32', 1), this.shape([1, size])]));
  }

  /** A value that several operations need: written by the first that asks for it. */
  once(key: string, write: () => string): string {
    const name = this.shared.get(key) ?? write();
    this.shared.set(key, name);
    return name;
  }

  /** The steps of a time-major tensor [steps, batch, width] as matrices [batch, width]. */
  steps(name: string, steps: number): string[] {
    const known = this.splits.get(name);
    if (known !== undefined) return known;
    const parts = this.graph
      .multi('Split', [name], steps, { axis: 0, num_outputs: steps })
      .map((part) => this.op('Squeeze', [part, this.ints([0])]));
    this.splits.set(name, parts);
    return parts;
  }

  /** The inverse of `steps`; it remembers the parts, in case they are needed again. */
  stackSteps(parts: readonly string[]): string {
    // Joined along an axis of known size: the runtime plans memory slowly for sums of named sizes.
    const leading = parts.map((part) => this.op('Unsqueeze', [part, this.ints([0])]));
    const name = this.op('Concat', leading, { axis: 0 });
    this.splits.set(name, [...parts]);
    return name;
  }

  /** Matrix product of the last two axes, with transposition for free where the element type has the fused kernel. */
  matmul(
    a: string,
    b: string,
    dtype: DType,
    { transA = false, transB = false, alpha = 1 }: { transA?: boolean; transB?: boolean; alpha?: number } = {},
    ranks: readonly [number, number] = [2, 2],
  ): string {
    if (!transA && !transB && alpha === 1) return this.op('MatMul', [a, b]);
    if (dtype === 'f32') {
      const attributes = { transA: Number(transA), transB: Number(transB), alpha: { float: alpha } };
      return this.op('FusedMatMul', [a, b], attributes, MICROSOFT);
    }
    const left = transA ? this.op('Transpose', [a], { perm: swapLast(ranks[0]) }) : a;
    const right = transB ? this.op('Transpose', [b], { perm: swapLast(ranks[1]) }) : b;
    const product = this.op('MatMul', [left, right]);
    return alpha === 1 ? product : this.op('Mul', [product, this.scalar(dtype, alpha)]);
  }
}

function swapLast(rank: number): number[] {
  const order = Array.from({ length: rank }, (_, i) => i);
  return [...order.slice(0, -2), rank - 1, rank - 2];
}
