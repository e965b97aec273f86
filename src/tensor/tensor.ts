import { type Dim, type DimLike, dim, formatShape, sameDim } from './dim.js';
import type { Lowering } from './lowering.js';

/** Element types. `f32` is what models train in, `f64` is for checks, the integers and `bool` are for indices and masks. */
export type DType = 'f32' | 'f64' | 'i32' | 'i64' | 'bool';

/** Elements of a tensor, in the array that fits their type. */
export type TypedArray = Float32Array | Float64Array | Int32Array | BigInt64Array | Uint8Array;

export const isFloat = (dtype: DType): boolean => dtype === 'f32' || dtype === 'f64';

/** A tensor's values outside of a program: row-major data and its shape. Booleans are bytes 0 and 1. */
export interface Value {
  readonly data: TypedArray;
  readonly shape: readonly number[];
}

/** The element type of an array. */
export function dtypeOf(data: TypedArray): DType {
  if (data instanceof Float32Array) return 'f32';
  if (data instanceof Float64Array) return 'f64';
  if (data instanceof Int32Array) return 'i32';
  if (data instanceof BigInt64Array) return 'i64';
  return 'bool';
}

/** Numbers as an array of an element type. */
export function typedArray(dtype: DType, values: ArrayLike<number>): TypedArray {
  switch (dtype) {
    case 'f32':
      return Float32Array.from(values);
    case 'f64':
      return Float64Array.from(values);
    case 'i32':
      return Int32Array.from(values);
    case 'i64':
      return BigInt64Array.from(Array.from(values, (value) => BigInt(value)));
    case 'bool':
      return Uint8Array.from(values);
  }
}

/** The values as text that tells apart all that compute differently: `join` alone writes -0 as 0. */
export function identityOf(data: TypedArray): string {
  return Array.from(data as ArrayLike<number | bigint>, (value) => (Object.is(value, -0) ? '-0' : `${value}`)).join();
}

/** Shape and element type of a tensor. */
export interface TensorType {
  readonly shape: readonly Dim[];
  readonly dtype: DType;
}

/** A symbolic tensor: one output of a recorded operation. Its values exist only while a program runs. */
export interface Tensor extends TensorType {
  readonly node: Node;
  /** Which of the node's outputs this is. */
  readonly index: number;
}

/** One recorded operation. The program of a model is the graph of nodes that its outputs reach. */
export interface Node {
  readonly id: number;
  readonly op: Op;
  readonly inputs: readonly Tensor[];
  readonly attributes: Attributes;
  readonly outputs: readonly Tensor[];
  /** `file:line:column` of the code outside the engine that asked for it. */
  readonly site: string;
}

/** Everything besides tensors that determines what an operation computes; part of its identity. */
export type Attributes = Readonly<Record<string, unknown>>;

/** An operation: shape rule, gradient and lowering side by side. */
export interface Op<A extends Attributes = Attributes> {
  readonly name: string;
  /** Types of the outputs; throws `Mismatch` when the inputs do not fit. */
  infer(inputs: readonly TensorType[], attributes: A): TensorType[];
  /** Writes the operation into the backend's graph and returns the names of its outputs. */
  lower(to: Lowering, inputs: readonly string[], node: Node): string[];
  /** Gradients of the inputs, given those of the outputs (undefined if nothing flows). Absent: no gradient. */
  gradient?(node: Node, outputGradients: readonly (Tensor | undefined)[]): (Tensor | undefined)[];
  /** True when two nodes with equal inputs and attributes may be merged. Default true. */
  readonly shareable?: boolean;
}

/** Thrown by a shape rule; `record` adds the operation's name and the user's line. */
export class Mismatch extends Error {}

/** A shape or dtype that does not fit, found while tracing. */
export class TraceError extends Error {
  override readonly name = 'TraceError';

  constructor(
    readonly op: string,
    sentence: string,
    readonly site: string,
  ) {
    super(`${op}: ${sentence} (at ${site})`);
  }
}

let nextId = 0;

/** Records one operation and returns its outputs. */
export function record<A extends Attributes>(op: Op<A>, inputs: readonly Tensor[], attributes: A): Tensor[] {
  const site = callSite();
  let types: TensorType[];
  try {
    types = op.infer(inputs, attributes);
  } catch (error) {
    if (error instanceof Mismatch) throw new TraceError(op.name, error.message, site);
    throw error;
  }
  const outputs: Tensor[] = [];
  const node: Node = { id: nextId++, op: op as unknown as Op, inputs, attributes, outputs, site };
  types.forEach((type, index) => {
    outputs.push({ node, index, shape: type.shape, dtype: type.dtype });
  });
  return outputs;
}

export function shapeOf(shape: readonly DimLike[]): Dim[] {
  return shape.map(dim);
}

export function sameShape(a: readonly Dim[], b: readonly Dim[]): boolean {
  return a.length === b.length && a.every((size, i) => sameDim(size, b[i]));
}

export function describeType(type: TensorType): string {
  return `${type.dtype}${formatShape(type.shape)}`;
}

/** The place of the first stack frame that is not in the engine or its layers. */
function callSite(): string {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 40;
  const { stack = '' } = new Error();
  Error.stackTraceLimit = limit;
  // Frames of built-in functions, such as that of `map`, have no place.
  const places = stack.split('\n').flatMap((frame) => PLACE.exec(frame.trim())?.[1] ?? []);
  const outside = places.find((place) => !ENGINE.some((folder) => place.startsWith(folder)));
  return outside ?? places.at(-1) ?? 'unknown';
}

const PLACE = /\(?(?:file:\/\/)?([^()\s]+:\d+:\d+)\)?$/;

/** This package's own `tensor/` and `nn/`, as built and, for stacks that are mapped to their sources, as written. */
const ENGINE = ['../', '../../src/'].flatMap((root) =>
  ['tensor/', 'nn/'].flatMap((folder) => {
    const path = new URL(root + folder, import.meta.url).href.replace(/^file:\/\//, '');
    return [path, decodeURI(path)];
  }),
);
