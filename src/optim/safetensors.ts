import { InputError } from '../errors.js';
import { readBytes, writeFileAtomic } from '../files.js';

// The safetensors layout (https://github.com/huggingface/safetensors#format):
//   8 bytes   u64 little-endian: N, length of the header
//   N bytes   UTF-8 JSON {name: {dtype, shape, data_offsets: [begin, end]}, …, __metadata__: {text: text}},
//             padded with spaces so that the data is aligned
//   the rest  the tensors, little-endian, row-major, without gaps; offsets count from its beginning
// Typed arrays are little-endian on every platform that the runtime supports.

/** Element type under the format's name, such as `F32`. */
export type StoredDtype = keyof typeof ARRAYS;

/** A tensor as stored in a file. BOOL has one byte per element, 0 or 1; F16 and BF16 are raw bits. */
export interface StoredTensor {
  readonly dtype: StoredDtype;
  readonly shape: readonly number[];
  readonly data: StoredArray;
}

/** Elements of a stored tensor. */
export type StoredArray =
  | Float32Array
  | Float64Array
  | Int32Array
  | BigInt64Array
  | Uint8Array
  | Uint16Array
  | Uint32Array;

/** Texts in the header of a file, by key. */
export type Metadata = Readonly<Record<string, string>>;

/** The content of a safetensors file. */
export interface Safetensors {
  /** In the order of the data. */
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  readonly metadata: Metadata;
}

/** The bytes of a file with these tensors. */
export function encodeSafetensors(
  tensors: ReadonlyMap<string, StoredTensor>,
  metadata: Metadata = {},
): Uint8Array<ArrayBuffer> {
  const all = pieces(tensors, metadata);
  const bytes = new Uint8Array(all.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of all) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/** The tensors of a file's bytes, as views where the alignment allows it. `file` is the name for error messages. */
export function decodeSafetensors(bytes: Uint8Array<ArrayBuffer>, file: string): Safetensors {
  const { header, data } = split(bytes, file);
  const { __metadata__: metadata = {}, ...entries } = header;
  if (!isRecord(metadata) || !Object.values(metadata).every((value) => typeof value === 'string')) {
    throw new InputError('"__metadata__" must map strings to strings', { file });
  }
  const described = Object.entries(entries).map(([name, entry]) => describe(name, entry, file));
  described.sort((a, b) => a.begin - b.begin || a.end - b.end);
  const tensors = new Map<string, StoredTensor>();
  let expected = 0;
  for (const { name, dtype, shape, begin, end } of described) {
    if (begin !== expected) {
      const problem = begin < expected ? 'overlaps the tensor before it' : 'leaves a gap';
      throw new InputError(`the data begins at byte ${begin} and ${problem}, expected byte ${expected}`, {
        file,
        key: name,
      });
    }
    if (end > data.length) {
      throw new InputError(`the data ends at byte ${end}, but the file has only ${data.length} bytes of data`, {
        file,
        key: name,
      });
    }
    tensors.set(name, { dtype, shape, data: arrayAt(dtype, data, begin, end) });
    expected = end;
  }
  if (expected !== data.length) {
    throw new InputError(`${data.length - expected} bytes at the end belong to no tensor`, { file });
  }
  return { tensors, metadata: metadata as Metadata };
}

/** Reads a safetensors file; a damaged one is rejected. */
export function readSafetensors(path: string): Safetensors {
  return decodeSafetensors(readBytes(path), path);
}

/** Writes the file atomically, without a second copy of the tensors in memory. */
export function writeSafetensors(
  path: string,
  tensors: ReadonlyMap<string, StoredTensor>,
  metadata: Metadata = {},
): void {
  writeFileAtomic(path, pieces(tensors, metadata));
}

const ARRAYS = {
  F64: Float64Array,
  I64: BigInt64Array,
  F32: Float32Array,
  I32: Int32Array,
  U32: Uint32Array,
  F16: Uint16Array,
  BF16: Uint16Array,
  U8: Uint8Array,
  BOOL: Uint8Array,
} as const;

/** Longer headers are rejected, as by the reference implementation. */
const MAX_HEADER = 100_000_000;
const LENGTH_BYTES = 8;
const METADATA = '__metadata__';

function pieces(tensors: ReadonlyMap<string, StoredTensor>, metadata: Metadata): Uint8Array[] {
  // Wide elements first: then every tensor starts at a multiple of its element size.
  const ordered = [...tensors].sort(([, a], [, b]) => elementBytes(b.dtype) - elementBytes(a.dtype));
  // Joined by hand: a JavaScript object would reorder names that look like numbers.
  const fields = Object.keys(metadata).length === 0 ? [] : [`${JSON.stringify(METADATA)}:${JSON.stringify(metadata)}`];
  let begin = 0;
  for (const [name, tensor] of ordered) {
    checkTensor(name, tensor);
    const end = begin + tensor.data.byteLength;
    const entry = { dtype: tensor.dtype, shape: tensor.shape, data_offsets: [begin, end] };
    fields.push(`${JSON.stringify(name)}:${JSON.stringify(entry)}`);
    begin = end;
  }
  const json = Buffer.from(`{${fields.join(',')}}`);
  const header = new Uint8Array(LENGTH_BYTES + Math.ceil(json.length / 8) * 8).fill(0x20);
  new DataView(header.buffer).setBigUint64(0, BigInt(header.length - LENGTH_BYTES), true);
  header.set(json, LENGTH_BYTES);
  return [header, ...ordered.map(([, { data }]) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength))];
}

