/** The library. Each part is also its own entry: `tcts/tensor`, `tcts/schedule`, `tcts/translate`, … */

export { type TrainingRun, type TrainRunOptions, trainRun } from './cli/training-run.js';
export { InputError, type Where } from './errors.js';
export * as forecast from './forecast/index.js';
export * as metrics from './metrics/index.js';
export * as nn from './nn/index.js';
export * as optim from './optim/index.js';
export { type TrainConfig, trainConfigSchema } from './problems/index.js';
export { Random, type RandomState } from './random.js';
export { type Launch, launch, Ranks } from './ranks.js';
export * as report from './report/index.js';
export * as run from './run/index.js';
export * as schedule from './schedule/index.js';
export * as series from './series/index.js';
export * as serve from './serve/index.js';
export * as sweep from './sweep/index.js';
export * as tensor from './tensor/index.js';
export * as translate from './translate/index.js';
