import { env, InferenceSession, Tensor as OrtTensor } from 'onnxruntime-node';
import { type DeviceName, deviceFailure, deviceMissing } from '../devices.js';
import { InputError } from '../errors.js';
import { type MaskKey, MaskMemory } from '../kernels.js';
import { freeNow } from '../native-memory.js';
import { bareName, evaluateDim, formatShape } from './dim.js';
import { type Executable, lower, MASK_SCALES, MASK_WORDS } from './lowering.js';
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

// Errors are thrown; the runtime would also print them.
env.logLevel = 'fatal';

/** How a session computes. */
export interface SessionOptions {
  /** Threads inside one operation. Default 1. */
  readonly threads?: number;
  /** Outputs that stay on the executable's device: `runKeeping` returns them. Default none. */
  readonly keep?: readonly string[];
  /** Write a trace of every run to files with this prefix. Default: none. */
  readonly profile?: string;
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

/** A tensor on a device: an output of one program that can be an input of another one. */
export class DeviceValue {
  constructor(
    /** The runtime's handle. */
    readonly handle: DeviceTensor,
  ) {}

  /** Its sizes. */
  get shape(): readonly number[] {
    return this.handle.dims;
  }

  /** Releases its memory. */
  release(): void {
    this.handle.dispose();
  }
}

/** The part of the runtime's tensor in use. */
interface DeviceTensor {
  readonly dims: readonly number[];
  dispose(): void;
}

/** Values of a program's inputs, here or on its device. */
export type DeviceFeeds = Readonly<Record<string, Value | DeviceValue>>;

/** Instead of a key: computes in evaluation mode. */
export const NO_DROPOUT = 'no dropout';

/** A compiled program, ready to run with any sizes of its named dimensions. */
export class Session {
  private masks: MaskMemory | undefined;
  /** Bytes that runs have sent to and received from a device. */
  readonly traffic = { up: 0, down: 0 };

  private constructor(
    readonly executable: Executable,
    private readonly session: InferenceSession,
  ) {}

  /** Loads a program into the runtime. */
  static async create(executable: Executable, options: SessionOptions = {}): Promise<Session> {
    const { device } = executable;
    try {
      return new Session(executable, await startSession(executable, options));
    } catch (error) {
      throw deviceMissing(device, error) ?? error;
    }
  }

  /** Computes outputs from the values of the inputs. */
  async run(feeds: DeviceFeeds, run: Run = {}): Promise<Record<string, Value>> {
    const { outputs } = await this.runKeeping(feeds, run);
    return outputs;
  }

  /** The same; outputs that stay on the device are returned separately. The caller releases them. */
  async runKeeping(
    feeds: DeviceFeeds,
    run: Run = {},
  ): Promise<{ outputs: Record<string, Value>; kept: Record<string, DeviceValue> }> {
    const { device, inputs, outputs, masks } = this.executable;
    const sizes = new Map<string, number>();
    const given: Record<string, OrtTensor> = {};
    for (const [name, type] of Object.entries(inputs)) {
      const value = feeds[name];
      if (value === undefined) throw new InputError('no value is given for this input of the program', { key: name });
      if (value instanceof DeviceValue) {
        given[name] = value.handle as OrtTensor;
        continue;
      }
      bindSizes(name, type, value, sizes);
      given[name] = toOrt(value.data, type.dtype, value.shape, device);
    }
    if (masks.length > 0) Object.assign(given, this.randomInputs(sizes, run.dropoutKey));

    const fetches: Record<string, OrtTensor | null> = {};
    for (const name of run.outputs ?? Object.keys(outputs)) {
      const type = outputs[name];
      if (type === undefined) throw new InputError('the program has no such output', { key: name });
      const target = run.into?.[name];
      const preallocated = target !== undefined && device === 'cpu';
      fetches[name] = preallocated
        ? toOrt(
            target,
            type.dtype,
            type.shape.map((size) => evaluateDim(size, sizes)),
          )
        : null;
    }
    const results = await this.compute(given, fetches);
    if (device !== 'cpu') this.count(Object.values(given), Object.values(results));
    const values: Record<string, Value> = {};
    const kept: Record<string, DeviceValue> = {};
    for (const [name, result] of Object.entries(results)) {
      if (result.location !== 'cpu') {
        kept[name] = new DeviceValue(result);
        continue;
      }
      const data = fromOrt(result, outputs[name].dtype);
      const target = run.into?.[name];
      if (target !== undefined && device !== 'cpu') target.set(data as never);
      if (target !== undefined && data.buffer !== target.buffer) freeNow(data.buffer as ArrayBuffer);
      values[name] = { data: target ?? data, shape: result.dims };
    }
    return { outputs: values, kept };
  }

  /** Releases native memory and threads. */
  async close(): Promise<void> {
    await this.session.release();
  }

  /** Ends the trace that `profile` began; its file has then been written. */
  endProfile(): void {
    this.session.endProfiling();
  }

