import type { MaskKey } from '../kernels.js';
import { type Executable, Session, type TypedArray, type Value } from '../tensor/index.js';

/** Where a parameter lies in the arrays of values and gradients, in elements. */
export interface ParameterPlace {
  readonly name: string;
  readonly start: number;
  readonly size: number;
  readonly shape: readonly number[];
}

/** Everything one worker needs to compute gradients of shards; sent to it once. */
export interface ReplicaSetup {
  readonly executable: Executable;
  readonly places: readonly ParameterPlace[];
  readonly dtype: 'f32' | 'f64';
  /** Elements of the arrays, gaps included. */
  readonly length: number;
  /** Current parameters, written by the trainer before each step. */
  readonly sharedValues: SharedArrayBuffer;
  /** This worker's gradients, read by the trainer after each step. */
  readonly sharedGrads: SharedArrayBuffer;
}

export interface ShardTask {
  readonly feeds: Readonly<Record<string, Value>>;
  readonly dropoutKey?: MaskKey;
}

/** Name of the program's output that holds a parameter's gradient. */
export const gradientName = (parameter: string): string => `gradient:${parameter}`;

/**
 * A copy of the model in a worker thread. The runtime does not take shared memory, so parameters and gradients pass
 * through buffers of the worker's own.
 */
export class Replica {
  private readonly values: TypedArray;
  private readonly grads: TypedArray;
  private readonly parameters: Record<string, Value>;
  private readonly into: Record<string, TypedArray>;

  private constructor(
    private readonly setup: ReplicaSetup,
    private readonly session: Session,
  ) {
    const { dtype, length, places } = setup;
    const Elements = dtype === 'f32' ? Float32Array : Float64Array;
    this.values = new Elements(length);
    this.grads = new Elements(length);
    this.parameters = Object.fromEntries(
      places.map(({ name, start, size, shape }) => [name, { data: this.values.subarray(start, start + size), shape }]),
    ) as Record<string, Value>;
    this.into = Object.fromEntries(
      places.map(({ name, start, size }) => [gradientName(name), this.grads.subarray(start, start + size)]),
    ) as Record<string, TypedArray>;
  }

  static async create(setup: ReplicaSetup): Promise<Replica> {
    return new Replica(setup, await Session.create(setup.executable, { threads: 1 }));
  }

  /** Computes one shard: its gradients go to the shared array, its other outputs are returned. */
  async run({ feeds, dropoutKey }: ShardTask): Promise<Record<string, Value>> {
    const { dtype, sharedValues, sharedGrads } = this.setup;
    this.values.set(floatsOver(sharedValues, dtype) as never);
    const outputs = await this.session.run({ ...feeds, ...this.parameters }, { into: this.into, dropoutKey });
    floatsOver(sharedGrads, dtype).set(this.grads as never);
    return Object.fromEntries(Object.entries(outputs).filter(([name]) => !(name in this.into)));
  }
}

/** The whole buffer as numbers of the given type. */
export function floatsOver(buffer: SharedArrayBuffer, dtype: 'f32' | 'f64'): Float32Array | Float64Array {
  return dtype === 'f32' ? new Float32Array(buffer) : new Float64Array(buffer);
}