function checkTensor(name: string, { dtype, shape, data }: StoredTensor): void {
  if (name === METADATA) throw new InputError('a tensor cannot have this name', { key: name });
  if (!(data instanceof ARRAYS[dtype])) {
    throw new InputError(`a ${dtype} tensor needs a ${ARRAYS[dtype].name}, not a ${data.constructor.name}`, {
      key: name,
    });
  }
  if (elementCount(shape) !== data.length) {
    throw new InputError(`the shape [${shape.join(', ')}] does not have ${data.length} elements`, { key: name });
  }
}

function split(
  bytes: Uint8Array<ArrayBuffer>,
  file: string,
): { header: Record<string, unknown>; data: Uint8Array<ArrayBuffer> } {
  if (bytes.length < LENGTH_BYTES) {
    throw new InputError(`the file has ${bytes.length} bytes, too few for the length of a safetensors header`, {
      file,
    });
  }
  const length = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true);
  if (length > BigInt(bytes.length - LENGTH_BYTES)) {
    throw new InputError(
      `the header should have ${length} bytes, but only ${bytes.length - LENGTH_BYTES} follow; ` +
        'the file is cut off or not a safetensors file',
      { file },
    );
  }
  if (length > MAX_HEADER)
    throw new InputError(`the header has ${length} bytes, at most ${MAX_HEADER} are read`, { file });
  const start = LENGTH_BYTES + Number(length);
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(LENGTH_BYTES, start)));
  } catch (error) {
    throw new InputError(`the header is not valid JSON (${(error as Error).message})`, { file });
  }
  if (!isRecord(header)) throw new InputError('the header is not a JSON object', { file });
  return { header, data: bytes.subarray(start) };
}

function describe(
  name: string,
  entry: unknown,
  file: string,
): { name: string; dtype: StoredDtype; shape: number[]; begin: number; end: number } {
  const where = { file, key: name };
  if (!isRecord(entry)) throw new InputError('the header has no description of this tensor', where);
  const { dtype, shape, data_offsets: offsets } = entry;
  if (typeof dtype !== 'string' || !Object.hasOwn(ARRAYS, dtype)) {
    throw new InputError(`unknown dtype ${JSON.stringify(dtype)}, expected ${Object.keys(ARRAYS).join(', ')}`, where);
  }
  if (!isSizes(shape)) throw new InputError(`"shape" is ${JSON.stringify(shape)}, expected whole numbers ≥ 0`, where);
  if (!isSizes(offsets) || offsets.length !== 2 || offsets[0] > offsets[1]) {
    throw new InputError(`"data_offsets" is ${JSON.stringify(offsets)}, expected [begin, end]`, where);
  }
  const [begin, end] = offsets;
  const bytes = elementCount(shape) * elementBytes(dtype as StoredDtype);
  if (bytes !== end - begin) {
    throw new InputError(
      `[${shape.join(', ')}] of ${dtype} takes ${bytes} bytes, but the file has ${end - begin}`,
      where,
    );
  }
  return { name, dtype: dtype as StoredDtype, shape, begin, end };
}

function arrayAt(dtype: StoredDtype, data: Uint8Array<ArrayBuffer>, begin: number, end: number): StoredArray {
  const size = elementBytes(dtype);
  const aligned = (data.byteOffset + begin) % size === 0;
  const bytes = aligned ? data.subarray(begin, end) : data.slice(begin, end);
  return new ARRAYS[dtype](bytes.buffer, bytes.byteOffset, (end - begin) / size);
}

function elementBytes(dtype: StoredDtype): number {
  return ARRAYS[dtype].BYTES_PER_ELEMENT;
}

function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

function isSizes(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((size) => Number.isSafeInteger(size) && size >= 0);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
