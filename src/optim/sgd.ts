import { InputError } from '../errors.js';
import type { Optimizer } from './optimizer.js';
import { inRange, optimizerFromRule } from './update-rule.js';

export interface SgdConfig {
  readonly name: 'sgd';
  /** Default 0: no buffer. */
  readonly momentum?: number;
  /** Default 0. */
  readonly dampening?: number;
  /** Nesterov's look-ahead; needs momentum and no dampening. Default false. */
  readonly nesterov?: boolean;
  /** λ, added to the gradient as λθ. Default 0. */
  readonly weightDecay?: number;
}

/** Stochastic gradient descent as in `torch.optim.SGD`. Slot: the momentum buffer, if there is momentum. */
export function sgd(config: Omit<SgdConfig, 'name'> = {}): Optimizer {
  const { momentum = 0, dampening = 0, nesterov = false, weightDecay = 0 } = config;
  inRange('sgd', 'momentum', momentum, 0);
  inRange('sgd', 'dampening', dampening, 0);
  inRange('sgd', 'weightDecay', weightDecay, 0);
  if (nesterov && (momentum === 0 || dampening !== 0)) {
    throw new InputError('it needs a momentum above 0 and a dampening of 0', { key: 'sgd.nesterov' });
  }
  return optimizerFromRule('sgd', momentum === 0 ? 0 : 1, (arena, learningRate, t) => {
    const { values, grads, slots } = arena.address;
    // PyTorch fills the buffer with the first gradient, undampened.
    const [keep, gain] = t === 1 ? [0, 1] : [momentum, 1 - dampening];
    const [ofGrad, ofBuffer] = nesterov ? [1, momentum] : [0, 1];
    const buffer = momentum === 0 ? 0 : slots[0];
    arena.kernels.sgd(values, grads, buffer, arena.length, learningRate, weightDecay, keep, gain, ofGrad, ofBuffer);
  });
}
