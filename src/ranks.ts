import { deserialize, serialize } from 'node:v8';
import type { LibraryHandle } from 'koffi';
import { InputError } from './errors.js';

/**
 * The processes of an MPI job, all running the same program: rank 0, 1, …. All must call the same
 * methods in the same order; a call returns when all have made theirs.
 */
export class Ranks {
  private constructor(private readonly mpi: Mpi) {}

  /** Joins the processes started by `mpirun`. */
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

  /** The values from all processes in rank order: anything that can be cloned, up to 2 GiB in total. */
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

  /** The value from rank 0. */
  fromFirst<T>(value: T): T {
    return this.share(this.rank === 0 ? value : undefined)[0] as T;
  }

  /**
   * Sends slice i of an array, from `bounds[i]` to `bounds[i + 1]`, to rank i. The slices received from the ranks, all
   * of the same length, are concatenated. The first bound is 0.
   */
  exchange<F extends Float32Array | Float64Array>(array: F, bounds: readonly number[], slices: F): void {
    const counts = bytesOf(array, bounds);
    const own = new Int32Array(this.size).fill(counts[this.rank]);
    this.mpi.alltoallv(array, counts, startsOf(counts), slices, own, startsOf(own));
  }

  /** Assembles an array in all ranks: `bounds[i]` to `bounds[i + 1]` comes from the start of `slice` of rank i. */
  assemble<F extends Float32Array | Float64Array>(slice: F, bounds: readonly number[], array: F): void {
    const counts = bytesOf(array, bounds);
    this.mpi.allgatherv(slice, counts[this.rank], array, counts, startsOf(counts));
  }

  /** Leaves the job cleanly. */
  close(): void {
    this.mpi.finalize();
  }

  /** Ends all processes at once, including this one: for a failure the others do not know about. */
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

/**
 * The part of MPI in use. A call blocks until all processes have made theirs; a failure ends the whole job with a
 * message from the library, as usual with MPI.
 */
export interface Mpi {
  readonly rank: number;
  readonly size: number;
  /**
   * Sends the first `bytes` bytes of an array to all processes; what process i has sent, `counts[i]` bytes, is received
   * at `starts[i]`.
   */
  allgatherv(send: TypedBytes, bytes: number, receive: TypedBytes, counts: Int32Array, starts: Int32Array): void;
  /** Sends a piece to each process and receives one from each. Counts and starts are in bytes. */
  alltoallv(
    send: TypedBytes,
    sendCounts: Int32Array,
    sendStarts: Int32Array,
    receive: TypedBytes,
    receiveCounts: Int32Array,
    receiveStarts: Int32Array,
  ): void;
  /** Leaves the job cleanly, once all processes do. */
  finalize(): void;
  /** Ends all processes of the job at once. */
  abort(code: number): void;
}

type TypedBytes = Uint8Array | Float32Array | Float64Array;

/** Which process of how many this is, from the launcher's environment variables. */
export interface Launch {
  readonly rank: number;
  readonly size: number;
}

/** The job this process belongs to, if an MPI launcher started it; undefined if not, or if it is the only process. */
export function launch(environment: NodeJS.ProcessEnv = process.env): Launch | undefined {
  for (const [size, rank] of LAUNCHERS) {
    if (environment[size] === undefined || environment[rank] === undefined) continue;
    const found = { rank: Number(environment[rank]), size: Number(environment[size]) };
    return found.size > 1 ? found : undefined;
  }
  return undefined;
}

/** Joins the job. */
export async function openMpi(job: Launch, library = process.env.TCTS_MPI_LIBRARY): Promise<Mpi> {
  const mpi = await load(job, library === undefined ? LIBRARIES : [library]);
  const call = (name: string, ...types: string[]): Call => mpi.handle.func(name, 'int', types);
  const init = call('MPI_Init', P, P);
  const commRank = call('MPI_Comm_rank', P, P);
  const commSize = call('MPI_Comm_size', P, P);
  const allgatherv = call('MPI_Allgatherv', P, 'int', P, P, P, P, P, P);
  const alltoallv = call('MPI_Alltoallv', P, P, P, P, P, P, P, P, P);
  const finalize = call('MPI_Finalize');
  const abort = call('MPI_Abort', P, 'int');

  init(null, null);
  const { world, byte } = mpi;
  const ask = (question: Call): number => {
    const answer = new Int32Array(1);
    question(world, answer);
    return answer[0];
  };
  const [rank, size] = [ask(commRank), ask(commSize)];
  if (size !== job.size) {
    throw new InputError(
      `the launcher has started ${job.size} processes, but this library knows of ${size}: expected the library that ` +
        'belongs to the launcher (Open MPI is supported)',
      { file: mpi.file },
    );
  }
  return {
    rank,
    size,
    allgatherv: (send, bytes, receive, counts, starts) =>
      allgatherv(send, bytes, byte, receive, counts, starts, byte, world),
    alltoallv: (send, sendCounts, sendStarts, receive, receiveCounts, receiveStarts) =>
      alltoallv(send, sendCounts, sendStarts, byte, receive, receiveCounts, receiveStarts, byte, world),
    finalize: () => finalize(),
    abort: (code) => abort(world, code),
  };
}

type Call = ReturnType<LibraryHandle['func']>;

interface Library {
  readonly file: string;
  readonly handle: LibraryHandle;
  /** MPI_COMM_WORLD. */
  readonly world: unknown;
  /** MPI_BYTE. */
  readonly byte: unknown;
}

async function load({ size }: Launch, files: readonly string[]): Promise<Library> {
  const refuse = (why: string): InputError =>
    new InputError(`an MPI launcher has started this program ${size} times, but ${why}`);
  const { default: koffi } = await import('koffi').catch(() => {
    throw refuse('the package koffi, through which MPI is called, is not installed: npm install koffi');
  });
  const tried: string[] = [];
  for (const file of files) {
    let handle: LibraryHandle;
    try {
      // Global: components that Open MPI loads later look up its symbols in the process.
      handle = koffi.load(file, { global: true });
    } catch {
      tried.push(`${file} cannot be loaded`);
      continue;
    }
    try {
      // In Open MPI a handle is the address of an object with this name. MPICH and its relatives have numbers instead.
      const [world, byte] = [handle.symbol('ompi_mpi_comm_world'), handle.symbol('ompi_mpi_byte')];
      return { file, handle, world, byte };
    } catch {
      tried.push(`${file} is not Open MPI`);
    }
  }
  throw refuse(
    `no usable MPI library was found (${tried.join(', ')}): install Open MPI, or name its libmpi in TCTS_MPI_LIBRARY`,
  );
}

/** A pointer: to bytes of an array, or a handle. */
const P = 'void *';

/** Variables with the number of processes and of this process: Open MPI, MPICH and Intel, Slurm with PMIx. */
const LAUNCHERS = [
  ['OMPI_COMM_WORLD_SIZE', 'OMPI_COMM_WORLD_RANK'],
  ['PMI_SIZE', 'PMI_RANK'],
  ['SLURM_STEP_NUM_TASKS', 'PMIX_RANK'],
] as const;

/** By name, as the system finds it; then where Fedora, Homebrew and local builds put it. */
const LIBRARIES =
  process.platform === 'darwin'
    ? ['libmpi.40.dylib', '/opt/homebrew/lib/libmpi.40.dylib', '/usr/local/lib/libmpi.40.dylib']
    : ['libmpi.so.40', '/usr/lib64/openmpi/lib/libmpi.so.40', '/usr/local/lib/libmpi.so.40'];
