import type { Random } from '../random.js';
import type { DimLike } from './dim.js';
import {
  type DType,
  identityOf,
  type Node,
  type Op,
  record,
  sameShape,
  shapeOf,
  type Tensor,
  type TensorType,
  TraceError,
  type TypedArray,
  typedArray,
} from './tensor.js';

/** A recorded function: named inputs, named outputs, and the nodes that lie between them in execution order. */
export interface Program {
  readonly inputs: ReadonlyMap<string, Tensor>;
  readonly outputs: ReadonlyMap<string, Tensor>;
  readonly nodes: readonly Node[];
}

/**
 * Records a function over symbolic tensors. What the outputs do not reach is left out, and equal sub-expressions are
 * computed once.
 *
 * ```ts
 * const program = trace({ x: f32('B', 3), w: f32(3, 2) }, ({ x, w }) => {
 *   const loss = mean(square(matmul(x, w)));
 *   return { loss, gradient: grad(loss, [w])[0] };
 * });
 * ```
 */
export function trace<I extends Record<string, TensorType>>(
  inputTypes: I,
  fn: (inputs: { [K in keyof I]: Tensor }) => Readonly<Record<string, Tensor>>,
): Program {
  const inputs = new Map(Object.entries(inputTypes).map(([name, type]) => [name, input(name, type)]));
  const outputs = fn(Object.fromEntries(inputs) as { [K in keyof I]: Tensor });
  return programOf(inputs, new Map(Object.entries(outputs)));
}

/** A type of 32-bit floats with this shape. */
export const f32 = (...shape: DimLike[]): TensorType => ({ dtype: 'f32', shape: shapeOf(shape) });
/** A type of 64-bit floats with this shape. */
export const f64 = (...shape: DimLike[]): TensorType => ({ dtype: 'f64', shape: shapeOf(shape) });
/** A type of 32-bit integers with this shape. */
export const i32 = (...shape: DimLike[]): TensorType => ({ dtype: 'i32', shape: shapeOf(shape) });
/** A type of 64-bit integers with this shape. */
export const i64 = (...shape: DimLike[]): TensorType => ({ dtype: 'i64', shape: shapeOf(shape) });
/** A type of booleans with this shape. */
export const bool = (...shape: DimLike[]): TensorType => ({ dtype: 'bool', shape: shapeOf(shape) });

/** A symbolic tensor whose values the caller gives at each run. */
export function input(name: string, type: TensorType): Tensor {
  return record(inputOp, [], { name, shape: type.shape, dtype: type.dtype })[0];
}

/** A tensor with fixed values: a number is a scalar, an array a vector unless a shape is given. */
export function constant(values: number | ArrayLike<number>, dtype: DType = 'f32', shape?: readonly number[]): Tensor {
  const data = typedArray(dtype, typeof values === 'number' ? [values] : values);
  const dims = shape ?? (typeof values === 'number' ? [] : [data.length]);
  return record(constantOp, [], { data, dtype, shape: dims })[0];
}

/** Drops what the outputs do not reach and merges equal nodes. */
export function programOf(inputs: ReadonlyMap<string, Tensor>, outputs: ReadonlyMap<string, Tensor>): Program {
  const known = new Map<string, Node>();
  const replacement = new Map<Node, Node>();
  const nodes: Node[] = [];
  const now = (tensor: Tensor): Tensor => replacement.get(tensor.node)!.outputs[tensor.index];

  for (const node of reachable([...outputs.values()])) {
    const nodeInputs = node.inputs.map(now);
    const key = shareKey(node, nodeInputs);
    const twin = key === undefined ? undefined : known.get(key);
    if (twin !== undefined) {
      replacement.set(node, twin);
      continue;
    }
    const unchanged = nodeInputs.every((tensor, i) => tensor === node.inputs[i]);
    const kept = unchanged ? node : withInputs(node, nodeInputs);
    replacement.set(node, kept);
    if (key !== undefined) known.set(key, kept);
    nodes.push(kept);
  }
  return { inputs, outputs: new Map([...outputs].map(([name, tensor]) => [name, now(tensor)])), nodes };
}

/** Nodes that the tensors depend on, inputs before users. Iterative: unrolled recurrences are deep. */
export function reachable(tensors: readonly Tensor[]): Node[] {
  const order: Node[] = [];
  const state = new Map<Node, 'open' | 'done'>();
  const stack = tensors.map((tensor) => tensor.node).reverse();
  while (stack.length > 0) {
    const node = stack.at(-1)!;
    if (state.has(node)) {
      stack.pop();
      if (state.get(node) === 'open') order.push(node);
      state.set(node, 'done');
      continue;
    }
    state.set(node, 'open');
    for (const { node: source } of node.inputs) if (!state.has(source)) stack.push(source);
  }
  return order;
}

const inputOp: Op<{ name: string } & TensorType & Record<string, unknown>> = {
  name: 'input',
  infer: (_, { shape, dtype }) => [{ shape, dtype }],
  lower: () => {
    throw new Error('inputs are declared by the compiler');
  },
};

const constantOp: Op<{ data: TypedArray; dtype: DType; shape: readonly number[] } & Record<string, unknown>> = {
  name: 'constant',
  infer: (_, { shape, dtype }) => [{ shape, dtype }],
  lower: (to, _, { attributes }) => {
    const { data, dtype, shape } = attributes as { data: TypedArray; dtype: DType; shape: readonly number[] };
    return [to.type(dtype) === dtype ? to.graph.constant(dtype, data, shape) : to.constant(dtype, data, shape)];
  },
};

