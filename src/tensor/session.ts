import { InferenceSession, Tensor as OrtTensor } from 'onnxruntime-node';
import { InputError } from '../errors.js';
import { type MaskKey, MaskMemory } from '../kernels.js';
import { bareName, evaluateDim, formatShape } from './dim.js';
import { type Executable, lower } from './lowering.js';
import {
  type DType,
  describeType,
  dtypeOf,
  isFloat,
  type Tensor,
  type TensorType,
  type TypedArray,
  type Value,
} from './tensor.js';
import { type Program, programOf } from './trace.js';

/** How a session computes. */
export interface SessionOptions {
  /** Threads inside one operation. Default 1. */
  readonly threads?: number;
}

/** What one run computes, and where it writes. */
export interface Run {
  /** Which outputs to compute and return. Default: all. */
  readonly outputs?: readonly string[];
  /** Arrays to write outputs into, instead of new ones. */
  readonly into?: Readonly<Record<string, TypedArray>>;
  /** Determines the dropout masks of this run, or drops nothing; required when the program has dropout. */
  readonly dropoutKey?: MaskKey | typeof NO_DROPOUT;
}

/** In the place of a key: what the program computes in evaluation mode. */
export const NO_DROPOUT = 'no dropout';

/** A compiled program, ready to run with any sizes of its named dimensions. */
export class Session {
  private masks: MaskMemory | undefined;

  private constructor(
    readonly executable: Executable,
    private readonly session: InferenceSession,
  ) {}

  /** Loads a program into the runtime. */
  static async create(executable: Executable, { threads = 1 }: SessionOptions = {}): Promise<Session> {
    const session = await InferenceSession.create(executable.onnx, {
      executionProviders: ['cpu'],
      graphOptimizationLevel: 'all',
      executionMode: 'sequential',
      intraOpNumThreads: threads,
      interOpNumThreads: 1,
      logSeverityLevel: 3,
      // Patterns are remembered for each batch shape, on top of the arena: a third of the peak memory for no gain here.
      enableMemPattern: false,
      extra: {
        session: {
          // Denormal numbers, which a gradient that vanishes through a recurrence is full of, are a hundred times
          // slower than zeros.
          set_denormal_as_zero: '1',
          // Threads wait actively between the operations of a run, and give the core back when it ends.
          intra_op: { allow_spinning: '1' },
          force_spinning_stop: '1',
        },
        // Sum and layer norm as one operation is five times slower than the two (onnxruntime 1.30, [2044, 256]: 2.9 ms
        // instead of 0.3 + 0.3): its kernel goes through the numbers one by one.
        optimization: { disable_specified_optimizers: 'SkipLayerNormFusion' },
      },
    });
    return new Session(executable, session);
  }

  /** Computes outputs from the values of the inputs. */
  async run(feeds: Readonly<Record<string, Value>>, run: Run = {}): Promise<Record<string, Value>> {
    const { inputs, outputs, masks } = this.executable;
    const sizes = new Map<string, number>();
    const given: Record<string, OrtTensor> = {};
    for (const [name, type] of Object.entries(inputs)) {
      const value = feeds[name];
      if (value === undefined) throw new InputError('no value is given for this input of the program', { key: name });
      bindSizes(name, type, value, sizes);
      given[name] = toOrt(value.data, type.dtype, value.shape);
    }
    if (masks.length > 0) Object.assign(given, this.dropoutMasks(sizes, run.dropoutKey));

    const fetches: Record<string, OrtTensor | null> = {};
    for (const name of run.outputs ?? Object.keys(outputs)) {
      const type = outputs[name];
      if (type === undefined) throw new InputError('the program has no such output', { key: name });
      const target = run.into?.[name];
      fetches[name] =
        target === undefined
          ? null
          : toOrt(
              target,
              type.dtype,
              type.shape.map((size) => evaluateDim(size, sizes)),
            );
    }
    const results = await this.session.run(given, fetches);
    return Object.fromEntries(
      Object.entries(results).map(([name, result]) => {
        const data = result.data as TypedArray;
        const target = run.into?.[name];
        if (target !== undefined && data.buffer !== target.buffer) freeNow(data.buffer as ArrayBuffer);
        return [name, { data: target ?? data, shape: result.dims }];
      }),
    );
  }

  /** Releases native memory and threads. */
  async close(): Promise<void> {
    await this.session.release();
  }

