import { bareName, type TensorType, type TypedArray, type Value } from '../tensor/index.js';
import type { Feeds } from './inference.js';

/** The axis of a tensor that counts the samples of a batch, or undefined if it has none. */
export function batchAxis(type: TensorType, batch: string): number | undefined {
  const axis = type.shape.findIndex((size) => bareName(size) === batch);
  return axis < 0 ? undefined : axis;
}

/** Samples of a batch; undefined if none of its inputs counts them. */
export function samplesOf(
  feeds: Feeds,
  types: Readonly<Record<string, TensorType>>,
  batch: string,
): number | undefined {
  for (const [name, type] of Object.entries(types)) {
    const axis = batchAxis(type, batch);
    if (axis !== undefined && feeds[name] !== undefined) return feeds[name].shape[axis];
  }
  return undefined;
}

/** Where the samples of each of `count` shards begin and end: as equal as possible, in order, none of them empty. */
export function shardBounds(samples: number, count: number): [start: number, end: number][] {
  const shards = Math.min(count, samples);
  const bound = (rank: number): number => Math.floor((samples * rank) / shards);
  return Array.from({ length: shards }, (_, rank) => [bound(rank), bound(rank + 1)]);
}

/** The samples [start, end) of every input that has a batch axis; other inputs whole. */
export function shard(
  feeds: Feeds,
  types: Readonly<Record<string, TensorType>>,
  batch: string,
  [start, end]: readonly [number, number],
): Record<string, Value> {
  return Object.fromEntries(
    Object.entries(types).map(([name, type]) => {
      const value = feeds[name];
      const axis = batchAxis(type, batch);
      return [name, axis === undefined || value === undefined ? value : sliceAxis(value, axis, start, end)];
    }),
  );
}

/** Joins the outputs of shards: along the batch axis where there is one, else by adding them in order. */
export function joinOutputs(parts: readonly Value[], type: TensorType, batch: string): Value {
  const axis = batchAxis(type, batch);
  return axis === undefined ? sumValues(parts) : concatAxis(parts, axis);
}

function sliceAxis({ data, shape }: Value, axis: number, start: number, end: number): Value {
  const inner = shape.slice(axis + 1).reduce((a, b) => a * b, 1);
  const outer = shape.slice(0, axis).reduce((a, b) => a * b, 1);
  const taken = [...shape.slice(0, axis), end - start, ...shape.slice(axis + 1)];
  if (outer === 1) return { data: data.subarray(start * inner, end * inner) as TypedArray, shape: taken };
  const length = (end - start) * inner;
  const part = new (data.constructor as new (size: number) => TypedArray)(outer * length);
  for (let row = 0; row < outer; row++) {
    const from = (row * shape[axis] + start) * inner;
    part.set(data.subarray(from, from + length) as never, row * length);
  }
  return { data: part, shape: taken };
}

function concatAxis(parts: readonly Value[], axis: number): Value {
  const { data, shape } = parts[0];
  if (parts.length === 1) return parts[0];
  const total = parts.reduce((sum, part) => sum + part.shape[axis], 0);
  const inner = shape.slice(axis + 1).reduce((a, b) => a * b, 1);
  const outer = shape.slice(0, axis).reduce((a, b) => a * b, 1);
  const joined = new (data.constructor as new (size: number) => TypedArray)(outer * total * inner);
  let offset = 0;
  for (const part of parts) {
    const length = part.shape[axis] * inner;
    for (let row = 0; row < outer; row++) {
      joined.set(part.data.subarray(row * length, (row + 1) * length) as never, row * total * inner + offset);
    }
    offset += length;
  }
  return { data: joined, shape: [...shape.slice(0, axis), total, ...shape.slice(axis + 1)] };
}

function sumValues(parts: readonly Value[]): Value {
  const [first, ...rest] = parts;
  if (rest.length === 0) return first;
  const data = first.data.slice() as Float32Array;
  for (const part of rest) for (let i = 0; i < data.length; i++) data[i] += part.data[i] as number;
  return { data, shape: first.shape };
}
