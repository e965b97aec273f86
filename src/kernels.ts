import { readFileSync } from 'node:fs';
import { InputError } from './errors.js';
import { builtFile } from './files.js';

/** A `WebAssembly.Memory`, which TypeScript declares only as part of the DOM. */
export interface WasmMemory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}

/**
 * The kernels for arrays of one element type. An array is given by its address in the memory and its number of
 * elements `n`; it is processed in whole 16-byte vectors, so it must be padded to a multiple of 16 bytes (zeros in
 * the padding stay zero) and is fastest if its address is one. The equations are in `assembly/`.
 */
export interface FloatKernels {
  sgd(theta: number, grad: number, buffer: number, n: number, rate: number, l2: number, keep: number): void;
  adam(
    theta: number,
    grad: number,
    m: number,
    v: number,
    n: number,
    stepSize: number,
    beta1: number,
    beta2: number,
    eps: number,
    rootCorrection: number,
    l2: number,
    shrink: number,
  ): void;
  /** Σ x², accumulated in f64 in an order that depends on n alone. */
  squaredNorm(x: number, n: number): number;
  /** 1 if no element is infinite or NaN, else 0. */
  allFinite(x: number, n: number): number;
  /** x ← factor·x. */
  scale(x: number, n: number, factor: number): void;
  /** x ← min(max(x, −limit), limit); a NaN stays a NaN. */
  clamp(x: number, n: number, limit: number): void;
  /** y ← y + a·x. */
  axpy(y: number, x: number, n: number, a: number): void;
  /** out ← ((x₀ + x₁) + x₂) + … of `count` arrays at `first`, `first + stride` bytes, …; `out` may be one of them. */
  sum(out: number, first: number, stride: number, count: number, n: number): void;
}

export interface Kernels {
  readonly f32: FloatKernels;
  readonly f64: FloatKernels;
  /**
   * out[i] ← 1/keep with probability `keep` (rounded to a multiple of 2⁻¹⁶), else 0, in f32: a hash of the key and i.
   * Writes n rounded up to a multiple of 8 elements.
   */
  dropoutMask(out: number, n: number, keyLow: number, keyHigh: number, keep: number): void;
  /** out[i] ← a number in (0, 1), uniform in steps of 2⁻¹⁶, in f32; otherwise as `dropoutMask`. */
  uniforms(out: number, n: number, keyLow: number, keyHigh: number): void;
  /** The same two by the portable hash, in steps of 2⁻³² and 2⁻²³; n rounded up to a multiple of 4. */
  portableMask(out: number, n: number, keyLow: number, keyHigh: number, keep: number): void;
  portableUniforms(out: number, n: number, keyLow: number, keyHigh: number): void;
  /** What the portable hash makes of a key, and where it cuts for a share. */
  portableFirst(keyLow: number, keyHigh: number): number;
  portableSecond(keyLow: number, keyHigh: number): number;
  portableLimit(keep: number): number;
  /** Windows of one field of many samples, normalised: see `assembly/windows.ts`. */
  normalisedWindows(
    values: number,
    places: number,
    days: number,
    n: number,
    dayStride: number,
    window: number,
    offset: number,
    base: number,
    centre: number,
    factor: number,
    clip: number,
    missing: number,
    out: number,
    dayStep: number,
    rowStep: number,
  ): void;
  /** Kernels for medians: f32 arrays of any length; `out` has room for n + 4. */
  readonly medians: MedianKernels;
}

export interface MedianKernels {
  /** out ← x ∕ base, skipping NaN; returns how many remain. */
  knownRatios(x: number, base: number, n: number, out: number): number;
  /** How many elements are less than a bound. */
  countBelow(x: number, n: number, bound: number): number;
  /** out ← the elements from `low` to `high`, both included, in their order; returns how many. */
  takeBetween(x: number, n: number, low: number, high: number, out: number): number;
  /** x ← |x − centre|, the difference in f64 and rounded once. */
  deviations(x: number, n: number, centre: number): void;
}

export const PAGE_BYTES = 65536;
/** 4 GiB: what 32-bit addresses reach. */
export const MAX_PAGES = 65536;

/** The kernels working on `memory`, which they share with every typed array over it. */
export function loadKernels(memory: WasmMemory): Kernels {
  compiled ??= new WebAssembly.Module(readFileSync(builtFile('kernels.wasm')));
  const { exports } = new WebAssembly.Instance(compiled, { env: { memory } });
  return {
    f32: ofType(exports, 'F32'),
    f64: ofType(exports, 'F64'),
    ...(Object.fromEntries(RANDOM.map((name) => [name, exports[name]])) as Pick<Kernels, (typeof RANDOM)[number]>),
    normalisedWindows: exports.normalisedWindows as Kernels['normalisedWindows'],
    medians: exports as unknown as MedianKernels,
  };
}

