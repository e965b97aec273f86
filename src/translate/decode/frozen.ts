import type { Arena } from '../../optim/index.js';
import { constant, type Program, rewrite } from '../../tensor/index.js';

/**
 * The program with the parameters of an arena inside it as constants. The runtime can then arrange the weights for its
 * matrix kernels once, and the written model needs nothing besides.
 */
export function frozen(program: Program, arena: Arena): Program {
  return rewrite(program, {
    input: (name) => (arena.has(name) ? constant(arena.value(name), arena.dtype, arena.shape(name)) : undefined),
  });
}
