import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { InputError } from '../errors.js';
import { fileError } from '../files.js';
import { type PickleGlobal, readPickle } from './pickle.js';

/*
 * What `torch.save` writes: since PyTorch 1.6 a zip archive without compression,
 *
 *     NAME/data.pkl      a pickle whose tensors refer to storages
 *     NAME/data/KEY      the numbers of a storage, little-endian
 *
 * before that the pickles of a magic number, a protocol number, the machine, the object and the keys of the storages, then
 * for each key the number of elements in 8 bytes and the elements.
 */

/** A tensor whose numbers are still in the file. */
export class TorchTensor {
  constructor(
    readonly storage: TorchStorage,
    /** All three in elements. */
    readonly offset: number,
    readonly shape: readonly number[],
    readonly strides: readonly number[],
  ) {}
}

interface TorchStorage {
  readonly key: string;
  readonly dtype: keyof typeof WIDTHS;
  /** In elements. */
  readonly size: number;
}

export interface TorchFile {
  /** What was saved: see `readPickle`; tensors are `TorchTensor`s. */
  readonly value: unknown;
  /** The numbers of a tensor of floats, row-major. */
  floats(tensor: TorchTensor): Float32Array;
  close(): void;
}

/** Bytes of an element. */
const WIDTHS = {
  Float: 4,
  Half: 2,
  BFloat16: 2,
  Double: 8,
  Long: 8,
  Int: 4,
  Short: 2,
  Char: 1,
  Byte: 1,
  Bool: 1,
} as const;

/** Opens a `torch.save` file without running any code in it: see `readPickle`. */
export function openTorchFile(file: string): TorchFile {
  const source = new Source(file);
  try {
    const isZip = source.size >= 4 && source.bytes(0, 4).join() === '80,75,3,4';
    const { value, places } = isZip ? readArchive(source) : readLegacy(source);
    return { value, floats: (tensor) => floatsOf(source, places, tensor), close: () => source.close() };
  } catch (error) {
    source.close();
    throw error;
  }
}

/** Converts F16 or BF16 bits to f32. */
export function widened(bits: Uint16Array, dtype: 'F16' | 'BF16'): Float32Array {
  if (dtype === 'BF16') return new Float32Array(Uint32Array.from(bits, (half) => half << 16).buffer);
  return Float32Array.from(bits, (half) => {
    const [sign, exponent, fraction] = [half & 0x8000 ? -1 : 1, (half >> 10) & 31, half & 1023];
    if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
    return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1024 + fraction) * 2 ** (exponent - 25);
  });
}

/** Where in the file the storages begin, in bytes. */
type Places = ReadonlyMap<string, number>;

/** A file that is read in parts. */
class Source {
  readonly size: number;
  private readonly descriptor: number;

  constructor(readonly file: string) {
    try {
      this.descriptor = openSync(file, 'r');
      this.size = fstatSync(this.descriptor).size;
    } catch (error) {
      throw fileError(error, 'read', file);
    }
  }

  bytes(start: number, length: number): Uint8Array<ArrayBuffer> {
    if (!(start >= 0 && length >= 0 && start + length <= this.size)) throw this.broken('it is cut off');
    const bytes = new Uint8Array(length);
    for (let at = 0; at < length; ) {
      const read = readSync(this.descriptor, bytes, at, Math.min(length - at, 1 << 30), start + at);
      if (read === 0) throw this.broken('it is cut off');
      at += read;
    }
    return bytes;
  }

  view(start: number, length: number): DataView {
    return new DataView(this.bytes(start, length).buffer);
  }

  broken(why: string): InputError {
    return new InputError(`not a torch.save file: ${why}`, { file: this.file });
  }

  close(): void {
    closeSync(this.descriptor);
  }
}

function readArchive(source: Source): { value: unknown; places: Places } {
  const entries = zipEntries(source);
  const pickle = [...entries.keys()].find((name) => /^[^/]+\/data\.pkl$/.test(name));
  const entry = pickle === undefined ? undefined : entries.get(pickle);
  if (pickle === undefined || entry === undefined) throw source.broken('the archive has no data.pkl');
  const folder = pickle.slice(0, -'data.pkl'.length);
  const order = entries.get(`${folder}byteorder`);
  if (order !== undefined && new TextDecoder().decode(source.bytes(order.start, order.size)) !== 'little') {
    throw source.broken('its numbers are big-endian');
  }
  const { value, storages } = readObject(source, source.bytes(entry.start, entry.size), 0);
  const places = new Map<string, number>();
  for (const { key, dtype, size } of storages.values()) {
    const data = entries.get(`${folder}data/${key}`);
    if (data === undefined || data.size < size * WIDTHS[dtype]) throw source.broken(`the storage ${key} is missing`);
    places.set(key, data.start);
  }
  return { value, places };
}

