import type { Arena } from '../../optim/index.js';
import { constant, type Program, programOf, record, type Tensor } from '../../tensor/index.js';

/**
 * The program with the parameters of an arena inside it as constants. The runtime can then arrange the weights for its
 * matrix kernels once, and the written model needs nothing besides.
 */
export function frozen({ inputs, outputs, nodes }: Program, arena: Arena): Program {
  const now = new Map<Tensor, Tensor>();
  const free = new Map<string, Tensor>();
  for (const [name, tensor] of inputs) {
    if (arena.has(name)) {
      now.set(tensor, constant(arena.value(name), arena.dtype, arena.shape(name)));
    } else {
      now.set(tensor, tensor);
      free.set(name, tensor);
    }
  }
  for (const node of nodes) {
    if (node.outputs.every((tensor) => now.has(tensor))) continue;
    const again = record(
      node.op,
      node.inputs.map((tensor) => now.get(tensor)!),
      node.attributes,
    );
    node.outputs.forEach((tensor, i) => {
      now.set(tensor, again[i]);
    });
  }
  return programOf(free, new Map([...outputs].map(([name, tensor]) => [name, now.get(tensor)!])));
}
