import {
  concat,
  type DeviceName,
  type DeviceValue,
  f32,
  input,
  lower,
  mul,
  type Program,
  programOf,
  reshape,
  rewrite,
  Session,
  slice,
  type Tensor,
  type TensorType,
  trace,
  type Value,
} from '../tensor/index.js';
import type { Arena } from './arena.js';

/**
 * The parameters of an arena on a device, with the optimiser's arrays. They are packed into buckets:
 * the whole model in a few buffers, so that an optimiser is a handful of operations, none larger than any WebGPU
 * device allows.
 *
 * What changes on the device is not in the arena until `toHost`; what is written into the arena must be announced by
 * `arena.touch()`, and is uploaded before the device is used again.
 */
export class Residence {
  private readonly copies: Promise<{ up: Session; down: Session }>;
  private uploaded = -1;
  private newer = false;
  private arrays: DeviceValue[][] = [];
  private readonly patches = new Map<string, Session>();

  private constructor(
    readonly device: DeviceName,
    private readonly arena: Arena,
    readonly buckets: readonly Bucket[],
  ) {
    const copy = lower(copyProgram(), { device });
    const sessions = [Session.create(copy, { keep: ['out'] }), Session.create(copy)];
    this.copies = Promise.all(sessions).then(([up, down]) => ({ up, down }));
    // A failure is reported to whoever awaits it; there may be nobody.
    this.copies.catch(() => {});
  }

  /** The residence of this arena on this device, created on first use. */
  static of(arena: Arena, device: DeviceName): Residence {
    const known = residences.get(arena);
    if (known !== undefined) return known;
    if (arena.dtype !== 'f32') throw new RangeError(`a device computes in f32, not in ${arena.dtype}`);
    const residence = new Residence(device, arena, bucketsOf(arena));
    residences.set(arena, residence);
    return residence;
  }

  /** Whether the device has parameters that the arena does not have yet; what was written there since is newer still. */
  get isAhead(): boolean {
    return this.newer && this.uploaded === this.arena.version;
  }

  /** The parameters, by the names of the inputs of a program that was changed by `resident`. */
  async values(): Promise<Record<string, DeviceValue>> {
    await this.toDevice();
    return Object.fromEntries(this.buckets.map(({ name }, i) => [name, this.arrays[0][i]]));
  }

  /** The optimiser's arrays, [slot][bucket of trained parameters]. */
  async slots(): Promise<readonly (readonly DeviceValue[])[]> {
    await this.toDevice();
    return this.arrays.slice(1);
  }

  /** Replaces parameters and optimiser arrays; the old ones are released. */
  replace(values: readonly DeviceValue[], slots: readonly (readonly DeviceValue[])[]): void {
    const fresh = [values, ...slots];
    for (const [i, list] of fresh.entries()) {
      for (const [j, value] of list.entries()) {
        this.arrays[i][j].release();
        this.arrays[i][j] = value;
      }
    }
    this.newer = true;
  }

  /** Copies parameters and the optimiser's arrays into the arena. */
  async toHost(): Promise<void> {
    if (!this.isAhead) return;
    for (const [i, list] of this.arrays.entries()) {
      for (const [j, value] of list.entries()) {
        const flat = await this.download(value);
        this.scatter(this.buckets[j], flat, i === 0 ? this.arena.values : this.arena.slot(i - 1));
      }
    }
    this.newer = false;
  }

  /** A tensor of a bucket's length as an array. */
  async download(value: DeviceValue): Promise<Float32Array> {
    const { down } = await this.copies;
    return (await down.run({ x: value, one: ONE })).out.data as Float32Array;
  }

  /** Copies from a bucket's layout to the arena's. */
  scatter({ places }: Bucket, flat: Float32Array, into: Float32Array | Float64Array): void {
    for (const { name, start, size } of places) {
      this.arena.view(into, name).set(flat.subarray(start, start + size) as never);
    }
  }

  /** Sets parameters: their buckets are assembled again. */
  async assign(values: Readonly<Record<string, Value>>): Promise<void> {
    await this.toDevice();
    for (const [i, bucket] of this.buckets.entries()) {
      const names = bucket.places.map(({ name }) => name).filter((name) => name in values);
      if (names.length === 0) continue;
      const key = `${bucket.name} ${names}`;
      let patch = this.patches.get(key);
      if (patch === undefined) {
        const program = lower(patchProgram(bucket, names, this.arena), { device: this.device });
        patch = await Session.create(program, { keep: ['out'] });
        this.patches.set(key, patch);
      }
      const parts = Object.fromEntries(names.map((name) => [name, values[name]]));
      const { kept } = await patch.runKeeping({ ...parts, [bucket.name]: this.arrays[0][i] });
      this.arrays[0][i].release();
      this.arrays[0][i] = kept.out;
    }
    this.newer = true;
  }

