import { InputError } from '../errors.js';
import { add, div, mul, sqrt, sub, type Tensor } from '../tensor/index.js';
import type { Arena } from './arena.js';

/** Updates all parameters of an arena from their gradients, in one pass over the memory. */
export interface Optimizer {
  readonly name: string;
  /** Number of state arrays in the arena, which must have been created with as many. */
  readonly slots: number;
  /** One update. The gradients are unchanged. */
  step(arena: Arena, learningRate: number): void;
  /** The same rule as a program, for devices that keep the parameters. */
  readonly traced: TracedRule;
  /** What `traced` needs for the next update; it has been made once `advance` is called. */
  rates(learningRate: number): number[];
  /** Counts an update that was made elsewhere. */
  advance(): void;
  /** What is not in the arena. */
  state(): OptimizerState;
  /** Restores what `state` returned. */
  load(state: OptimizerState): void;
}

/** An update of an array of parameters, as operations. */
export interface TracedRule {
  readonly slots: number;
  /** How many numbers change from update to update. */
  readonly rates: number;
  /** @param rates each [1] */
  update(
    value: Tensor,
    gradient: Tensor,
    slots: readonly Tensor[],
    rates: readonly Tensor[],
  ): { readonly value: Tensor; readonly slots: readonly Tensor[] };
}

/** Plain JSON. */
export interface OptimizerState {
  readonly name: string;
  /** Updates made. */
  readonly step: number;
}

/** Stochastic gradient descent, with or without momentum. */
export interface SgdConfig {
  readonly name: 'sgd';
  /** Default 0: no buffer. */
  readonly momentum?: number;
  /** λ, added to the gradient as λθ. Default 0. */
  readonly weightDecay?: number;
}

interface AdamOptions {
  /** Decay of the running means of the gradient and of its square. Default [0.9, 0.999]. */
  readonly betas?: readonly [number, number];
  /** ε in the denominator. Default 1e-8. */
  readonly eps?: number;
}

/** Adam (Kingma & Ba 2015), with weight decay in the gradient. */
export interface AdamConfig extends AdamOptions {
  readonly name: 'adam';
  /** λ, added to the gradient as λθ. Default 0. */
  readonly weightDecay?: number;
}

/** Adam with decoupled weight decay (Loshchilov & Hutter 2019). */
export interface AdamWConfig extends AdamOptions {
  readonly name: 'adamw';
  /** λ: parameters shrink by the factor 1 − lr·λ, separately from the gradient. Default 0.01. */
  readonly weightDecay?: number;
}

/** One of the optimisers with its settings. */
export type OptimizerConfig = SgdConfig | AdamConfig | AdamWConfig;

/** The optimiser of a configuration, with PyTorch's defaults. */
export function optimizer(config: OptimizerConfig): Optimizer {
  switch (config.name) {
    case 'sgd':
      return sgd(config);
    case 'adam':
      return adam(config);
    case 'adamw':
      return adamw(config);
    default:
      throw new InputError(
        `unknown optimiser ${JSON.stringify((config as { name: unknown }).name)}, expected sgd, adam or adamw`,
        { key: 'optimizer.name' },
      );
  }
}

/** Stochastic gradient descent as in `torch.optim.SGD`. Slot: the momentum buffer, if there is momentum. */
export function sgd({ momentum = 0, weightDecay = 0 }: Omit<SgdConfig, 'name'> = {}): Optimizer {
  inRange('sgd', 'momentum', momentum, 0);
  inRange('sgd', 'weightDecay', weightDecay, 0);
  const slots = momentum === 0 ? 0 : 1;
  return fromRule('sgd', {
    slots,
    // PyTorch fills the buffer with the first gradient.
    rates: (learningRate, t) => [learningRate, t === 1 ? 0 : momentum],
    kernel: ({ address, length, kernels }, [rate, keep]) =>
      kernels.sgd(
        address.values,
        address.grads,
        momentum === 0 ? 0 : address.slots[0],
        length,
        rate,
        weightDecay,
        keep,
      ),
    traced: {
      slots,
      rates: 2,
      update: (value, gradient, buffers, [rate, keep]) => {
        const whole = decayed(gradient, value, weightDecay);
        const now = buffers.map((buffer) => add(mul(buffer, keep), whole));
        return { value: sub(value, mul(now[0] ?? whole, rate)), slots: now };
      },
    },
  });
}

/** g + λθ */
function decayed(gradient: Tensor, value: Tensor, l2: number): Tensor {
  return l2 === 0 ? gradient : add(gradient, mul(value, l2));
}

/** Adam as in `torch.optim.Adam`. Slots: mean and mean square. */
export function adam(config: Omit<AdamConfig, 'name'> = {}): Optimizer {
  const { weightDecay = 0 } = config;
  inRange('adam', 'weightDecay', weightDecay, 0);
  return adamRule('adam', config, () => ({ l2: weightDecay, shrink: 1 }));
}

