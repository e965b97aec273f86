import type { DeviceName } from '../devices.js';
import { bareName, type Dim, dim, namesIn, SymbolicDim, sameDim, sizeOf } from './dim.js';
import { ELEMENT_TYPE, MICROSOFT, OnnxGraph } from './onnx.js';
import { type DType, type Tensor, type TensorType, TraceError, typedArray } from './tensor.js';
import type { Program } from './trace.js';

/** A program as an ONNX model, with what a runner needs to feed it. Plain data: it can be sent to a worker. */
export interface Executable {
  readonly onnx: Uint8Array;
  /** Target device. */
  readonly device: DeviceName;
  /** The inputs that the program uses. */
  readonly inputs: Readonly<Record<string, TensorType>>;
  readonly outputs: Readonly<Record<string, TensorType>>;
  /** Dropout masks and other random arrays, new in each run. */
  readonly masks: readonly MaskInput[];
  /** Whether the program makes them itself, with the portable hash, from `MASK_WORDS`; otherwise they are fed. */
  readonly masksInside: boolean;
}

/** Target of a program. */
export interface LowerOptions {
  /** Default cpu. */
  readonly device?: DeviceName;
  /**
   * Whether the program makes its random arrays itself, with the portable hash. Default: on devices other than the CPU, which
   * is faster with arrays made outside.
   */
  readonly masksInside?: boolean;
}

/** Writes a program as an ONNX graph. */
export function lower(
  program: Program,
  { device = 'cpu', masksInside = device !== 'cpu' }: LowerOptions = {},
): Executable {
  const to = new Lowering(device, masksInside);
  const names = new Map<Tensor, string>();
  const used = new Set(program.nodes);

  const inputs: Record<string, TensorType> = {};
  for (const [name, tensor] of program.inputs) {
    const bindsName = tensor.shape.some((size) => bareName(size) !== undefined);
    if (!used.has(tensor.node) && !bindsName) continue;
    names.set(tensor, to.graph.input(name, to.type(tensor.dtype), tensor.shape));
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
      if (lowered[i] !== undefined) to.graph.annotate(lowered[i], to.typeOf(lowered[i], tensor.dtype), tensor.shape);
    });
  }

  const outputs: Record<string, TensorType> = {};
  for (const [name, tensor] of program.outputs) {
    const value = names.get(tensor)!;
    to.graph.output(name, value, to.typeOf(value, tensor.dtype), tensor.shape);
    outputs[name] = { shape: tensor.shape, dtype: tensor.dtype };
  }
  const { bytes, usedInputs } = to.graph.encode();
  for (const name of Object.keys(inputs)) if (!usedInputs.has(name)) delete inputs[name];
  const masks = masksInside ? to.masks : to.masks.filter(({ name }) => usedInputs.has(name));
  return { onnx: bytes, device, inputs, outputs, masks, masksInside };
}

/** Input of a program that computes its random arrays: two words of the key and a limit for each, u32 as i32 [3·arrays]. */
export const MASK_WORDS = 'random:words';
/** And what is not zero in each of the masks, [arrays]. */
export const MASK_SCALES = 'random:scales';

/** TensorProto.DataType of u32, used only inside programs. */
const UINT32 = 12;

/** An array that the caller fills with random numbers before each run. */
export interface MaskInput {
  readonly name: string;
  readonly shape: readonly Dim[];
  /** Zeros, and 1/keep for this share of the elements; undefined: uniform numbers in (0, 1). */
  readonly keep?: number;
}

/** What an operation needs while it is lowered to an ONNX graph: the graph itself, constants and run-time sizes. */
export class Lowering {
  readonly graph = new OnnxGraph();
  readonly masks: MaskInput[] = [];
  private readonly sizes = new Map<string, string>();
  private readonly shared = new Map<string, string>();
  private readonly reshaped = new Map<string, { readonly input: string; readonly from: readonly Dim[] }>();
  private readonly splits = new Map<string, string[]>();
  private readonly wideValues = new Set<string>();

  constructor(
    readonly device: DeviceName = 'cpu',
    private readonly masksInside = false,
  ) {}