  async close(): Promise<void> {
    for (const patch of this.patches.values()) await patch.close();
    for (const value of this.arrays.flat()) value.release();
    this.arrays = [];
    this.uploaded = -1;
    residences.delete(this.arena);
    const { up, down } = await this.copies;
    await up.close();
    await down.close();
  }

  /** Uploads what was written into the arena. */
  private async toDevice(): Promise<void> {
    const { arena } = this;
    if (this.uploaded === arena.version) return;
    const { up } = await this.copies;
    const trained = this.buckets.filter(({ frozen }) => !frozen);
    const lists = [
      ...[{ from: arena.values, buckets: this.buckets }],
      ...Array.from({ length: arena.slots }, (_, i) => ({ from: arena.slot(i), buckets: trained })),
    ];
    const fresh: DeviceValue[][] = [];
    for (const { from, buckets } of lists) {
      const list: DeviceValue[] = [];
      for (const { places, length } of buckets) {
        const flat = new Float32Array(length);
        for (const { name, start } of places) flat.set(arena.view(from, name) as Float32Array, start);
        const { kept } = await up.runKeeping({ x: { data: flat, shape: [length] }, one: ONE });
        list.push(kept.out);
      }
      fresh.push(list);
    }
    for (const value of this.arrays.flat()) value.release();
    this.arrays = fresh;
    this.uploaded = arena.version;
    this.newer = false;
  }
}

const residences = new WeakMap<Arena, Residence>();

/** The residence of an arena whose parameters are on a device. */
export function residenceOf(arena: Arena): Residence | undefined {
  return residences.get(arena);
}

/** Parameters that lie in one buffer. */
export interface Bucket {
  /** Of the program's input. */
  readonly name: string;
  readonly places: readonly { readonly name: string; readonly start: number; readonly size: number }[];
  /** Elements, with zeros at the end: a multiple of `ROW`. */
  readonly length: number;
  readonly frozen: boolean;
}

/** Elements summed together: sums over a bucket take two steps. */
export const ROW = 1024;

/** 128 MiB, the smallest buffer that every WebGPU device can have. */
const LARGEST = 2 ** 25;

function bucketsOf(arena: Arena): Bucket[] {
  const trained = new Set(arena.trained);
  const groups: { names: string[]; size: number; frozen: boolean }[] = [];
  const sizeOf = (name: string): number => arena.value(name).length;
  for (const name of arena.names) {
    const frozen = !trained.has(name);
    const last = groups.at(-1);
    if (last === undefined || last.frozen !== frozen || last.size + sizeOf(name) > LARGEST) {
      groups.push({ names: [name], size: sizeOf(name), frozen });
    } else {
      last.names.push(name);
      last.size += sizeOf(name);
    }
  }
  return groups.map(({ names, size, frozen }, i) => {
    let start = 0;
    const places = names.map((name) => {
      const place = { name, start, size: sizeOf(name) };
      start += place.size;
      return place;
    });
    return { name: `parameters.${i}`, places, length: ROW * Math.max(1, Math.ceil(size / ROW)), frozen };
  });
}

/** A program with the buckets as inputs instead of the parameters. */
export function resident(program: Program, arena: Arena, buckets: readonly Bucket[]): Program {
  const whole = new Map<string, Tensor>();
  const parts = new Map<string, () => Tensor>();
  for (const { name, places, length } of buckets) {
    const all = input(name, f32(length));
    whole.set(name, all);
    for (const place of places) {
      parts.set(place.name, () => reshape(slice(all, 0, place.start, place.size), arena.shape(place.name)));
    }
  }
  const changed = rewrite(program, { input: (name) => parts.get(name)?.() });
  return programOf(new Map([...changed.inputs, ...whole]), changed.outputs);
}

/** A bucket with some of its parameters replaced. */
function patchProgram({ name, places, length }: Bucket, replaced: readonly string[], arena: Arena): Program {
  const types: Record<string, TensorType> = { [name]: f32(length) };
  for (const one of replaced) types[one] = f32(...arena.shape(one));
  return trace(types, (inputs) => {
    const parts: Tensor[] = [];
    let done = 0;
    for (const place of places.filter((one) => replaced.includes(one.name))) {
      if (place.start > done) parts.push(slice(inputs[name], 0, done, place.start - done));
      parts.push(reshape(inputs[place.name], [place.size]));
      done = place.start + place.size;
    }
    if (done < length) parts.push(slice(inputs[name], 0, done, length - done));
    return { out: concat(parts, 0) };
  });
}

/** out = x·one: the runtime could optimise away a value that passes through uncomputed. */
function copyProgram(): Program {
  return trace({ x: f32('N'), one: f32(1) }, ({ x, one }) => ({ out: mul(x, one) }));
}

const ONE = { data: Float32Array.of(1), shape: [1] } as const;
