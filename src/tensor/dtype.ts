/** Element types. `f32` is what models train in, `f64` is for checks, the integers and `bool` are for indices and masks. */
export type DType = 'f32' | 'f64' | 'i32' | 'i64' | 'bool';

export type TypedArray = Float32Array | Float64Array | Int32Array | BigInt64Array | Uint8Array;

export const isFloat = (dtype: DType): boolean => dtype === 'f32' || dtype === 'f64';

/** A tensor's values outside of a program: row-major data and its shape. Booleans are bytes 0 and 1. */
export interface Value {
  readonly data: TypedArray;
  readonly shape: readonly number[];
}

export function dtypeOf(data: TypedArray): DType {
  if (data instanceof Float32Array) return 'f32';
  if (data instanceof Float64Array) return 'f64';
  if (data instanceof Int32Array) return 'i32';
  if (data instanceof BigInt64Array) return 'i64';
  return 'bool';
}

export function typedArray(dtype: DType, values: ArrayLike<number>): TypedArray {
  switch (dtype) {
    case 'f32':
      return Float32Array.from(values);
    case 'f64':
      return Float64Array.from(values);
    case 'i32':
      return Int32Array.from(values);
    case 'i64':
      return BigInt64Array.from(Array.from(values, (value) => BigInt(value)));
    case 'bool':
      return Uint8Array.from(values);
  }
}

/** The values as text that tells apart all that compute differently: `join` alone writes -0 as 0. */
export function identityOf(data: TypedArray): string {
  return Array.from(data as ArrayLike<number | bigint>, (value) => (Object.is(value, -0) ? '-0' : `${value}`)).join();
}
