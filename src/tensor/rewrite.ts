import { type Node, record, type Tensor } from './tensor.js';
import { type Program, programOf } from './trace.js';

/** What takes the place of an input or of a node; undefined leaves it as it is. */
export interface Replacements {
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