  private count(given: readonly OrtTensor[], results: readonly OrtTensor[]): void {
    const bytes = (tensors: readonly OrtTensor[]): number =>
      tensors.reduce((sum, one) => sum + (one.location === 'cpu' ? (one.data as TypedArray).byteLength : 0), 0);
    this.traffic.up += bytes(given);
    this.traffic.down += bytes(results);
  }

  private async compute(feeds: Record<string, OrtTensor>, fetches: Record<string, OrtTensor | null>) {
    try {
      return await this.session.run(feeds, fetches);
    } catch (error) {
      throw deviceFailure(this.executable.device, error) ?? error;
    }
  }

  /** The random arrays of a run, or what the program makes them of. */
  private randomInputs(sizes: ReadonlyMap<string, number>, key: Run['dropoutKey']): Record<string, OrtTensor> {
    if (key === undefined) throw new Error('this program has dropout: a run needs a dropoutKey');
    if (key === NO_DROPOUT && this.executable.masks.some(({ keep }) => keep === undefined)) {
      throw new Error('this program also draws noise: a run needs a dropoutKey');
    }
    this.masks ??= new MaskMemory();
    return this.executable.masksInside ? this.maskWords(key, this.masks) : this.maskArrays(sizes, key, this.masks);
  }

  private maskWords(key: MaskKey | typeof NO_DROPOUT, memory: MaskMemory): Record<string, OrtTensor> {
    const { masks } = this.executable;
    if (key !== NO_DROPOUT && key[2] !== 'portable') {
      throw new RangeError('this program makes its dropout masks with the portable hash: the key must say so');
    }
    const words = masks.flatMap(({ keep }, site) => memory.portableWords(siteKey(key, site), dropping(key, keep)));
    const scales = masks.map(({ keep }) => 1 / dropping(key, keep));
    const inputs: Record<string, OrtTensor> = { [MASK_WORDS]: toOrt(Int32Array.from(words), 'i32', [words.length]) };
    if (masks.some(({ keep }) => keep !== undefined)) {
      inputs[MASK_SCALES] = toOrt(Float32Array.from(scales), 'f32', [scales.length]);
    }
    return inputs;
  }

  private maskArrays(
    sizes: ReadonlyMap<string, number>,
    key: MaskKey | typeof NO_DROPOUT,
    memory: MaskMemory,
  ): Record<string, OrtTensor> {
    const { masks } = this.executable;
    const shapes = masks.map(({ shape }) => shape.map((size) => evaluateDim(size, sizes)));
    const counts = shapes.map((shape) => shape.reduce((a, b) => a * b, 1));
    memory.reset();
    memory.reserve(counts.reduce((a, b) => a + b, 0));
    const draw = (site: number, keep: number | undefined): Float32Array => {
      if (key === NO_DROPOUT) return memory.ones(counts[site]);
      const own = siteKey(key, site);
      return keep === undefined ? memory.uniforms(counts[site], own) : memory.mask(counts[site], own, keep);
    };
    return Object.fromEntries(
      masks.map(({ name, keep }, site) => [name, toOrt(draw(site, keep), 'f32', shapes[site])]),
    );
  }
}

/** The key of one of the random arrays of a run: golden-ratio steps keep them apart. */
function siteKey(key: MaskKey | typeof NO_DROPOUT, site: number): MaskKey {
  return key === NO_DROPOUT ? [0, 0] : [key[0], (key[1] ^ Math.imul(site + 1, 0x9e3779b9)) >>> 0, key[2]];
}

/** The share that a mask keeps in a run: all of it without dropout. */
const dropping = (key: MaskKey | typeof NO_DROPOUT, keep = 1): number => (key === NO_DROPOUT ? 1 : keep);

function startSession(executable: Executable, { threads = 1, keep = [], profile }: SessionOptions) {
  const { device } = executable;
  return InferenceSession.create(executable.onnx, {
    executionProviders: device === 'cpu' ? ['cpu'] : [device, 'cpu'],
    ...(device === 'cpu'
      ? {}
      : { preferredOutputLocation: Object.fromEntries(keep.map((name) => [name, 'gpu-buffer' as const])) }),
    ...(profile === undefined ? {} : { enableProfiling: true, profileFilePrefix: profile }),
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
}

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

function toOrt(data: TypedArray, dtype: DType, shape: readonly number[], device: DeviceName = 'cpu'): OrtTensor {
  const count = shape.reduce((a, b) => a * b, 1);
  if (count !== data.length) {
    throw new RangeError(`an array of ${data.length} elements cannot hold ${formatShape(shape)}`);
  }
  // Programs for devices have 32-bit integers in the place of 64-bit ones (`Lowering.type`).
  if (dtype === 'i64' && device !== 'cpu') {
    return new OrtTensor('int32', Int32Array.from(data as BigInt64Array, Number), shape);
  }
  return new OrtTensor(ORT_TYPE[dtype], data as Float32Array, shape);
}

/** An output in the array type of the program, regardless of the device's type. */
function fromOrt({ data }: OrtTensor, dtype: DType): TypedArray {
  if (dtype === 'i64' && data instanceof Int32Array) return BigInt64Array.from(data, BigInt);
  return data as TypedArray;
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
