import { layerNorm as normalize, type Parameters, type Tensor } from '../tensor/index.js';
import { ones, zeros } from './initializers.js';
import { lastSize } from './linear.js';

/** Layer normalisation over the last axis, parameters `weight` and `bias`. */
export function layerNorm(p: Parameters, x: Tensor, eps = 1e-5): Tensor {
  const size = lastSize(x);
  return normalize(x, p.get('weight', [size], ones), p.get('bias', [size], zeros), eps);
}
