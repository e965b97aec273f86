import { InputError } from '../errors.js';
import type { Arena } from './arena.js';
import type { Optimizer } from './optimizer.js';

/**
 * An optimiser from its update rule: `update(arena, learningRate, t)` makes update number t = 1, 2, …. What all of
 * them share, the count and the checks, is here.
 */
export function optimizerFromRule(
  name: string,
  slots: number,
  update: (arena: Arena, learningRate: number, t: number) => void,
): Optimizer {
  let step = 0;
  return {
    name,
    slots,
    step(arena, learningRate) {
      if (arena.slots < slots) {
        throw new RangeError(`${name} needs an arena with ${slots} slots, this one has ${arena.slots}`);
      }
      if (!(learningRate >= 0 && learningRate < Infinity)) {
        throw new InputError(`a learning rate is a finite number ≥ 0, not ${learningRate}`, { key: 'learningRate' });
      }
      step++;
      update(arena, learningRate, step);
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

/** Refuses a hyper-parameter outside [low, high). */
export function inRange(optimizer: string, key: string, value: number, low: number, high = Infinity): void {
  if (!(value >= low && value < high)) {
    const expected = high === Infinity ? `a finite number ≥ ${low}` : `a number in [${low}, ${high})`;
    throw new InputError(`${value} is not possible, expected ${expected}`, { key: `${optimizer}.${key}` });
  }
}

/**
 * ε must be positive in single precision too: a parameter without a gradient, and the padding of the arena, would
 * become 0/0.
 */
export function positiveEps(optimizer: string, eps: number): void {
  if (!(Math.fround(eps) > 0 && eps < Infinity)) {
    throw new InputError(`${eps} is not possible, expected a positive number`, { key: `${optimizer}.eps` });
  }
}
