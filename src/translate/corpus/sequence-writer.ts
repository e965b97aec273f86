import {
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { fileError, writeFileAtomic } from '../../files.js';
import { headerBytes, type IdType, magic } from './sequence-file.js';

/** How much of a file is complete: where to go on after an interruption. */
export interface WrittenSequences {
  readonly sequences: number;
  readonly ids: number;
}

/**
 * Writes a `SequenceFile` in constant memory. Until `finish`, ids and lengths grow in `PREFIX.bin.part` and
 * `PREFIX.len.part`; given what was complete at the last `flush`, a new writer cuts off the rest and goes on.
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

  /** Everything appended so far is on the disk when this returns. */
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

  /** Leaves the files as they are, to be resumed. */
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

/** The unfinished files of a writer hold at least these sequences, so that a new writer can go on from them. */
export function holds(prefix: string, type: IdType, { sequences, ids }: WrittenSequences): boolean {
  const size = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? -1;
  return size(`${prefix}.bin.part`) >= ids * type.bytes && size(`${prefix}.len.part`) >= sequences * 4;
}

const bufferBytes = 1 << 20;

/** A file that grows at its end through a buffer. */
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
