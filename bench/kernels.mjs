/**
 * Both sides of the kernel cases: an optimiser's WebAssembly kernel, and the same update as a loop in plain
 * JavaScript over Float32Arrays, one pass, everything constant taken out of the loop.
 */

import { Arena, optimizer as makeOptimizer } from '../dist/optim/index.js';

const PARAMETERS = 7_500_000;
const RATE = 1e-3;
/** One update takes a few milliseconds, too few for a step of the bench. */
const UPDATES = 10;

/** @param {{ optimizer: 'adam' | 'sgd', loop: 'kernel' | 'plain' }} options */
export async function setup({ optimizer: name, loop }) {
  const update = loop === 'kernel' ? kernel(name) : plain[name]();
  const step = () => {
    for (let i = 0; i < UPDATES; i++) update();
  };
  return { step, close() {} };
}

const configs = { adam: { name: 'adam' }, sgd: { name: 'sgd', momentum: 0.9 } };

function kernel(name) {
  const optimizer = makeOptimizer(configs[name]);
  const arena = new Arena([{ name: 'weight', shape: [PARAMETERS] }], { slots: optimizer.slots });
  fill(arena.values, 1);
  fill(arena.grads, 2);
  return () => optimizer.step(arena, RATE);
}

/** PyTorch's defaults, as in `configs`. */
const plain = {
  adam() {
    const { theta, grad, slots } = arrays(2);
    const [m, v] = slots;
    const beta1 = 0.9;
    const beta2 = 0.999;
    const eps = 1e-8;
    let t = 0;
    return () => {
      t++;
      const stepSize = RATE / (1 - beta1 ** t);
      const rootCorrection = 1 / Math.sqrt(1 - beta2 ** t);
      for (let i = 0; i < theta.length; i++) {
        const g = grad[i];
        const mean = beta1 * m[i] + (1 - beta1) * g;
        const square = beta2 * v[i] + (1 - beta2) * g * g;
        m[i] = mean;
        v[i] = square;
        theta[i] -= (stepSize * mean) / (Math.sqrt(square) * rootCorrection + eps);
      }
    };
  },

  sgd() {
    const { theta, grad, slots } = arrays(1);
    const [buffer] = slots;
    const momentum = 0.9;
    return () => {
      for (let i = 0; i < theta.length; i++) {
        buffer[i] = momentum * buffer[i] + grad[i];
        theta[i] -= RATE * buffer[i];
      }
    };
  },
};

function arrays(slots) {
  const theta = new Float32Array(PARAMETERS);
  const grad = new Float32Array(PARAMETERS);
  fill(theta, 1);
  fill(grad, 2);
  return { theta, grad, slots: Array.from({ length: slots }, () => new Float32Array(PARAMETERS)) };
}

/** Numbers of ordinary size in (-1, 1), none of them denormal. */
function fill(array, seed) {
  for (let i = 0; i < array.length; i++) array[i] = Math.sin(seed + 0.7 * i);
}