/** AdamW as in `torch.optim.AdamW`. Slots as for Adam. */
export function adamw(config: Omit<AdamWConfig, 'name'> = {}): Optimizer {
  const { weightDecay = 0.01 } = config;
  inRange('adamw', 'weightDecay', weightDecay, 0);
  return adamRule('adamw', config, (learningRate) => ({ l2: 0, shrink: 1 - learningRate * weightDecay }));
}

function adamRule(
  name: 'adam' | 'adamw',
  { betas: [beta1, beta2] = [0.9, 0.999], eps = 1e-8 }: AdamOptions,
  decay: (learningRate: number) => { l2: number; shrink: number },
): Optimizer {
  inRange(name, 'betas[0]', beta1, 0, 1);
  inRange(name, 'betas[1]', beta2, 0, 1);
  // In single precision too: a parameter without a gradient, and the padding of the arena, would become 0/0.
  if (!(Math.fround(eps) > 0 && eps < Infinity)) {
    throw new InputError(`${eps} is not possible, expected a positive number`, { key: `${name}.eps` });
  }
  const { l2 } = decay(0);
  return fromRule(name, {
    slots: 2,
    // Bias corrections, Kingma & Ba (2015), algorithm 1.
    rates: (learningRate, t) => [
      learningRate / (1 - beta1 ** t),
      1 / Math.sqrt(1 - beta2 ** t),
      decay(learningRate).shrink,
    ],
    kernel: ({ address, length, kernels }, [stepSize, root, shrink]) => {
      const { values, grads, slots } = address;
      const [mean, square] = slots;
      kernels.adam(values, grads, mean, square, length, stepSize, beta1, beta2, eps, root, l2, shrink);
    },
    traced: {
      slots: 2,
      rates: 3,
      update: (value, gradient, [mean, square], [stepSize, root, shrink]) => {
        const whole = decayed(gradient, value, l2);
        const m = add(mul(mean, beta1), mul(whole, 1 - beta1));
        const v = add(mul(square, beta2), mul(mul(whole, whole), 1 - beta2));
        const step = div(mul(m, stepSize), add(mul(sqrt(v), root), eps));
        return { value: sub(mul(value, shrink), step), slots: [m, v] };
      },
    },
  });
}

/** What an optimiser does, in both of its forms. */
interface Rule {
  readonly slots: number;
  /** What changes from update to update; t = 1, 2, … counts them. */
  rates(learningRate: number, t: number): number[];
  /** In one pass over the memory of an arena. */
  kernel(arena: Arena, rates: readonly number[]): void;
  readonly traced: TracedRule;
}

function fromRule(name: string, { slots, rates, kernel, traced }: Rule): Optimizer {
  let step = 0;
  const ratesOf = (learningRate: number): number[] => {
    if (!(learningRate >= 0 && learningRate < Infinity)) {
      throw new InputError(`a learning rate is a finite number ≥ 0, not ${learningRate}`, { key: 'learningRate' });
    }
    return rates(learningRate, step + 1);
  };
  return {
    name,
    slots,
    traced,
    rates: ratesOf,
    advance: () => {
      step++;
    },
    step(arena, learningRate) {
      if (arena.slots < slots) {
        throw new RangeError(`${name} needs an arena with ${slots} slots, this one has ${arena.slots}`);
      }
      kernel(arena, ratesOf(learningRate));
      step++;
    },
    state: () => ({ name, step }),
    load(state) {
      if (state.name !== name) {
        throw new InputError(`the saved state belongs to ${state.name}, not to ${name}`, { key: 'optimizer' });
      }
      if (!Number.isSafeInteger(state.step) || state.step < 0) {
        throw new InputError(`the saved number of updates is ${state.step}, expected a whole number ≥ 0`, {
          key: 'optimizer',
        });
      }
      step = state.step;
    },
  };
}

/** Rejects a hyper-parameter outside [low, high). */
function inRange(of: string, key: string, value: number, low: number, high = Infinity): void {
  if (value >= low && value < high) return;
  const expected = high === Infinity ? `a finite number ≥ ${low}` : `a number in [${low}, ${high})`;
  throw new InputError(`${value} is not possible, expected ${expected}`, { key: `${of}.${key}` });
}

/** ‖g‖₂ over all gradients, accumulated in f64. */
export function gradNorm(arena: Arena): number {
  return Math.sqrt(arena.kernels.squaredNorm(arena.address.grads, arena.length));
}

/**
 * Scales all gradients by min(1, maxNorm / (‖g‖₂ + 1e-6)), as `torch.nn.utils.clip_grad_norm_` does, and returns
 * the original ‖g‖₂. A norm that is not finite spoils all gradients, so check it before the update.
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
