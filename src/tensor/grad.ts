import { add } from './ops/elementwise.js';
import { onesLike, zerosLike } from './ops/fill.js';
import { isFloat, type Node, type Tensor, TraceError } from './tensor.js';
import { reachable } from './trace.js';

/**
 * Reverse-mode gradients of a scalar with respect to any tensors it was computed from. A tensor that
 * the scalar does not depend on gets zeros.
 */
export function grad(of: Tensor, withRespectTo: readonly Tensor[]): Tensor[] {
  if (of.shape.length !== 0 || !isFloat(of.dtype)) {
    throw new TraceError(
      'grad',
      `expected a floating-point scalar, got ${of.dtype}[${of.shape.join(', ')}]`,
      of.node.site,
    );
  }
  const nodes = reachable([of]);
  const needed = dependents(nodes, withRespectTo);
  const gradients = new Map<Tensor, Tensor>([[of, onesLike(of)]]);

  for (const node of nodes.reverse()) {
    if (!needed.has(node)) continue;
    const outputGradients = node.outputs.map((output) => gradients.get(output));
    if (outputGradients.every((gradient) => gradient === undefined)) continue;
    if (node.op.gradient === undefined) continue;
    const inputGradients = node.op.gradient(node, outputGradients);
    node.inputs.forEach((source, i) => {
      const gradient = inputGradients[i];
      if (gradient === undefined || !needed.has(source.node)) return;
      const sum = gradients.get(source);
      gradients.set(source, sum === undefined ? gradient : add(sum, gradient));
    });
  }
  return withRespectTo.map((tensor) => gradients.get(tensor) ?? zerosLike(tensor));
}

/** The nodes through which a change of the given tensors can reach the end of `nodes`. */
function dependents(nodes: readonly Node[], of: readonly Tensor[]): Set<Node> {
  const needed = new Set(of.map((tensor) => tensor.node));
  for (const node of nodes) {
    if (node.inputs.some((source) => needed.has(source.node))) needed.add(node);
  }
  return needed;
}