  op(...args: Parameters<OnnxGraph['op']>): string {
    return this.graph.op(...args);
  }

  /**
   * The element type that values of a type have here. Devices compute with 32-bit integers: token ids and positions fit;
   * shapes stay in 64 bits, on the CPU.
   */
  type(dtype: DType): DType {
    return dtype === 'i64' && this.device !== 'cpu' ? 'i32' : dtype;
  }

  /** A value with 64-bit integers on every device: results of the runtime's own operations, such as an index. */
  wide(name: string): string {
    this.wideValues.add(name);
    return name;
  }

  /** The element type of a value. */
  typeOf(name: string, dtype: DType): DType {
    return this.wideValues.has(name) ? dtype : this.type(dtype);
  }

  /** A constant tensor of values. */
  constant(dtype: DType, values: ArrayLike<number | bigint>, shape: readonly number[]): string {
    const type = this.type(dtype);
    return this.graph.constant(type, typedArray(type, Array.from(values, Number)), shape);
  }

  scalar(dtype: DType, value: number): string {
    return this.constant(dtype, [value], []);
  }

  /** Values in another element type. */
  cast(name: string, dtype: DType): string {
    return this.op('Cast', [name], { to: ELEMENT_TYPE[this.type(dtype)] });
  }

  /** The run-time value of a dimension as a scalar. */
  count(value: Dim, dtype: DType): string {
    const size = this.op('Squeeze', [this.size(value), this.ints([0])]);
    return this.type(dtype) === 'i64' ? size : this.cast(size, dtype);
  }

  /** 0, 1, 2, …, size − 1 */
  range(size: Dim, dtype: DType): string {
    // On a device directly in the required type: it has no 64-bit integers.
    if (this.device !== 'cpu') {
      return this.op('Range', [this.scalar(dtype, 0), this.count(size, dtype), this.scalar(dtype, 1)]);
    }
    const counts = this.op('Range', [this.scalar('i64', 0), this.count(size, 'i64'), this.scalar('i64', 1)]);
    return dtype === 'i64' ? counts : this.cast(counts, dtype);
  }

  /** A random array: 0, and 1/keep for this share of the elements; without `keep`, uniform numbers in (0, 1). */
  mask(name: string, shape: readonly Dim[], keep?: number): string {
    const site = this.masks.length;
    this.masks.push({ name, shape, keep });
    return this.masksInside ? this.portable(site, shape, keep) : this.graph.input(name, 'f32', shape);
  }

  /** The portable hash of `assembly/dropout.ts` in operations of the graph. */
  private portable(site: number, shape: readonly Dim[], keep: number | undefined): string {
    const op = (type: string, ...inputs: string[]): string => this.op(type, inputs);
    const unsigned = (name: string): string => this.op('Cast', [name], { to: UINT32 });
    const number = (value: number): string =>
      this.once(`u32 ${value}`, () => unsigned(this.graph.constant('i32', Int32Array.of(value | 0), [1])));
    const words = this.once(MASK_WORDS, () => unsigned(this.graph.input(MASK_WORDS, 'i32', [dim('words')])));
    const word = (i: number): string => this.op('Gather', [words, this.ints([3 * site + i])], { axis: 0 });
    const count = sizeOf(shape);
    const counters = this.once(`u32 counters ${count}`, () => unsigned(this.range(count, 'i32')));
    const quadratic = (x: string): string => op('Mul', x, op('Add', op('Add', x, x), number(1)));
    const half = number(2 ** 16);
    const exchanged = (x: string): string => op('Add', op('Div', x, half), op('Mul', x, half));
    const first = quadratic(op('Add', counters, word(0)));
    const second = quadratic(op('Add', exchanged(first), word(1)));
    const hash = quadratic(op('Add', exchanged(second), word(0)));
    if (keep === undefined) {
      const upper = this.op('Cast', [op('Div', hash, number(512))], { to: ELEMENT_TYPE.f32 });
      const uniform = op('Mul', op('Add', upper, this.scalar('f32', 0.5)), this.scalar('f32', 2 ** -23));
      return this.reshape(uniform, [count], shape);
    }
    const scales = this.once(MASK_SCALES, () => this.graph.input(MASK_SCALES, 'f32', [dim('arrays')]));
    const scale = this.op('Gather', [scales, this.ints([site])], { axis: 0 });
    const kept = this.op('Cast', [op('LessOrEqual', hash, word(2))], { to: ELEMENT_TYPE.f32 });
    return this.reshape(op('Mul', kept, scale), [count], shape);
  }

