import { InputError } from '../errors.js';
import { type FloatKernels, loadKernels, MAX_PAGES, newMemory, PAGE_BYTES } from '../kernels.js';

/** Elements of an arena. */
export type Floats = Float32Array<ArrayBuffer> | Float64Array<ArrayBuffer>;

/** Name and shape of a parameter. */
export interface ParameterSpec {
  readonly name: string;
  /** Row-major; `[]` is a scalar. */
  readonly shape: readonly number[];
  /** It is not trained: it has a value, but neither a gradient nor optimiser state. Default false. */
  readonly frozen?: boolean;
}

/** Type of an arena's elements, and its room for the optimiser. */
export interface ArenaOptions {
  /** Arrays of optimiser state besides values and gradients: the optimiser's `slots`. Default 0. */
  readonly slots?: number;
  /** Type of every element; f64 is for checks. Default 'f32'. */
  readonly dtype?: 'f32' | 'f64';
}

/**
 * All parameters of a model, their gradients and the optimiser's state, in one WebAssembly memory:
 *
 *     values | gradients | slot 0 | slot 1 | … | window
 *
 * Each region holds the parameters in the given order, every one starting on a cache line, so one kernel call
 * works on the whole model. Frozen parameters come last, only in the first region. The gaps between parameters hold
 * zeros and stay zero. The window is small: arrays that are only added to the gradients stay outside and pass through it.
 * The memory never grows: views are valid for the life of the arena.
 */
export class Arena {
  readonly dtype: 'f32' | 'f64';
  readonly names: readonly string[];
  /** Those that are not frozen. */
  readonly trained: readonly string[];
  /** Elements of the gradients and of each optimiser array, gaps included: those of the trained parameters. */
  readonly length: number;
  /** Elements of all parameters, without the gaps. */
  readonly parameterCount: number;
  /** Kernels for this element type on this memory. */
  readonly kernels: FloatKernels;
  readonly values: Floats;
  readonly grads: Floats;
  /** Byte addresses of the regions, for the kernels. */
  readonly address: { readonly values: number; readonly grads: number; readonly slots: readonly number[] };

  private changes = 0;
  private readonly places: ReadonlyMap<string, Place>;
  private readonly slotArrays: readonly Floats[];
  /** Through which outside numbers reach the kernels. */
  private readonly window: Floats;

  constructor(parameters: readonly ParameterSpec[], { slots = 0, dtype = 'f32' }: ArenaOptions = {}) {
    const Elements = dtype === 'f32' ? Float32Array : Float64Array;
    const layout = layOut(parameters, CACHE_LINE / Elements.BYTES_PER_ELEMENT);
    const stride = layout.trained * Elements.BYTES_PER_ELEMENT;
    const valueBytes = layout.length * Elements.BYTES_PER_ELEMENT;
    const windowLength = Math.min(layout.trained, WINDOW);
    // Address 0 stays free: kernels read it as "no such array".
    const bytes = CACHE_LINE + valueBytes + (1 + slots) * stride + windowLength * Elements.BYTES_PER_ELEMENT;
    if (bytes > MAX_PAGES * PAGE_BYTES) throw full(parameters, layout.count, slots, { valueBytes, stride, bytes });
    const memory = newMemory(bytes);
    /** Region `index` of those after the values. */
    const region = (index: number, length = layout.trained): Floats =>
      new Elements(memory.buffer, CACHE_LINE + valueBytes + index * stride, length) as Floats;

    this.dtype = dtype;
    this.names = [...layout.places.keys()];
    this.trained = this.names.filter((name) => !layout.frozen.has(name));
    this.places = layout.places;
    this.length = layout.trained;
    this.parameterCount = layout.count;
    this.kernels = loadKernels(memory)[dtype];
    this.values = new Elements(memory.buffer, CACHE_LINE, layout.length) as Floats;
    this.grads = region(0);
    this.slotArrays = Array.from({ length: slots }, (_, i) => region(1 + i));
    this.window = region(1 + slots, windowLength);
    this.address = {
      values: this.values.byteOffset,
      grads: this.grads.byteOffset,
      slots: this.slotArrays.map((slot) => slot.byteOffset),
    };
  }

  /** Number of optimiser arrays. */
  get slots(): number {
    return this.slotArrays.length;
  }

  /** Counts announced writes to values or optimiser arrays, which make a copy on a device stale. */
  get version(): number {
    return this.changes;
  }

  /** Announces that values or optimiser arrays were written. */
  touch(): void {
    this.changes++;
  }

  /** Whether there is a parameter of this name. */
  has(name: string): boolean {
    return this.places.has(name);
  }

  /** The shape of a parameter. */
  shape(name: string): readonly number[] {
    return this.place(name).shape;
  }

  /** The parameter itself; writing to the array sets it. */
  value(name: string): Floats {
    return this.view(this.values, name);
  }

  /** The gradient of a parameter, a view into the arena. */
  grad(name: string): Floats {
    this.requireTrained(name);
    return this.view(this.grads, name);
  }

