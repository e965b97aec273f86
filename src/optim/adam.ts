import type { Optimizer } from './optimizer.js';
import { inRange, optimizerFromRule, positiveEps } from './update-rule.js';

interface AdamOptions {
  /** Decay of the running means of the gradient and of its square. Default [0.9, 0.999]. */
  readonly betas?: readonly [number, number];
  /** ε in the denominator. Default 1e-8. */
  readonly eps?: number;
  /** Divide by the largest mean square so far (Reddi et al., 2018). Default false. */
  readonly amsgrad?: boolean;
}

export interface AdamConfig extends AdamOptions {
  readonly name: 'adam';
  /** λ, added to the gradient as λθ. Default 0. */
  readonly weightDecay?: number;
}

export interface AdamWConfig extends AdamOptions {
  readonly name: 'adamw';
  /** λ: parameters shrink by the factor 1 − lr·λ, apart from the gradient. Default 0.01. */
  readonly weightDecay?: number;
}

/** Adam as in `torch.optim.Adam`. Slots: mean, mean square and, with AMSGrad, largest mean square. */
export function adam(config: Omit<AdamConfig, 'name'> = {}): Optimizer {
  const { weightDecay = 0 } = config;
  inRange('adam', 'weightDecay', weightDecay, 0);
  return build('adam', config, () => ({ l2: weightDecay, shrink: 1 }));
}

/** AdamW as in `torch.optim.AdamW`. Slots as for Adam. */
export function adamw(config: Omit<AdamWConfig, 'name'> = {}): Optimizer {
  const { weightDecay = 0.01 } = config;
  inRange('adamw', 'weightDecay', weightDecay, 0);
  return build('adamw', config, (learningRate) => ({ l2: 0, shrink: 1 - learningRate * weightDecay }));
}

function build(
  name: 'adam' | 'adamw',
  { betas: [beta1, beta2] = [0.9, 0.999], eps = 1e-8, amsgrad = false }: AdamOptions,
  decay: (learningRate: number) => { l2: number; shrink: number },
): Optimizer {
  inRange(name, 'betas[0]', beta1, 0, 1);
  inRange(name, 'betas[1]', beta2, 0, 1);
  positiveEps(name, eps);
  return optimizerFromRule(name, amsgrad ? 3 : 2, (arena, learningRate, t) => {
    const { values, grads, slots } = arena.address;
    const { l2, shrink } = decay(learningRate);
    // Bias corrections, Kingma & Ba (2015), algorithm 1.
    const stepSize = learningRate / (1 - beta1 ** t);
    const rootCorrection = 1 / Math.sqrt(1 - beta2 ** t);
    const largest = amsgrad ? slots[2] : 0;
    arena.kernels.adam(
      values,
      grads,
      slots[0],
      slots[1],
      largest,
      arena.length,
      stepSize,
      beta1,
      beta2,
      eps,
      rootCorrection,
      l2,
      shrink,
    );
  });
}