/** Maximum length of an old file that is searched for its pickles. */
const LEGACY_HEAD = 256 * 2 ** 20;
const LEGACY_MAGIC = 0x1950a86a20f9469cfc6cn;
const LEGACY_PROTOCOL = 1001;

function readLegacy(source: Source): { value: unknown; places: Places } {
  const bytes = source.bytes(0, Math.min(source.size, LEGACY_HEAD));
  if (bytes[0] !== 0x80) throw source.broken('it begins neither as a zip archive nor as a pickle');
  const plain = { file: source.file };
  const magic = readPickle(bytes, plain);
  const protocol = magic.value === LEGACY_MAGIC ? readPickle(bytes, { ...plain, start: magic.end }) : undefined;
  if (protocol?.value !== LEGACY_PROTOCOL) throw source.broken('its magic number or its version is another one');
  const machine = readPickle(bytes, { ...plain, start: protocol.end });
  if (machine.value instanceof Map && machine.value.get('little_endian') === false) {
    throw source.broken('its numbers are big-endian');
  }
  const { value, storages, end } = readObject(source, bytes, machine.end);
  const keys = readPickle(bytes, { ...plain, start: end });
  const places = new Map<string, number>();
  let at = keys.end;
  for (const key of Array.isArray(keys.value) ? keys.value.map(String) : []) {
    const storage = storages.get(key);
    const count = Number(source.view(at, 8).getBigInt64(0, true));
    if (storage === undefined || count !== storage.size) throw source.broken(`the storage ${key} has another size`);
    places.set(key, at + 8);
    at += 8 + count * WIDTHS[storage.dtype];
  }
  return { value, places };
}

/** The object that was saved, and the storages of its tensors. */
function readObject(
  source: Source,
  bytes: Uint8Array,
  start: number,
): { value: unknown; end: number; storages: ReadonlyMap<string, TorchStorage> } {
  const storages = new Map<string, TorchStorage>();
  const { value, end } = readPickle(bytes, {
    file: source.file,
    start,
    knows: ({ module, name }) => module === 'torch' || (module === 'torch._utils' && REBUILD.test(name)),
    outside: (id) => {
      const [what, type, key, , size, view] = Array.isArray(id) ? id : [];
      const name = /^torch\.(\w+)Storage$/.exec(String(type))?.[1] ?? '';
      if (what !== 'storage' || !Object.hasOwn(WIDTHS, name) || !isSize(size) || (view ?? null) !== null) {
        throw source.broken(`it has a storage of the type ${String(type)}`);
      }
      const storage = { key: String(key), dtype: name as TorchStorage['dtype'], size };
      storages.set(storage.key, storage);
      return storage;
    },
    call: (what, values) => rebuilt(source, what, values),
  });
  return { value, end, storages };
}

const REBUILD = /^_rebuild_(tensor|tensor_v2|parameter)$/;

function rebuilt(source: Source, { module, name }: PickleGlobal, values: readonly unknown[]): unknown {
  if (module === 'torch' && (name === 'Size' || name === 'device')) return values[0];
  if (module !== 'torch._utils') return undefined;
  if (name === '_rebuild_parameter') return values[0];
  const [storage, offset, shape, strides] = values;
  const isStorage = typeof storage === 'object' && storage !== null && 'dtype' in storage;
  if (!isStorage || !isSize(offset) || !isSizes(shape) || !isSizes(strides) || shape.length !== strides.length) {
    throw source.broken('a tensor of it has no storage, shape or strides');
  }
  const tensor = new TorchTensor(storage as TorchStorage, offset, shape, strides);
  const last = shape.reduce((at, size, i) => at + (size - 1) * strides[i], offset);
  if (!shape.includes(0) && last >= tensor.storage.size) throw source.broken('a tensor reaches beyond its storage');
  return tensor;
}