function withInputs(node: Node, inputs: readonly Tensor[]): Node {
  const outputs: Tensor[] = [];
  const copy: Node = { ...node, inputs, outputs };
  for (const { index, shape, dtype } of node.outputs) outputs.push({ node: copy, index, shape, dtype });
  return copy;
}

/** Nodes with equal keys compute equal values; undefined for nodes that must stay apart. */
function shareKey(node: Node, inputs: readonly Tensor[]): string | undefined {
  if (node.op.shareable === false) return undefined;
  const { data, ...rest } = node.attributes as { data?: TypedArray };
  if (data !== undefined && data.length > 64) return undefined;
  const attributes = JSON.stringify({ ...rest, data: data && identityOf(data) }, inFull);
  return `${node.op.name}(${inputs.map(({ node: { id }, index }) => `${id}.${index}`)})${attributes}`;
}

/** For JSON, which has no words for them and writes null or 0: the numbers that are not finite, and -0. */
function inFull(_key: string, value: unknown): unknown {
  if (typeof value !== 'number' || (Number.isFinite(value) && !Object.is(value, -0))) return value;
  return { number: Object.is(value, -0) ? '-0' : `${value}` };
}

/** The replacement of an input or a node; undefined: unchanged. */
export interface Replacements {
  /** What takes the place of an input; undefined: it stays. */
  readonly input?: (name: string, tensor: Tensor) => Tensor | undefined;
  /** `inputs` are the node's inputs after the rewriting; the answer is one tensor for each output that is used. */
  readonly node?: (node: Node, inputs: readonly Tensor[]) => readonly Tensor[] | undefined;
}

/** A program that differs from the given one in some inputs and nodes. Inputs that are replaced are no longer inputs. */
export function rewrite({ inputs, outputs, nodes }: Program, { input, node: replace }: Replacements): Program {
  const now = new Map<Tensor, Tensor>();
  const free = new Map<string, Tensor>();
  for (const [name, tensor] of inputs) {
    const replaced = input?.(name, tensor);
    now.set(tensor, replaced ?? tensor);
    if (replaced === undefined) free.set(name, tensor);
  }
  for (const node of nodes) {
    if (now.has(node.outputs[0])) continue;
    const given = node.inputs.map((tensor) => {
      const replaced = now.get(tensor);
      if (replaced === undefined) throw new RangeError(`${node.op.name} needs an output that has not been replaced`);
      return replaced;
    });
    const again = replace?.(node, given) ?? record(node.op, given, node.attributes);
    again.forEach((tensor, i) => {
      now.set(node.outputs[i], tensor);
    });
  }
  return programOf(free, new Map([...outputs].map(([name, tensor]) => [name, now.get(tensor)!])));
}

/** Fills a new parameter with its first values. */
export type Initializer = (values: Float32Array | Float64Array, shape: readonly number[], random: Random) => void;

/** A parameter that a model has declared. */
export interface Parameter {
  readonly name: string;
  readonly shape: readonly number[];
  readonly initialize: Initializer;
  readonly tensor: Tensor;
}

/** Low-rank adapters of linear layers (Hu et al. 2022): W + α/r·B·A. */
export interface Adapters {
  /** r, rows of A and columns of B. */
  readonly rank: number;
  readonly alpha: number;
  /** Names of the layers that have one, such as `q_proj`. */
  readonly layers: readonly string[];
}

/**
 * The named parameters of a model, declared where they are used while the model is traced:
 * `p.get('weight', [out, in], xavierUniform())`. `p.under('encoder')` prefixes names with `encoder.`; asking twice for
 * a name gives the same tensor, which is how layers share one.
 */
export class Parameters {
  private constructor(
    private readonly prefix: string,
    readonly dtype: 'f32' | 'f64',
    private readonly declared: Map<string, Parameter>,
    private readonly adapters?: Adapters,
  ) {}

  /** An empty set without a prefix. */
  static root(dtype: 'f32' | 'f64' = 'f32'): Parameters {
    return new Parameters('', dtype, new Map());
  }

  /** The parameter of this name, declared at its first use. */
  get(name: string, shape: readonly number[], initialize: Initializer): Tensor {
    const full = this.prefix + name;
    const known = this.declared.get(full);
    if (known === undefined) {
      const tensor = input(full, { shape, dtype: this.dtype });
      this.declared.set(full, { name: full, shape, initialize, tensor });
      return tensor;
    }
    if (!sameShape(known.shape, shape)) {
      const found = `[${known.shape.join(', ')}] and [${shape.join(', ')}]`;
      throw new TraceError('parameter', `${full} is used with the shapes ${found}`, known.tensor.node.site);
    }
    return known.tensor;
  }

  /** The same set with a longer prefix. */
  under(name: string | number): Parameters {
    return new Parameters(`${this.prefix}${name}.`, this.dtype, this.declared, this.adapters);
  }

  /** The same parameters, with adapters for some of the linear layers. */
  adapted(adapters: Adapters): Parameters {
    return new Parameters(this.prefix, this.dtype, this.declared, adapters);
  }

  /** The adapters, if the layer whose parameters these are has one. */
  get adapter(): Adapters | undefined {
    const layer = this.prefix.split('.').at(-2) ?? '';
    return this.adapters?.layers.includes(layer) ? this.adapters : undefined;
  }

  /** Everything declared so far, in the order of first use. */
  list(): Parameter[] {
    return [...this.declared.values()];
  }
}
