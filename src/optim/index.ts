export type { DeviceChoice } from '../devices.js';
export { Arena, type ArenaOptions, type Floats, type ParameterSpec } from './arena.js';
export {
  type Feeds,
  Gradients,
  type GradientsConfig,
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
  constantSchedule,
  cosineSchedule,
  type InverseSqrtConfig,
  inverseSqrtSchedule,
  type LearningRate,
  type LearningRateConfig,
  learningRate,
  type PlateauState,
  type ReduceOnPlateauConfig,
  type Warmup,
} from './learning-rate.js';
export {
  type AdamConfig,
  type AdamWConfig,
  adam,
  adamw,
  clipByNorm,
  clipByValue,
  gradNorm,
  type Optimizer,
  type OptimizerConfig,
  type OptimizerState,
  optimizer,
  type SgdConfig,
  sgd,
} from './optimizer.js';
export { residenceOf } from './residence.js';
export {
  decodeSafetensors,
  encodeSafetensors,
  type Metadata,
  readSafetensors,
  type Safetensors,
  type StoredArray,
  type StoredDtype,
  type StoredTensor,
  writeSafetensors,
} from './safetensors.js';
export { shardBounds } from './shards.js';
export { DivergedError, type StepResult, Training, type TrainingConfig, type TrainingState } from './training.js';
