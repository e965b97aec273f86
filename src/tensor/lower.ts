import { bareName, namesIn } from './dim.js';
import { Lowering, type MaskInput } from './lowering.js';
import { type Tensor, type TensorType, TraceError } from './tensor.js';
import type { Program } from './trace.js';

/** A program written as an ONNX model, with what a runner must know to feed it. Plain data: it can be sent to a worker. */
export interface Executable {
  readonly onnx: Uint8Array;
  /** The inputs that the program really uses. */
  readonly inputs: Readonly<Record<string, TensorType>>;
  readonly outputs: Readonly<Record<string, TensorType>>;
  /** Dropout masks and other random arrays, to be filled anew for each run. */
  readonly masks: readonly MaskInput[];
}

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
