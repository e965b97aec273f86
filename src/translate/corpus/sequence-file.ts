import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { InputError } from '../../errors.js';
import { fileError, readBytes, writeFileAtomic } from '../../files.js';

/**
 * Sequences of token ids on disk, in fairseq's memory-mapped layout, so either tool can read the other's files.
 * `PREFIX.bin` holds the ids of all sequences one after the other; `PREFIX.idx` is, little-endian and without padding:
 * the 9 bytes `MMIDIDX\0\0`, u64 version 1, u8 code of the id type, u64 N, N × i32 lengths, N × i64 byte offsets.
 *
 * The lengths and offsets are kept in memory (12 bytes per sequence), the ids are read when needed: the
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
const headerBytes = magic.length + 8 + 1 + 8;

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

/** How much of a file is complete: where to continue after an interruption. */
export interface WrittenSequences {
  readonly sequences: number;
  readonly ids: number;
}

/**
 * Writes a `SequenceFile` in constant memory. Until `finish`, ids and lengths grow in `PREFIX.bin.part` and
 * `PREFIX.len.part`; given what was complete at the last `flush`, a new writer cuts off the rest and continues.
 */
export class SequenceWriter {
  private readonly ids: AppendedFile;
  private readonly lengths: AppendedFile;
  private written: WrittenSequences;

  constructor(
    private readonly prefix: string,
    private readonly type: IdType,
    resume: WrittenSequences = { sequences: 0, ids: 0 },
  ) {
    this.written = resume;
    this.ids = new AppendedFile(`${prefix}.bin.part`, resume.ids * type.bytes);
    this.lengths = new AppendedFile(`${prefix}.len.part`, resume.sequences * 4);
  }

  append(ids: ArrayLike<number>): void {
    const { type } = this;
    const bytes = this.ids.reserve(ids.length * type.bytes);
    for (let i = 0; i < ids.length; i++) type.write(bytes, ids[i], i * type.bytes);
    this.lengths.reserve(4).writeInt32LE(ids.length);
    this.written = { sequences: this.written.sequences + 1, ids: this.written.ids + ids.length };
  }

  /** Flushes everything appended so far to disk. */
  flush(): WrittenSequences {
    this.ids.sync();
    this.lengths.sync();
    return this.written;
  }

  finish(): void {
    this.flush();
    this.ids.close();
    this.lengths.close();
    renameSync(`${this.prefix}.bin.part`, `${this.prefix}.bin`);
    writeFileAtomic(`${this.prefix}.idx`, this.index());
    rmSync(`${this.prefix}.len.part`);
  }

  /** Closes the files so that writing can resume. */
  close(): void {
    this.ids.close();
    this.lengths.close();
  }

  private *index(): Generator<Uint8Array> {
    const { sequences } = this.written;
    const header = Buffer.alloc(headerBytes);
    magic.copy(header);
    header.writeBigUInt64LE(1n, magic.length);
    header[magic.length + 8] = this.type.code;
    header.writeBigUInt64LE(BigInt(sequences), magic.length + 9);
    yield header;
    const path = `${this.prefix}.len.part`;
    yield* pieces(path);
    let offset = 0n;
    for (const lengths of pieces(path)) {
      const offsets = Buffer.alloc(lengths.length * 2);
      for (let i = 0; i < lengths.length; i += 4) {
        offsets.writeBigInt64LE(offset, i * 2);
        offset += BigInt(lengths.readInt32LE(i) * this.type.bytes);
      }
      yield offsets;
    }
  }
}

/** Whether a writer's unfinished files hold at least these sequences, so that a new writer can continue from them. */
export function holds(prefix: string, type: IdType, { sequences, ids }: WrittenSequences): boolean {
  const size = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? -1;
  return size(`${prefix}.bin.part`) >= ids * type.bytes && size(`${prefix}.len.part`) >= sequences * 4;
}

const bufferBytes = 1 << 20;

/** A file that is appended to through a buffer. */
class AppendedFile {
  private readonly file: number;
  private buffer = Buffer.allocUnsafe(bufferBytes);
  private used = 0;
  private position: number;

  constructor(
    private readonly path: string,
    bytes: number,
  ) {
    try {
      this.file = openSync(path, existsSync(path) ? 'r+' : 'w+');
      ftruncateSync(this.file, bytes);
      this.position = bytes;
    } catch (error) {
      throw fileError(error, 'write', path);
    }
  }

  /** The next `bytes` bytes of the file, to be filled in before the next call. */
  reserve(bytes: number): Buffer {
    if (this.used + bytes > this.buffer.length) {
      this.write();
      if (bytes > this.buffer.length) this.buffer = Buffer.allocUnsafe(bytes);
    }
    this.used += bytes;
    return this.buffer.subarray(this.used - bytes, this.used);
  }

  sync(): void {
    this.write();
    fsyncSync(this.file);
  }

  close(): void {
    closeSync(this.file);
  }

  private write(): void {
    try {
      for (let done = 0; done < this.used; ) {
        done += writeSync(this.file, this.buffer, done, this.used - done, this.position + done);
      }
    } catch (error) {
      throw fileError(error, 'write', this.path);
    }
    this.position += this.used;
    this.used = 0;
  }
}

function* pieces(path: string): Generator<Buffer> {
  const file = openSync(path, 'r');
  try {
    for (;;) {
      const piece = Buffer.allocUnsafe(bufferBytes);
      const count = readSync(file, piece, 0, bufferBytes, null);
      if (count === 0) return;
      yield piece.subarray(0, count);
    }
  } finally {
    closeSync(file);
  }
}
