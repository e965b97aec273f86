export { type AdagradConfig, adagrad } from './adagrad.js';
export { type AdamConfig, type AdamWConfig, adam, adamw } from './adam.js';
export { Arena, type ArenaOptions, type Floats, type ParameterSpec } from './arena.js';
export { type LoadArenaOptions, loadArena, type SaveArenaOptions, saveArena } from './arena-file.js';
export { clipByNorm, clipByValue, gradNorm } from './clip.js';
export { Gradients, type GradientsConfig } from './gradients.js';
export {
  type Feeds,
  Inference,
  type InferenceConfig,
  type InputTypes,
  type Model,
  type Outputs,
  parameterFeeds,
  traceModel,
} from './inference.js';
export {
  type ConstantConfig,
  type CosineConfig,
  constant,
  cosine,
  type InverseSqrtConfig,
  inverseSqrt,
  type LearningRate,
  type LearningRateConfig,
  learningRate,
  type PlateauState,
  type ReduceOnPlateauConfig,
  type Warmup,
} from './learning-rate.js';
export { type Optimizer, type OptimizerConfig, type OptimizerState, optimizer } from './optimizer.js';
export { type RmspropConfig, rmsprop } from './rmsprop.js';
export {
  decode,
  encode,
  type Metadata,
  readSafetensors,
  type Safetensors,
  type StoredArray,
  type StoredDtype,
  type StoredTensor,
  writeSafetensors,
} from './safetensors.js';
export { type SgdConfig, sgd } from './sgd.js';
export { DivergedError, type StepResult, Training, type TrainingConfig, type TrainingState } from './training.js';
