// SIMD kernels over arrays that live in an imported memory; `src/kernels.ts` loads them.
//
// The contract of every kernel: an array is given by its address and its number of elements;
// it is processed in whole 16-byte vectors, so its last vector must belong to it (arrays are padded, and a zero in
// the padding stays a zero). Scalars arrive as f64 and are rounded to the type of the array once. Nothing here
// allocates, and no result depends on anything but the arguments.
//
// Loops test their condition at the end: V8 takes constants (splats, conversions) out of a loop only then.
export * from './adam';
export * from './arrays';
export * from './dropout';
export * from './medians';
export * from './sgd';
export * from './windows';