  /** base[indices[i]] += updates[i] for rows i: [rows, …], [n], [n, …]. */
  scatterRows(
    base: string,
    indices: string,
    updates: string,
    rows: { indices: TensorType; updates: TensorType },
  ): string {
    const { shape, dtype } = rows.indices;
    if (this.device === 'cpu') {
      const wide = dtype === 'i64' ? indices : this.cast(indices, 'i64');
      return this.op('ScatterND', [base, this.op('Unsqueeze', [wide, this.ints([-1])]), updates], { reduction: 'add' });
    }
    // ScatterND wants 64-bit indices: element by element, with the row's index for each.
    const [count, rest] = [sizeOf(shape), rows.updates.shape.slice(shape.length)];
    const column = this.reshape(indices, shape, [count, ...rest.map(() => 1)]);
    const flat = this.reshape(updates, rows.updates.shape, [count, ...rest]);
    const each = this.op('Expand', [column, this.shape([count, ...rest])]);
    return this.op('ScatterElements', [base, each, flat], { axis: 0, reduction: 'add' });
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
   * Reshapes without run-time arithmetic if ONNX's `0` (keep) and `-1` (infer) suffice. A value that was itself reshaped is
   * replaced by its source: the intermediate step is dropped if nothing else needs it.
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

  /** A value shared by several operations: written on first use. */
  once(key: string, write: () => string): string {
    const name = this.shared.get(key) ?? write();
    this.shared.set(key, name);
    return name;
  }

  /** The steps of a time-major tensor [steps, batch, width] as matrices [batch, width]. */
  steps(name: string, steps: number): string[] {
    const known = this.splits.get(name);
    if (known !== undefined) return known;
    const parts = this.slices(name, steps).map((part) => this.op('Squeeze', [part, this.ints([0])]));
    this.splits.set(name, parts);
    return parts;
  }

  /** The slices [1, …] of a tensor along its first axis. */
  slices(name: string, count: number): string[] {
    return this.split(name, 0, new Array<number>(count).fill(1));
  }

  /** Consecutive parts of an axis, of these lengths. */
  split(name: string, axis: number, lengths: readonly number[]): string[] {
    if (this.device === 'cpu') {
      const equal = lengths.every((length) => length === lengths[0]);
      return equal
        ? this.graph.multi('Split', [name], lengths.length, { axis, num_outputs: lengths.length })
        : this.graph.multi('Split', [name, this.ints(lengths)], lengths.length, { axis });
    }
    // A device kernel can write only to a few tensors.
    let start = 0;
    return lengths.map((length) => {
      const from = start;
      start += length;
      return this.op('Slice', [name, this.ints([from]), this.ints([start]), this.ints([axis])]);
    });
  }

  /** The inverse of `steps`; remembers the parts for reuse. */
  stackSteps(parts: readonly string[]): string {
    // Joined along an axis of known size: the runtime plans memory slowly for sums of named sizes.
    const leading = parts.map((part) => this.op('Unsqueeze', [part, this.ints([0])]));
    const name = this.op('Concat', leading, { axis: 0 });
    this.splits.set(name, [...parts]);
    return name;
  }

  /** Matrix product of the last two axes, with free transposition if element type and device have the kernel. */
  matmul(
    a: string,
    b: string,
    dtype: DType,
    { transA = false, transB = false, alpha = 1 }: { transA?: boolean; transB?: boolean; alpha?: number } = {},
    ranks: readonly [number, number] = [2, 2],
  ): string {
    if (!transA && !transB && alpha === 1) return this.op('MatMul', [a, b]);
    if (dtype === 'f32' && this.device === 'cpu') {
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
