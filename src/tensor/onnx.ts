import { ProtoWriter } from '../protobuf.js';
import type { Dim } from './dim.js';
import { type DType, identityOf, type TypedArray } from './tensor.js';

/** Versions that every written model declares. */
export const IR_VERSION = 10;
export const OPSET = 21;
export const MICROSOFT = 'com.microsoft';

export type OnnxAttribute =
  | number
  | string
  | readonly number[]
  | { readonly float: number }
  | { readonly body: OnnxGraph };

interface OnnxNode {
  readonly type: string;
  readonly domain: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, OnnxAttribute>>;
}

interface OnnxValue {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly Dim[];
}

/** A graph under construction, in terms of the ONNX specification (onnx.proto3). */
export class OnnxGraph {
  readonly inputs: OnnxValue[] = [];
  readonly outputs: OnnxValue[] = [];
  readonly nodes: OnnxNode[] = [];
  private readonly initializers: { name: string; dtype: DType; dims: readonly number[]; data: TypedArray }[] = [];
  private readonly constants = new Map<string, string>();
  private readonly produced = new Set<string>();
  private readonly annotations = new Map<string, OnnxValue>();
  private readonly renamed = new Map<string, string>();
  private counter = 0;

  /** Names in a graph that is the `body` of a node have their own prefix, so they cannot clash with those outside. */
  constructor(private readonly prefix = '') {}

  input(name: string, dtype: DType, shape: readonly Dim[]): string {
    this.inputs.push({ name, dtype, shape });
    return name;
  }

  /** Exposes a value under a name: by renaming if a node produces it, otherwise by a copy. */
  output(name: string, value: string, dtype: DType, shape: readonly Dim[]): void {
    if (this.produced.has(value) && !this.renamed.has(value)) this.renamed.set(value, name);
    else this.nodes.push({ type: 'Identity', domain: '', inputs: [value], outputs: [name], attributes: {} });
    this.outputs.push({ name, dtype, shape });
  }

  /** Declares the shape of a value: the runtime cannot plan memory for shapes it cannot infer. */
  annotate(name: string, dtype: DType, shape: readonly Dim[]): void {
    this.annotations.set(name, { name, dtype, shape });
  }

  fresh(stem: string): string {
    return `${this.prefix}${stem}_${this.counter++}`;
  }

  /** Adds a node with one output. Whole numbers become INT attributes; write `{ float: 1 }` for FLOAT. */
  op(
    type: string,
    inputs: readonly string[],
    attributes: Readonly<Record<string, OnnxAttribute>> = {},
    domain = '',
  ): string {
    return this.multi(type, inputs, 1, attributes, domain)[0];
  }

  multi(
    type: string,
    inputs: readonly string[],
    outputCount: number,
    attributes: Readonly<Record<string, OnnxAttribute>> = {},
    domain = '',
  ): string[] {
    const outputs = Array.from({ length: outputCount }, () => this.fresh(type));
    this.nodes.push({ type, domain, inputs, outputs, attributes });
    for (const name of outputs) this.produced.add(name);
    return outputs;
  }

  /** A constant tensor; equal small constants are shared. */
  constant(dtype: DType, data: TypedArray, dims: readonly number[]): string {
    const key = data.length <= 64 ? `${dtype}[${dims}]:${identityOf(data)}` : undefined;
    const known = key === undefined ? undefined : this.constants.get(key);
    if (known !== undefined) return known;
    const name = this.fresh('const');
    this.initializers.push({ name, dtype, dims, data });
    if (key !== undefined) this.constants.set(key, name);
    return name;
  }

  /** The model's bytes, without nodes, constants and inputs that no output depends on. */
  encode(): { bytes: Uint8Array; usedInputs: Set<string> } {
    const { values } = this.live();
    const usedInputs = new Set(this.inputs.map(({ name }) => name).filter((name) => values.has(name)));
    const bytes = new ProtoWriter()
      .varint(1, IR_VERSION)
      .string(2, 'tcts')
      .message(7, this.proto(usedInputs))
      .message(8, (w) => w.string(1, '').varint(2, OPSET))
      .message(8, (w) => w.string(1, MICROSOFT).varint(2, 1))
      .finish();
    return { bytes, usedInputs };
  }

