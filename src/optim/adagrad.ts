import type { Optimizer } from './optimizer.js';
import { inRange, optimizerFromRule, positiveEps } from './update-rule.js';

export interface AdagradConfig {
  readonly name: 'adagrad';
  /** Update t has the learning rate lr / (1 + (t − 1)·lrDecay). Default 0. */
  readonly lrDecay?: number;
  /** ε in the denominator. Default 1e-10. */
  readonly eps?: number;
  /** λ, added to the gradient as λθ. Default 0. */
  readonly weightDecay?: number;
}

/** Adagrad as in `torch.optim.Adagrad`. Slot: sum of squares. */
export function adagrad(config: Omit<AdagradConfig, 'name'> = {}): Optimizer {
  const { lrDecay = 0, eps = 1e-10, weightDecay = 0 } = config;
  inRange('adagrad', 'lrDecay', lrDecay, 0);
  inRange('adagrad', 'weightDecay', weightDecay, 0);
  positiveEps('adagrad', eps);
  return optimizerFromRule('adagrad', 1, (arena, learningRate, t) => {
    const { values, grads, slots } = arena.address;
    const rate = learningRate / (1 + (t - 1) * lrDecay);
    arena.kernels.adagrad(values, grads, slots[0], arena.length, rate, eps, weightDecay);
  });
}
