export { type DeviceChoice, DeviceError, type DeviceName } from '../devices.js';
export type { MaskHash } from '../kernels.js';
export {
  type Bindings,
  bareName,
  type Dim,
  type DimLike,
  dim,
  evaluateDim,
  formatShape,
  multiplyDims,
  SymbolicDim,
  sizeOf,
} from './dim.js';
export { grad } from './grad.js';
export { type Executable, type LowerOptions, lower } from './lowering.js';
export * from './ops/activations.js';
export * from './ops/attention.js';
export { inEightBits } from './ops/eight-bit.js';
export {
  abs,
  add,
  and,
  cast,
  clip,
  cos,
  div,
  equal,
  exp,
  greater,
  greaterEqual,
  less,
  lessEqual,
  log,
  maximum,
  minimum,
  mul,
  neg,
  not,
  type Operand,
  or,
  pow,
  sin,
  sqrt,
  square,
  stopGradient,
  sub,
  where,
} from './ops/elementwise.js';
export { dimension, dropout, dropoutMask, fill, normalNoise, onesLike, range, zerosLike } from './ops/fill.js';
export * from './ops/gather.js';
export { gru, type RecurrentWeights } from './ops/gru.js';
export { type CrossEntropyOptions, crossEntropy, linearCrossEntropy, meanSquaredError } from './ops/loss.js';
export { lstm } from './ops/lstm.js';
export * from './ops/matmul.js';
export { forwardAlgorithm, monotonicAlignment } from './ops/monotonic.js';
export * from './ops/norm.js';
export * from './ops/reduce.js';
export * from './ops/shape.js';
export { type Placement, placement } from './placement.js';
export {
  type DeviceFeeds,
  DeviceValue,
  firstNonFinite,
  NO_DROPOUT,
  type NonFinite,
  type Run,
  Session,
  type SessionOptions,
} from './session.js';
export {
  type DType,
  dtypeOf,
  type Op,
  record,
  type Tensor,
  type TensorType,
  TraceError,
  type TypedArray,
  typedArray,
  type Value,
} from './tensor.js';
export {
  bool,
  constant,
  f32,
  f64,
  type Initializer,
  i32,
  i64,
  input,
  type Parameter,
  Parameters,
  type Program,
  programOf,
  type Replacements,
  rewrite,
  trace,
} from './trace.js';