  private dropoutMasks(sizes: ReadonlyMap<string, number>, key: Run['dropoutKey']): Record<string, OrtTensor> {
    if (key === undefined) throw new Error('this program has dropout: a run needs a dropoutKey');
    this.masks ??= new MaskMemory();
    const shapes = this.executable.masks.map(({ shape }) => shape.map((size) => evaluateDim(size, sizes)));
    const counts = shapes.map((shape) => shape.reduce((a, b) => a * b, 1));
    this.masks.reset();
    this.masks.reserve(counts.reduce((a, b) => a + b, 0));
    const memory = this.masks;
    return Object.fromEntries(
      this.executable.masks.map(({ name, keep }, site) => {
        const count = counts[site];
        if (key === NO_DROPOUT) {
          if (keep === undefined) throw new Error('this program draws noise besides dropout: a run needs a dropoutKey');
          return [name, toOrt(memory.ones(count), 'f32', shapes[site])];
        }
        // Golden-ratio steps keep the keys of different sites of one run apart.
        const siteKey: MaskKey = [key[0], (key[1] ^ Math.imul(site + 1, 0x9e3779b9)) >>> 0];
        const drawn = keep === undefined ? memory.uniforms(count, siteKey) : memory.mask(count, siteKey, keep);
        return [name, toOrt(drawn, 'f32', shapes[site])];
      }),
    );
  }
}

/**
 * Frees the memory of an array that nobody uses. The runtime returns a copy of every output, even of one that it was told
 * where to write; left to the garbage collector, the copies of an update are page faults and collections that take longer
 * than making them. A buffer that is transferred belongs to its message, which a closed port drops at once.
 */
function freeNow(buffer: ArrayBuffer): void {
  closedPort.postMessage(undefined, [buffer]);
}

const closedPort = new MessageChannel().port1;
closedPort.close();

/** Checks a value against its type and learns the sizes of named dimensions from it. */
function bindSizes(name: string, type: TensorType, { data, shape }: Value, sizes: Map<string, number>): void {
  const found = describeType({ dtype: dtypeOf(data), shape });
  const refuse = (why: string): never => {
    throw new InputError(`expected ${describeType(type)}, got ${found}${why}`, { key: name });
  };
  if (dtypeOf(data) !== type.dtype || shape.length !== type.shape.length) refuse('');
  if (shape.reduce((a, b) => a * b, 1) !== data.length) refuse(` with ${data.length} elements`);
  type.shape.forEach((size, axis) => {
    const symbol = bareName(size);
    if (symbol === undefined) {
      if (size !== shape[axis]) refuse('');
      return;
    }
    const known = sizes.get(symbol);
    if (known === undefined) sizes.set(symbol, shape[axis]);
    else if (known !== shape[axis]) refuse(`, but ${symbol} is ${known} in an earlier input`);
  });
}

const ORT_TYPE = { f32: 'float32', f64: 'float64', i32: 'int32', i64: 'int64', bool: 'bool' } as const;

function toOrt(data: TypedArray, dtype: DType, shape: readonly number[]): OrtTensor {
  const count = shape.reduce((a, b) => a * b, 1);
  if (count !== data.length) {
    throw new RangeError(`an array of ${data.length} elements cannot hold ${formatShape(shape)}`);
  }
  return new OrtTensor(ORT_TYPE[dtype], data as Float32Array, shape);
}

/** The first operation of a program whose output is not finite although its inputs are. */
export interface NonFinite {
  readonly op: string;
  /** `file:line:column` of the code that asked for the operation. */
  readonly site: string;
  /** NaN or an infinity. */
  readonly value: number;
}

/**
 * Runs the program again with every intermediate value visible and names the first operation whose output is NaN or
 * infinite, or an input that already was. For finding the cause of a loss that went wrong: slow and memory-hungry.
 */
export async function firstNonFinite(
  program: Program,
  feeds: Readonly<Record<string, Value>>,
  dropoutKey?: MaskKey,
): Promise<NonFinite | undefined> {
  for (const [name, { data }] of Object.entries(feeds)) {
    const value = nonFiniteIn(data);
    if (program.inputs.has(name) && value !== undefined) return { op: 'input', site: name, value };
  }
  const tensors = program.nodes.flatMap((node) => node.outputs).filter(({ dtype }) => isFloat(dtype));
  const visible = new Map(tensors.map((tensor, i): [string, Tensor] => [`value.${i}`, tensor]));
  const session = await Session.create(lower(programOf(program.inputs, visible)));
  const values = await session.run(feeds, { dropoutKey });
  await session.close();
  for (const [name, { node }] of visible) {
    const value = nonFiniteIn(values[name].data);
    if (value !== undefined) return { op: node.op.name, site: node.site, value };
  }
  return undefined;
}

function nonFiniteIn(data: Value['data']): number | undefined {
  if (!(data instanceof Float32Array || data instanceof Float64Array)) return undefined;
  return data.find((value) => !Number.isFinite(value));
}
