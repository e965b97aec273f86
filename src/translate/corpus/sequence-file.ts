import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { InputError } from '../../errors.js';
import { fileError, readBytes } from '../../files.js';

/**
 * Sequences of token ids on disk, in fairseq's memory-mapped layout, so that either tool reads the other's files.
 * `PREFIX.bin` holds the ids of all sequences one after the other; `PREFIX.idx` is, little-endian and without padding:
 * the 9 bytes `MMIDIDX\0\0`, u64 version 1, u8 code of the id type, u64 N, N × i32 lengths, N × i64 byte offsets.
 *
 * The lengths and offsets are kept in memory (12 bytes a sequence), the ids are read where they are needed: the
 * operating system's cache does what a memory map would.
 */
export class SequenceFile {
  private constructor(
    private readonly file: number,
    private readonly path: string,
    private readonly type: IdType,
    /** Length of each sequence, the end of the sentence included. */
    readonly lengths: Int32Array,
    private readonly offsets: Float64Array,
  ) {}

  static open(prefix: string): SequenceFile {
    const { type, lengths, offsets } = readIndex(`${prefix}.idx`);
    const path = `${prefix}.bin`;
    let file: number;
    try {
      file = openSync(path, 'r');
    } catch (error) {
      throw fileError(error, 'read', path);
    }
    const { size } = fstatSync(file);
    const end = lengths.reduce((most, n, i) => Math.max(most, offsets[i] + n * type.bytes), 0);
    if (end > size) {
      closeSync(file);
      throw new InputError(`the file has ${size} bytes, expected at least ${end} by its index`, { file: path });
    }
    return new SequenceFile(file, path, type, lengths, offsets);
  }

  get count(): number {
    return this.lengths.length;
  }

  /** The ids of sequence `i`. */
  read(i: number): Int32Array {
    const { type, lengths, offsets } = this;
    const bytes = Buffer.allocUnsafe(lengths[i] * type.bytes);
    const got = readSync(this.file, bytes, 0, bytes.length, offsets[i]);
    if (got !== bytes.length) throw new InputError(`sequence ${i} is cut off`, { file: this.path });
    const ids = new Int32Array(lengths[i]);
    for (let k = 0; k < ids.length; k++) ids[k] = type.read(bytes, k * type.bytes);
    return ids;
  }

  close(): void {
    closeSync(this.file);
  }
}

export interface IdType {
  /** Its number in the index. */
  readonly code: number;
  readonly bytes: number;
  read(bytes: Buffer, at: number): number;
  write(bytes: Buffer, id: number, at: number): void;
}

const uint16: IdType = {
  code: 8,
  bytes: 2,
  read: (bytes, at) => bytes.readUInt16LE(at),
  write: (bytes, id, at) => bytes.writeUInt16LE(id, at),
};

const int32: IdType = {
  code: 4,
  bytes: 4,
  read: (bytes, at) => bytes.readInt32LE(at),
  write: (bytes, id, at) => bytes.writeInt32LE(id, at),
};

const int64: IdType = {
  code: 5,
  bytes: 8,
  read: (bytes, at) => Number(bytes.readBigInt64LE(at)),
  write: (bytes, id, at) => bytes.writeBigInt64LE(BigInt(id), at),
};

/** The type fairseq chooses for a vocabulary. */
export function idTypeFor(vocabularySize: number): IdType {
  return vocabularySize < 65500 ? uint16 : int32;
}

export const magic = Buffer.from('MMIDIDX\0\0', 'latin1');
export const headerBytes = magic.length + 8 + 1 + 8;

function readIndex(path: string): { type: IdType; lengths: Int32Array; offsets: Float64Array } {
  const content = readBytes(path);
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.length);
  const fail = (sentence: string): InputError => new InputError(sentence, { file: path });
  if (bytes.length < headerBytes || !bytes.subarray(0, magic.length).equals(magic)) {
    throw fail('not an index of memory-mapped sequences (it should begin with MMIDIDX)');
  }
  const version = bytes.readBigUInt64LE(magic.length);
  if (version !== 1n) throw fail(`version ${version} is not known, expected 1`);
  const code = bytes[magic.length + 8];
  const type = [uint16, int32, int64].find((candidate) => candidate.code === code);
  if (!type) throw fail(`ids of type ${code} are not known, expected 8 (uint16), 4 (int32) or 5 (int64)`);
  const count = Number(bytes.readBigUInt64LE(magic.length + 9));
  const expected = headerBytes + count * 12;
  if (bytes.length !== expected) throw fail(`the file has ${bytes.length} bytes, expected ${expected} for ${count}`);

  const lengths = new Int32Array(count);
  const offsets = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    lengths[i] = bytes.readInt32LE(headerBytes + 4 * i);
    offsets[i] = Number(bytes.readBigInt64LE(headerBytes + 4 * count + 8 * i));
    if (lengths[i] < 0 || offsets[i] < 0) throw fail(`sequence ${i} has a negative length or offset`);
  }
  return { type, lengths, offsets };
}