function isSize(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isSizes(value: unknown): value is number[] {
  return Array.isArray(value) && value.every(isSize);
}

function floatsOf(source: Source, places: Places, { storage, offset, shape, strides }: TorchTensor): Float32Array {
  const place = places.get(storage.key);
  if (place === undefined) throw source.broken(`the storage ${storage.key} is missing`);
  const width = WIDTHS[storage.dtype];
  const count = shape.reduce((product, size) => product * size, 1);
  if (count === 0) return new Float32Array();
  const span = shape.reduce((sum, size, i) => sum + (size - 1) * strides[i], 1);
  const { buffer } = source.bytes(place + offset * width, span * width);
  const flat = numbersIn(buffer, storage, source);
  if (span === count && isRowMajor(shape, strides)) return flat;
  const floats = new Float32Array(count);
  const index = shape.map(() => 0);
  for (let i = 0; i < count; i++) {
    floats[i] = flat[index.reduce((sum, i, axis) => sum + i * strides[axis], 0)];
    for (let axis = shape.length - 1; axis >= 0 && ++index[axis] === shape[axis]; axis--) index[axis] = 0;
  }
  return floats;
}

function isRowMajor(shape: readonly number[], strides: readonly number[]): boolean {
  let expected = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    if (shape[axis] !== 1 && strides[axis] !== expected) return false;
    expected *= shape[axis];
  }
  return true;
}

function numbersIn(buffer: ArrayBuffer, { dtype }: TorchStorage, source: Source): Float32Array {
  switch (dtype) {
    case 'Float':
      return new Float32Array(buffer);
    case 'Double':
      return Float32Array.from(new Float64Array(buffer));
    case 'Half':
      return widened(new Uint16Array(buffer), 'F16');
    case 'BFloat16':
      return widened(new Uint16Array(buffer), 'BF16');
    default:
      throw source.broken(`expected a tensor of floats, found one of the type ${dtype}`);
  }
}

interface ZipEntry {
  readonly start: number;
  readonly size: number;
}

/** The uncompressed entries of a zip archive, including those above 4 GiB (zip64). */
function zipEntries(source: Source): Map<string, ZipEntry> {
  const tail = Math.min(source.size, 22 + 0xffff);
  const end = source.view(source.size - tail, tail);
  let at = tail - 22;
  while (at >= 0 && end.getUint32(at, true) !== 0x06054b50) at--;
  if (at < 0) throw source.broken('the archive has no directory: it is cut off');
  let count = end.getUint16(at + 10, true);
  let start = end.getUint32(at + 16, true);
  const locatorAt = source.size - tail + at - 20;
  if (locatorAt >= 0 && source.view(locatorAt, 4).getUint32(0, true) === 0x07064b50) {
    const wide = source.view(Number(source.view(locatorAt, 20).getBigUint64(8, true)), 56);
    count = Number(wide.getBigUint64(32, true));
    start = Number(wide.getBigUint64(48, true));
  }
  const directory = source.view(start, source.size - start);
  const entries = new Map<string, ZipEntry>();
  for (let i = 0, place = 0; i < count; i++) {
    if (place + 46 > directory.byteLength || directory.getUint32(place, true) !== 0x02014b50) {
      throw source.broken('the directory of the archive is damaged');
    }
    const [nameLength, extraLength, noteLength] = [28, 30, 32].map((offset) =>
      directory.getUint16(place + offset, true),
    );
    const next = place + 46 + nameLength + extraLength + noteLength;
    if (next > directory.byteLength) throw source.broken('the directory of the archive is damaged');
    const name = new TextDecoder().decode(new Uint8Array(directory.buffer, place + 46, nameLength));
    const extra = new DataView(directory.buffer, place + 46 + nameLength, extraLength);
    const sizes = [20, 24, 42].map((offset) => directory.getUint32(place + offset, true));
    const [stored, size, header] = wideSizes(sizes, extra);
    if (directory.getUint16(place + 10, true) !== 0 || stored !== size) {
      throw source.broken(`the entry ${name} of the archive is compressed`);
    }
    const local = source.view(header, 30);
    const data = header + 30 + local.getUint16(26, true) + local.getUint16(28, true);
    entries.set(name, { start: data, size });
    place = next;
  }
  return entries;
}

/** Compressed size, size and place of an entry; those that do not fit into 32 bits are in the extra field 1. */
function wideSizes([stored, size, header]: readonly number[], extra: DataView): [number, number, number] {
  const wide: number[] = [];
  for (let at = 0; at + 4 <= extra.byteLength; at += 4 + extra.getUint16(at + 2, true)) {
    if (extra.getUint16(at, true) !== 1) continue;
    const length = Math.min(extra.getUint16(at + 2, true), extra.byteLength - at - 4);
    for (let i = 0; i + 8 <= length; i += 8) wide.push(Number(extra.getBigUint64(at + 4 + i, true)));
  }
  // In this order, and only those that are needed.
  const next = (value: number): number => (value === 0xffffffff ? (wide.shift() ?? value) : value);
  const whole = next(size);
  return [next(stored), whole, next(header)];
}