const RANDOM = [
  'dropoutMask',
  'uniforms',
  'portableMask',
  'portableUniforms',
  'portableFirst',
  'portableSecond',
  'portableLimit',
] as const;

/** A memory of at least `bytes` that can grow to `maximum` pages, by default not at all. */
export function newMemory(bytes: number, maximum = pages(bytes)): WasmMemory {
  try {
    return new WebAssembly.Memory({ initial: pages(bytes), maximum });
  } catch (error) {
    throw outOfMemory(bytes, error);
  }
}

/**
 * Which hash random arrays are made of: `triple32` mixes best; `portable` consists of operations that every device has.
 */
export type MaskHash = 'triple32' | 'portable';

/** What determines a random array: 64 bits, and a hash, by default triple32. */
export type MaskKey = readonly [low: number, high: number, hash?: MaskHash];

/**
 * The dropout masks and other random arrays of one training step, one after the other in their own memory. A step
 * begins with `reset` and, since growing the memory would invalidate the masks already handed out, with `reserve` of
 * all it will ask for.
 */
export class MaskMemory {
  private readonly memory = newMemory(0, MAX_PAGES);
  private readonly kernels = loadKernels(this.memory);
  private used = 0;

  /** Invalidates all masks: their arrays will be overwritten. */
  reset(): void {
    this.used = 0;
  }

  /** Makes room for masks of this many elements in total. */
  reserve(totalElements: number): void {
    if (this.used > 0) throw new Error('MaskMemory.reserve comes after reset, before the first mask of a step');
    const needed = pages(totalElements * F32_BYTES + OVERHANG);
    if (needed > MAX_PAGES) {
      throw new InputError(`the dropout masks of one step need ${totalElements} elements, more than fit into 4 GiB`);
    }
    const missing = needed - this.memory.buffer.byteLength / PAGE_BYTES;
    try {
      if (missing > 0) this.memory.grow(missing);
    } catch (error) {
      throw outOfMemory(needed * PAGE_BYTES, error);
    }
  }

  /** A mask of n elements, each 1/keep with probability `keep` and else 0, that depends on (key, keep) alone. */
  mask(n: number, [low, high, hash]: MaskKey, keep: number): Float32Array<ArrayBuffer> {
    if (!(keep > 0 && keep <= 1)) throw new RangeError(`a mask keeps a share in (0, 1], not ${keep}`);
    const start = this.take(n);
    if (hash === 'portable') this.kernels.portableMask(start, n, low, high, keep);
    else this.kernels.dropoutMask(start, n, low, high, keep);
    return new Float32Array(this.memory.buffer, start, n);
  }

  /** The mask of n elements that drops nothing. */
  ones(n: number): Float32Array<ArrayBuffer> {
    const start = this.take(n);
    return new Float32Array(this.memory.buffer, start, n).fill(1);
  }

  /** n numbers, uniform in (0, 1), that depend on the key alone. */
  uniforms(n: number, [low, high, hash]: MaskKey): Float32Array<ArrayBuffer> {
    const start = this.take(n);
    if (hash === 'portable') this.kernels.portableUniforms(start, n, low, high);
    else this.kernels.uniforms(start, n, low, high);
    return new Float32Array(this.memory.buffer, start, n);
  }

  /** What a program needs to make a portable array itself: two words of the key and the threshold of the share. */
  portableWords([low, high]: MaskKey, keep = 1): [first: number, second: number, limit: number] {
    const { portableFirst, portableSecond, portableLimit } = this.kernels;
    return [portableFirst(low, high), portableSecond(low, high), portableLimit(keep)];
  }

  private take(n: number): number {
    const start = this.used;
    const end = start + n * F32_BYTES;
    if (end + OVERHANG > this.memory.buffer.byteLength)
      throw new Error(`a mask of ${n} elements was not reserved and does not fit`);
    this.used = end;
    return start;
  }
}

const F32_BYTES = Float32Array.BYTES_PER_ELEMENT;

/** The last eight elements of a mask may reach beyond its end: over the place of the next, which is written later. */
const OVERHANG = 28;

// The part of the WebAssembly API in use.
declare const WebAssembly: {
  readonly Memory: new (size: { initial: number; maximum: number }) => WasmMemory;
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: Readonly<Record<string, unknown>> };
};

let compiled: object | undefined;

function ofType(exports: Readonly<Record<string, unknown>>, suffix: 'F32' | 'F64'): FloatKernels {
  const own = Object.entries(exports).filter(([name]) => name.endsWith(suffix));
  return Object.fromEntries(own.map(([name, kernel]) => [name.slice(0, -3), kernel])) as unknown as FloatKernels;
}

function outOfMemory(bytes: number, error: unknown): unknown {
  if (!(error instanceof RangeError)) return error;
  return new InputError(`this machine cannot provide ${(bytes / 2 ** 30).toFixed(2)} GiB of memory in one piece`);
}

function pages(bytes: number): number {
  return Math.ceil(bytes / PAGE_BYTES);
}
