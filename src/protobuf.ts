/**
 * Writer of the protocol-buffer wire format (https://protobuf.dev/programming-guides/encoding/), to the extent that
 * ONNX models and TensorBoard events need it. It writes exactly the given fields in the given order: leaving out a
 * field that has its default value is the caller's choice.
 *
 * ```ts
 * const node = new ProtoWriter().string(4, 'MatMul');
 * const graph = new ProtoWriter().message(1, node).message(1, (w) => w.string(4, 'Add')).finish();
 * ```
 */
export class ProtoWriter {
  /** Finished pieces, in order; `buffer[start, end)` is the piece still being written. */
  private readonly pieces: Uint8Array[] = [];
  private piecesLength = 0;
  private buffer = new Uint8Array(64);
  private view = new DataView(this.buffer.buffer);
  private start = 0;
  private end = 0;

  /** Bytes written so far. */
  get length(): number {
    return this.piecesLength + this.end - this.start;
  }

  /** int32, int64, uint32, uint64, bool and enum. Negative values take ten bytes (64-bit two's complement). */
  varint(field: number, value: number | bigint): this {
    this.tag(field, VARINT);
    return this.rawVarint(value);
  }

  bool(field: number, value: boolean): this {
    return this.varint(field, value ? 1 : 0);
  }

  fixed32(field: number, value: number): this {
    this.tag(field, FIXED32);
    this.reserve(4);
    this.view.setUint32(this.end, value, true);
    this.end += 4;
    return this;
  }

  fixed64(field: number, value: bigint): this {
    this.tag(field, FIXED64);
    this.reserve(8);
    this.view.setBigUint64(this.end, value, true);
    this.end += 8;
    return this;
  }

  float(field: number, value: number): this {
    this.tag(field, FIXED32);
    this.reserve(4);
    this.view.setFloat32(this.end, value, true);
    this.end += 4;
    return this;
  }

  double(field: number, value: number): this {
    this.tag(field, FIXED64);
    this.reserve(8);
    this.view.setFloat64(this.end, value, true);
    this.end += 8;
    return this;
  }

  /** A large `value` is kept by reference until `finish`, so that it is copied only once: do not change it before. */
  bytes(field: number, value: Uint8Array): this {
    this.tag(field, LENGTH_DELIMITED).rawVarint(value.length);
    return this.append(value);
  }

  string(field: number, value: string): this {
    return this.bytes(field, utf8.encode(value));
  }

  /** A nested message: a complete writer, or a function that fills a new one. */
  message(field: number, content: ProtoWriter | ((writer: ProtoWriter) => void)): this {
    const inner = content instanceof ProtoWriter ? content : new ProtoWriter();
    if (typeof content === 'function') content(inner);
    this.tag(field, LENGTH_DELIMITED).rawVarint(inner.length);
    for (const piece of inner.pieces) this.append(piece);
    return this.append(inner.buffer.subarray(inner.start, inner.end));
  }

  /** `repeated int64` (also int32, uint64, bool, enum), packed. */
  packedInt64(field: number, values: Iterable<number | bigint>): this {
    const inner = new ProtoWriter();
    for (const value of values) inner.rawVarint(value);
    return this.message(field, inner);
  }

  /** `repeated float`, packed. */
  packedFloat(field: number, values: ArrayLike<number>): this {
    const data = new DataView(new ArrayBuffer(4 * values.length));
    for (let i = 0; i < values.length; i++) data.setFloat32(4 * i, values[i], true);
    return this.bytes(field, new Uint8Array(data.buffer));
  }

  /** The message, in its own array. More may be written, and the writer finished again. */
  finish(): Uint8Array {
    const message = new Uint8Array(this.length);
    let at = 0;
    for (const piece of this.pieces) {
      message.set(piece, at);
      at += piece.length;
    }
    message.set(this.buffer.subarray(this.start, this.end), at);
    return message;
  }

  private tag(field: number, wireType: number): this {
    if (!Number.isInteger(field) || field < 1 || field >= 2 ** 29) {
      throw new RangeError(`protobuf field number ${field} is not between 1 and 2^29 - 1`);
    }
    return this.rawVarint(field * 8 + wireType);
  }

  private rawVarint(value: number | bigint): this {
    this.reserve(10);
    if (typeof value === 'bigint' || value < 0) return this.rawVarint64(BigInt.asUintN(64, BigInt(value)));
    if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is not an integer that a varint can hold exactly`);
    let rest = value;
    while (rest > 0x7f) {
      this.buffer[this.end++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.buffer[this.end++] = rest;
    return this;
  }

  private rawVarint64(value: bigint): this {
    let rest = value;
    while (rest > 0x7fn) {
      this.buffer[this.end++] = Number(rest & 0x7fn) | 0x80;
      rest >>= 7n;
    }
    this.buffer[this.end++] = Number(rest);
    return this;
  }

  private append(bytes: Uint8Array): this {
    if (bytes.length >= KEEP_BY_REFERENCE) {
      this.cut();
      this.pieces.push(bytes);
      this.piecesLength += bytes.length;
    } else {
      this.reserve(bytes.length);
      this.buffer.set(bytes, this.end);
      this.end += bytes.length;
    }
    return this;
  }

  /** Ends the current piece, so that the next thing written comes after it. */
  private cut(): void {
    if (this.end === this.start) return;
    this.pieces.push(this.buffer.subarray(this.start, this.end));
    this.piecesLength += this.end - this.start;
    this.start = this.end;
  }

  private reserve(bytes: number): void {
    if (this.end + bytes <= this.buffer.length) return;
    const open = this.buffer.subarray(this.start, this.end);
    this.buffer = new Uint8Array(Math.max(2 * (open.length + bytes), 256));
    this.buffer.set(open);
    this.view = new DataView(this.buffer.buffer);
    this.start = 0;
    this.end = open.length;
  }
}

const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;
const FIXED32 = 5;

/** From this size in bytes, a second copy costs more than another piece. */
const KEEP_BY_REFERENCE = 4096;

const utf8 = new TextEncoder();