  /** GraphProto, with the named ones of its inputs; by default all. */
  proto(inputs: ReadonlySet<string> = new Set(this.inputs.map(({ name }) => name))): ProtoWriter {
    const { nodes, values } = this.live();
    const final = (name: string): string => this.renamed.get(name) ?? name;
    const graph = new ProtoWriter();
    for (const node of lastFirst(nodes)) {
      graph.message(1, (w) => {
        for (const name of node.inputs) w.string(1, final(name));
        for (const name of node.outputs)
          w.string(2, values.has(name) || !OPTIONAL_OUTPUTS.has(node.type) ? final(name) : '');
        w.string(3, final(node.outputs[0])).string(4, node.type);
        for (const [name, value] of Object.entries(node.attributes)) w.message(5, attributeProto(name, value));
        if (node.domain !== '') w.string(7, node.domain);
      });
    }
    graph.string(2, 'tcts');
    for (const { name, dtype, dims, data } of this.initializers) {
      if (!values.has(name)) continue;
      graph.message(5, (w) => {
        for (const size of dims) w.varint(1, size);
        w.varint(2, ELEMENT_TYPE[dtype]).string(8, name);
        w.bytes(9, new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
      });
    }
    for (const value of this.inputs) if (inputs.has(value.name)) graph.message(11, valueProto(value));
    for (const value of this.outputs) graph.message(12, valueProto(value));
    for (const value of this.annotations.values()) {
      const known = inputs.has(value.name) || this.renamed.has(value.name) || !this.produced.has(value.name);
      if (!known && values.has(value.name)) graph.message(13, valueProto(value));
    }
    return graph;
  }

  /** Nodes that some output depends on, and every value read by them or returned. */
  private live(): { nodes: OnnxNode[]; values: Set<string> } {
    const values = new Set([...this.outputs.map(({ name }) => name), ...this.renamed.keys()]);
    const nodes: OnnxNode[] = [];
    for (const node of [...this.nodes].reverse()) {
      if (!node.outputs.some((name) => values.has(name))) continue;
      for (const name of node.inputs) values.add(name);
      nodes.push(node);
    }
    return { nodes: nodes.reverse(), values };
  }
}

/**
 * Nodes without readers go to the end, in reverse order: the runtime starts with the last node and computes
 * what it needs, then the previous one, and so on. So each gradient is computed in its place, not after all others.
 */
function lastFirst(nodes: readonly OnnxNode[]): OnnxNode[] {
  const read = new Set(nodes.flatMap(({ inputs }) => inputs));
  const isRead = ({ outputs }: OnnxNode): boolean => outputs.some((name) => read.has(name));
  return [...nodes.filter(isRead), ...nodes.filter((node) => !isRead(node)).reverse()];
}

/** Operations whose kernels skip unused outputs. Others crash. */
const OPTIONAL_OUTPUTS: ReadonlySet<string> = new Set(['GRU', 'LSTM', 'LayerNormalization']);

/** TensorProto.DataType */
export const ELEMENT_TYPE: Readonly<Record<DType, number>> = { f32: 1, i32: 6, i64: 7, bool: 9, f64: 11 };

function attributeProto(name: string, value: OnnxAttribute): ProtoWriter {
  const proto = new ProtoWriter().string(1, name);
  if (typeof value === 'string') return proto.string(4, value).varint(20, 3);
  if (typeof value === 'number') return proto.varint(3, value).varint(20, 2);
  if ('float' in value) return proto.float(2, value.float).varint(20, 1);
  if ('body' in value) return proto.message(6, value.body.proto()).varint(20, 5);
  for (const item of value) proto.varint(8, item);
  return proto.varint(20, 7);
}

function valueProto({ name, dtype, shape }: OnnxValue): ProtoWriter {
  const dims = new ProtoWriter();
  for (const size of shape) {
    dims.message(1, (w) => (typeof size === 'number' ? w.varint(1, size) : w.string(2, size.key)));
  }
  const tensor = new ProtoWriter().varint(1, ELEMENT_TYPE[dtype]).message(2, dims);
  return new ProtoWriter().string(1, name).message(2, (w) => w.message(1, tensor));
}
