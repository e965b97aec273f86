import { InputError } from '../errors.js';
import type { Arena } from './arena.js';

/** ‖g‖₂ over all gradients, accumulated in f64. */
export function gradNorm(arena: Arena): number {
  return Math.sqrt(arena.kernels.squaredNorm(arena.address.grads, arena.length));
}

/**
 * Scales all gradients by min(1, maxNorm / (‖g‖₂ + 1e-6)), as `torch.nn.utils.clip_grad_norm_` does, and returns
 * ‖g‖₂ from before. A norm that is not finite spoils all gradients, so check it before the update.
 */
export function clipByNorm(arena: Arena, maxNorm: number): number {
  if (!(maxNorm > 0)) throw new InputError(`a largest norm is a positive number, not ${maxNorm}`, { key: 'clip.norm' });
  const norm = gradNorm(arena);
  const factor = maxNorm / (norm + 1e-6);
  if (!(factor >= 1)) arena.kernels.scale(arena.address.grads, arena.length, factor);
  return norm;
}

/** Limits every element of the gradients to [−limit, limit], as `torch.nn.utils.clip_grad_value_` does. */
export function clipByValue(arena: Arena, limit: number): void {
  if (!(limit > 0)) throw new InputError(`a largest value is a positive number, not ${limit}`, { key: 'clip.value' });
  arena.kernels.clamp(arena.address.grads, arena.length, limit);
}