  /** The whole optimiser array i, or the part of it that belongs to one parameter. */
  slot(i: number, name?: string): Floats {
    const array = this.slotArrays[i];
    if (array === undefined) throw new RangeError(`the arena has ${this.slots} optimiser arrays, not one at ${i}`);
    if (name === undefined) return array;
    this.requireTrained(name);
    return this.view(array, name);
  }

  /** Runs something with the trained parameters θ + factor·shift, then restores them bit for bit. */
  async shifted<T>(shift: Float32Array, factor: number, body: () => Promise<T>): Promise<T> {
    const before = this.values.slice(0, this.length);
    this.writeShifted(shift, factor, this.values);
    this.touch();
    try {
      return await body();
    } finally {
      this.values.set(before as never);
      this.touch();
    }
  }

  /** Writes all parameters into an array laid out as the values: the trained ones are θ + factor·shift. */
  writeShifted(shift: Float32Array, factor: number, out: Float32Array | Float64Array): void {
    const { values, length } = this;
    for (let i = 0; i < length; i++) out[i] = values[i] + factor * shift[i];
    out.set(values.subarray(length) as never, length);
  }

  /** Sets all gradients to 0. */
  zeroGrads(): void {
    this.grads.fill(0);
  }

  /** Adds gradients from an array laid out like those of the arena. */
  addToGrads(others: Float32Array | Float64Array): void {
    const { window, grads, kernels } = this;
    for (let start = 0; start < this.length; start += window.length) {
      const part = others.subarray(start, Math.min(this.length, start + window.length));
      window.set(part as never);
      kernels.axpy(grads.byteOffset + start * grads.BYTES_PER_ELEMENT, window.byteOffset, part.length, 1);
    }
  }

  /** An array outside, laid out like the gradients. */
  newArray(): Floats {
    return this.dtype === 'f32' ? new Float32Array(this.length) : new Float64Array(this.length);
  }

  /** The part of an array with the arena's layout that belongs to a parameter. */
  view<A extends Float32Array | Float64Array>(array: A, name: string): A {
    const { start, size } = this.place(name);
    return array.subarray(start, start + size) as A;
  }

  private requireTrained(name: string): void {
    if (this.place(name).start < this.length || this.place(name).size === 0) return;
    throw new RangeError(`the parameter ${name} is frozen: it has no gradient`);
  }

  private place(name: string): Place {
    const place = this.places.get(name);
    if (place === undefined) throw new InputError('there is no parameter of this name', { key: name });
    return place;
  }
}

/** Where a parameter lies in each region, in elements. */
interface Place {
  readonly start: number;
  readonly size: number;
  readonly shape: readonly number[];
}

const CACHE_LINE = 64;

/** Elements of the window: small enough for the L2 cache, large enough that the calls do not matter. */
const WINDOW = 1 << 14;

function full(
  parameters: readonly ParameterSpec[],
  count: number,
  slots: number,
  { valueBytes, stride, bytes }: Record<'valueBytes' | 'stride' | 'bytes', number>,
): InputError {
  const gib = (size: number): string => `${(size / 2 ** 30).toFixed(2)} GiB`;
  const sizeOf = ({ shape }: ParameterSpec): number => shape.reduce((product, n) => product * n, 1);
  const [largest] = parameters.toSorted((a, b) => sizeOf(b) - sizeOf(a));
  const arrays = `gradients and ${slots} array${slots === 1 ? '' : 's'} of the optimiser`;
  const parts =
    stride === valueBytes
      ? `${gib(stride)} each for values, ${arrays}`
      : `${gib(valueBytes)} for values, ${gib(stride)} each for ${arrays}`;
  return new InputError(
    `the model's ${count.toLocaleString('en')} parameters need ${gib(bytes)}, ${parts}, but at most 4 GiB fit; the largest ` +
      `parameter is ${largest.name} [${largest.shape.join(', ')}]: expected a smaller model, such as one with a ` +
      'smaller vocabulary, shared embeddings or less width',
  );
}

function layOut(
  parameters: readonly ParameterSpec[],
  lineElements: number,
): { places: Map<string, Place>; frozen: Set<string>; length: number; trained: number; count: number } {
  const places = new Map<string, Place>();
  const frozen = new Set<string>();
  let [length, trained, count] = [0, 0, 0];
  const ordered = [...parameters.filter((one) => !one.frozen), ...parameters.filter((one) => one.frozen)];
  for (const { name, shape, frozen: isFrozen = false } of ordered) {
    if (places.has(name)) throw new InputError('there are two parameters of this name', { key: name });
    if (!shape.every((size) => Number.isSafeInteger(size) && size >= 0)) {
      throw new InputError(`a shape has whole numbers ≥ 0, not [${shape.join(', ')}]`, { key: name });
    }
    const size = shape.reduce((product, n) => product * n, 1);
    places.set(name, { start: length, size, shape: [...shape] });
    length += Math.ceil(size / lineElements) * lineElements;
    count += size;
    if (isFrozen) frozen.add(name);
    else trained = length;
  }
  return { places, frozen, length, trained, count };
}
