import type { Optimizer } from './optimizer.js';
import { inRange, optimizerFromRule, positiveEps } from './update-rule.js';

export interface RmspropConfig {
  readonly name: 'rmsprop';
  /** Decay of the running mean of the squared gradient. Default 0.99. */
  readonly alpha?: number;
  /** ε in the denominator. Default 1e-8. */
  readonly eps?: number;
  /** λ, added to the gradient as λθ. Default 0. */
  readonly weightDecay?: number;
  /** Default 0: no buffer. */
  readonly momentum?: number;
  /** Divide by the standard deviation of the gradient instead of its root mean square. Default false. */
  readonly centered?: boolean;
}

/** RMSprop as in `torch.optim.RMSprop`. Slots: mean square; mean, if centred; buffer, if there is momentum. */
export function rmsprop(config: Omit<RmspropConfig, 'name'> = {}): Optimizer {
  const { alpha = 0.99, eps = 1e-8, weightDecay = 0, momentum = 0, centered = false } = config;
  inRange('rmsprop', 'alpha', alpha, 0, 1);
  inRange('rmsprop', 'weightDecay', weightDecay, 0);
  inRange('rmsprop', 'momentum', momentum, 0);
  positiveEps('rmsprop', eps);
  const meanSlot = centered ? 1 : undefined;
  const bufferSlot = momentum === 0 ? undefined : centered ? 2 : 1;
  return optimizerFromRule('rmsprop', 1 + Number(centered) + Number(momentum > 0), (arena, learningRate) => {
    const { values, grads, slots } = arena.address;
    const mean = meanSlot === undefined ? 0 : slots[meanSlot];
    const buffer = bufferSlot === undefined ? 0 : slots[bufferSlot];
    arena.kernels.rmsprop(
      values,
      grads,
      slots[0],
      mean,
      buffer,
      arena.length,
      learningRate,
      alpha,
      eps,
      weightDecay,
      momentum,
    );
  });
}
