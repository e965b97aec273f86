import { deserialize, serialize } from 'node:v8';
import { type Launch, type Mpi, openMpi } from './mpi.js';

/**
 * The processes of an MPI job, each of which runs the same program: rank 0, 1, …. All of them have to call the same
 * methods in the same order; a call returns when all have made theirs.
 */
export class Ranks {
  private constructor(private readonly mpi: Mpi) {}

  /** Joins the processes that `mpirun` has started. */
  static async open(job: Launch): Promise<Ranks> {
    return new Ranks(await openMpi(job));
  }

  /** Number of this process, from 0. */
  get rank(): number {
    return this.mpi.rank;
  }

  /** Number of processes. */
  get size(): number {
    return this.mpi.size;
  }

  /** What each of the processes has given, in the order of ranks: anything that can be cloned, of up to 2 GiB in all. */
  share<T>(value: T): T[] {
    const own = serialize(value);
    const sizes = new Float64Array(this.size);
    const eight = new Int32Array(this.size).fill(sizes.BYTES_PER_ELEMENT);
    this.mpi.allgatherv(Float64Array.of(own.length), sizes.BYTES_PER_ELEMENT, sizes, eight, startsOf(eight));
    const total = sizes.reduce((sum, size) => sum + size, 0);
    if (total > MAX_COUNT) throw new RangeError(`${total} bytes to share are more than MPI can count`);
    const counts = Int32Array.from(sizes);
    const starts = startsOf(counts);
    const received = new Uint8Array(total);
    this.mpi.allgatherv(own, own.length, received, counts, starts);
    return Array.from(counts, (count, i) => deserialize(received.subarray(starts[i], starts[i] + count)) as T);
  }

  /** What rank 0 has given. */
  fromFirst<T>(value: T): T {
    return this.share(this.rank === 0 ? value : undefined)[0] as T;
  }

  /**
   * Sends slice i of an array, from `bounds[i]` to `bounds[i + 1]`, to rank i. What the ranks have sent to this one, a
   * slice of the same length from each, is put side by side. The first bound is 0.
   */
  exchange<F extends Float32Array | Float64Array>(array: F, bounds: readonly number[], slices: F): void {
    const counts = bytesOf(array, bounds);
    const own = new Int32Array(this.size).fill(counts[this.rank]);
    this.mpi.alltoallv(array, counts, startsOf(counts), slices, own, startsOf(own));
  }

  /** Puts an array together, in all ranks: from `bounds[i]` to `bounds[i + 1]` what `slice` of rank i begins with. */
  assemble<F extends Float32Array | Float64Array>(slice: F, bounds: readonly number[], array: F): void {
    const counts = bytesOf(array, bounds);
    this.mpi.allgatherv(slice, counts[this.rank], array, counts, startsOf(counts));
  }

  /** Leaves the job in good order. */
  close(): void {
    this.mpi.finalize();
  }

  /** Ends all processes at once, this one too: for a failure that the others know nothing of. */
  abort(code: number): void {
    this.mpi.abort(code);
  }
}

/** MPI counts with C's int. */
const MAX_COUNT = 2 ** 31 - 1;

function bytesOf({ BYTES_PER_ELEMENT }: Float32Array | Float64Array, bounds: readonly number[]): Int32Array {
  return Int32Array.from(bounds.slice(1), (end, i) => (end - bounds[i]) * BYTES_PER_ELEMENT);
}

function startsOf(counts: Int32Array): Int32Array {
  let end = 0;
  return counts.map((count) => {
    end += count;
    return end - count;
  });
}
