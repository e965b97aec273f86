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
export { type DType, dtypeOf, type TypedArray, typedArray, type Value } from './dtype.js';
export { grad } from './grad.js';
export { type Executable, lower } from './lowering.js';
export * from './ops/activations.js';
export { LOWEST, logSoftmax, softmax } from './ops/activations.js';
export * from './ops/attention.js';
export * from './ops/compare.js';
export { inEightBits } from './ops/eight-bit.js';
export {
  abs,
  add,
  clip,
  cos,
  div,
  exp,
  log,
  maximum,
  minimum,
  mul,
  neg,
  type Operand,
  pow,
  sin,
  sqrt,
  square,
  stopGradient,
  sub,
} from './ops/elementwise.js';
export { dimension, fill, onesLike, range, zerosLike } from './ops/fill.js';
export * from './ops/gather.js';
export { gru, type RecurrentWeights } from './ops/gru.js';
export { type CrossEntropyOptions, crossEntropy, linearCrossEntropy, meanSquaredError } from './ops/loss.js';
export { lstm } from './ops/lstm.js';
export { forwardAlgorithm } from './ops/markov.js';
export * from './ops/matmul.js';
export { monotonicAlignment } from './ops/monotonic.js';
export * from './ops/norm.js';
export * from './ops/random.js';
export * from './ops/reduce.js';
export * from './ops/shape.js';
export { type Initializer, type Parameter, Parameters } from './parameters.js';
export { firstNonFinite, NO_DROPOUT, type NonFinite, type Run, Session, type SessionOptions } from './session.js';
export { type Op, record, type Tensor, type TensorType, TraceError } from './tensor.js';
export {
  bool,
  constant,
  f32,
  f64,
  i32,
  i64,
  input,
  type Program,
  programOf,
  type Replacements,
  rewrite,
  trace,
} from './trace.js';
