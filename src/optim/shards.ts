import { type FloatKernels, loadKernels, newMemory } from '../kernels.js';
import type { Ranks } from '../ranks.js';
import { TaskThread } from '../task-thread.js';
import {
  bareName,
  type Executable,
  type Run,
  Session,
  type TensorType,
  type TypedArray,
  type Value,
} from '../tensor/index.js';
import type { Arena, Floats, ParameterSpec } from './arena.js';
import { type Feeds, parameterFeeds } from './inference.js';

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

/** Joins the outputs of shards: along the batch axis if there is one, else by adding them in order. */
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

/**
 * Sums the gradients in the ranks' arenas. MPI's own sum leaves the order of the summands to the
 * library; here it is rank order, as with the workers of one process: each rank receives a slice of everyone's
 * gradients, adds them in order and sends the sum to all.
 */
export class GradientExchange {
  private readonly kernels: FloatKernels;
  /** Slices of the gradients of all ranks, side by side. */
  private readonly slices: Floats;
  /** Elements that all ranks together add up in one round. */
  private readonly round: number;

  constructor(
    private readonly ranks: Ranks,
    private readonly arena: Arena,
    /** Largest number of elements that a rank adds up in one round: bounds the memory. A multiple of 16. */
    maxSlice = 1 << 22,
  ) {
    const { dtype, length, grads } = arena;
    const slice = Math.min(maxSlice, LINE * Math.ceil(length / LINE / ranks.size));
    const memory = newMemory(ranks.size * slice * grads.BYTES_PER_ELEMENT);
    this.round = ranks.size * slice;
    this.kernels = loadKernels(memory)[dtype];
    this.slices = dtype === 'f32' ? new Float32Array(memory.buffer) : new Float64Array(memory.buffer);
  }

  /** g ← ((g₀ + g₁) + g₂) + … in every rank, over the first `count` ranks; those of the others are ignored. */
  sum(count: number): void {
    const { ranks, slices, kernels } = this;
    const { grads, length } = this.arena;
    for (let start = 0; start < length; start += this.round) {
      const part = grads.subarray(start, Math.min(length, start + this.round)) as Floats;
      const bounds = sliceBounds(part.length, ranks.size);
      const own = bounds[ranks.rank + 1] - bounds[ranks.rank];
      ranks.exchange(part, bounds, slices);
      if (own > 0) kernels.sum(0, 0, own * part.BYTES_PER_ELEMENT, count, own);
      ranks.assemble(slices, bounds, part);
    }
  }
}

/** Elements of one or two cache lines, depending on the type: slices are aligned for the kernels. */
const LINE = 16;

/** Slices of whole lines, as equal as possible. */
function sliceBounds(length: number, count: number): number[] {
  const lines = Math.ceil(length / LINE);
  return Array.from({ length: count + 1 }, (_, i) => Math.min(length, LINE * Math.floor((lines * i) / count)));
}

/** A shard of a batch to compute the gradients of. */
export interface ShardTask {
  readonly feeds: Readonly<Record<string, Value>>;
  readonly dropoutKey?: Run['dropoutKey'];
}

/** Name of the program's output that holds a parameter's gradient. */
export const gradientName = (parameter: string): string => `gradient:${parameter}`;

/** A training program with the parameters of an arena, into which it writes their gradients. */
export class Replica {
  /** Gradients of a shard before they are added: allocated when a step first has more than one shard. */
  private scratch: Floats | undefined;

  private constructor(
    readonly arena: Arena,
    private readonly session: Session,
  ) {}

  static async create(executable: Executable, arena: Arena, threads: number): Promise<Replica> {
    return new Replica(arena, await Session.create(executable, { threads }));
  }

  /**
   * Sets the arena's gradients to the sum of those of the shards, which belong to batches of one step, and returns the
   * other outputs of each.
   */
  async run(tasks: readonly ShardTask[]): Promise<Record<string, Value>[]> {
    const { arena } = this;
    const results: Record<string, Value>[] = [];
    for (const { feeds, dropoutKey } of tasks) {
      const grads = results.length === 0 ? arena.grads : this.ownScratch();
      const into: Record<string, TypedArray> = Object.fromEntries(
        arena.trained.map((name) => [gradientName(name), arena.view(grads, name)]),
      );
      const outputs = await this.session.run({ ...feeds, ...parameterFeeds(arena) }, { into, dropoutKey });
      if (grads !== arena.grads) arena.addToGrads(grads);
      results.push(Object.fromEntries(Object.entries(outputs).filter(([name]) => !(name in into))));
    }
    return results;
  }

  close(): Promise<void> {
    return this.session.close();
  }

  private ownScratch(): Floats {
    this.scratch ??= this.arena.newArray();
    return this.scratch;
  }
}

/** Everything one worker needs to compute gradients of shards; sent to it once. */
export interface ReplicaSetup {
  readonly executable: Executable;
  readonly parameters: readonly ParameterSpec[];
  readonly dtype: 'f32' | 'f64';
  /** Current parameters, written by the trainer before each step. */
  readonly sharedValues: SharedArrayBuffer;
  /** This worker's gradients, read by the trainer after each step. */
  readonly sharedGrads: SharedArrayBuffer;
}

/** A worker thread with a replica of the model, seen from the trainer. */
export class ReplicaWorker {
  private constructor(
    private readonly thread: TaskThread<readonly ShardTask[], Record<string, Value>[]>,
    /** Sum of the gradients of the shards computed last. */
    readonly grads: Float32Array | Float64Array,
  ) {}

  static async start({
    gradBytes,
    ...setup
  }: Omit<ReplicaSetup, 'sharedGrads'> & { readonly gradBytes: number }): Promise<ReplicaWorker> {
    const sharedGrads = new SharedArrayBuffer(gradBytes);
    const data: ReplicaSetup = { ...setup, sharedGrads };
    const thread = await TaskThread.start<readonly ShardTask[], Record<string, Value>[]>(
      'optim/worker.js',
      data,
      'training worker',
    );
    return new ReplicaWorker(thread, floatsOver(sharedGrads, setup.dtype));
  }

  /** Starts shards at once and resolves with the outputs of each; their gradients are then in `grads`. */
  run(tasks: readonly ShardTask[]): Promise<Record<string, Value>[]> {
    return this.thread.run(tasks);
  }

  stop(): Promise<void> {
    return this.thread.stop();
  }
}

/** The whole buffer as numbers of the given type. */
export function floatsOver(buffer: SharedArrayBuffer, dtype: 'f32' | 'f64'): Float32Array | Float64Array {
  return dtype === 'f32' ? new Float32Array(buffer) : new Float64Array(buffer);
}
