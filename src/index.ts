/** The library. Each layer is also an entry of its own: `tcts/tensor`, `tcts/nn`, `tcts/optim`, `tcts/schedule`, … */
export { InputError, type Where } from './errors.js';
export * as metrics from './metrics/index.js';
export { type Launch, launch } from './mpi.js';
export * as nn from './nn/index.js';
export * as optim from './optim/index.js';
export { Random, type RandomState } from './random.js';
export { Ranks } from './ranks.js';
export * as run from './run/index.js';
export * as schedule from './schedule/index.js';
export * as tensor from './tensor/index.js';
