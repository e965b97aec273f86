import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ProtoWriter } from '../src/protobuf.js';

describe('the wire format', () => {
  // The byte strings of the first three tests are the worked examples of the encoding guide at protobuf.dev.
  test('an int32 field 1 of value 150 is 08 96 01', () => {
    expect(hex(new ProtoWriter().varint(1, 150))).toBe('08 96 01');
  });

  test('a string field 2 "testing" is 12 07 and its bytes', () => {
    expect(hex(new ProtoWriter().string(2, 'testing'))).toBe('12 07 74 65 73 74 69 6e 67');
  });

  test('a nested message in field 3, given as a writer or as a function, is 1a 03 08 96 01', () => {
    expect(hex(new ProtoWriter().message(3, (w) => w.varint(1, 150)))).toBe('1a 03 08 96 01');
    expect(hex(new ProtoWriter().message(3, new ProtoWriter().varint(1, 150)))).toBe('1a 03 08 96 01');
  });

  test('packed integers 3, 270, 86942 in field 6 share one tag', () => {
    expect(hex(new ProtoWriter().packedInt64(6, [3, 270, 86942]))).toBe('32 06 03 8e 02 9e a7 05');
  });

  test('a negative integer is its 64-bit two’s complement', () => {
    expect(hex(new ProtoWriter().varint(1, -2))).toBe('08 fe ff ff ff ff ff ff ff ff 01');
    expect(hex(new ProtoWriter().varint(1, -2n))).toBe('08 fe ff ff ff ff ff ff ff ff 01');
  });

  test('fixed-width numbers are little endian', () => {
    expect(hex(new ProtoWriter().float(1, 1))).toBe('0d 00 00 80 3f');
    expect(hex(new ProtoWriter().double(1, 1))).toBe('09 00 00 00 00 00 00 f0 3f');
    expect(hex(new ProtoWriter().fixed32(1, 0x01020304))).toBe('0d 04 03 02 01');
    expect(hex(new ProtoWriter().fixed64(1, 0x0102n))).toBe('09 02 01 00 00 00 00 00 00');
    expect(hex(new ProtoWriter().packedFloat(1, [1, -2]))).toBe('0a 08 00 00 80 3f 00 00 00 c0');
    expect(hex(new ProtoWriter().bool(1, true))).toBe('08 01');
  });

  test('a field number above 15 takes a longer tag', () => {
    // 16 << 3 | 0 = 128 = 0x80 0x01 as a varint.
    expect(hex(new ProtoWriter().varint(16, 1))).toBe('80 01 01');
  });

  test('numbers that a varint cannot hold exactly, and impossible field numbers, are refused', () => {
    expect(() => new ProtoWriter().varint(1, 1.5)).toThrow(RangeError);
    expect(() => new ProtoWriter().varint(1, 2 ** 60)).toThrow(RangeError);
    expect(() => new ProtoWriter().varint(1, Number.NaN)).toThrow(RangeError);
    expect(() => new ProtoWriter().varint(0, 1)).toThrow(RangeError);
  });
});

describe('any tree of fields', () => {
  type Tree = number | bigint | Uint8Array | Tree[];
  const tree: fc.Arbitrary<Tree> = fc.letrec<{ tree: Tree }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      fc.maxSafeNat(),
      fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
      // Lengths on both sides of the size from which bytes are kept by reference.
      fc
        .oneof(fc.nat(200), fc.integer({ min: 4000, max: 9000 }))
        .map((n) => Uint8Array.from({ length: n }, (_, i) => i % 251)),
      fc.array(tie('tree'), { maxLength: 6 }),
    ),
  })).tree;

  test('is read back by a reader that knows only the wire format', () => {
    fc.assert(
      fc.property(fc.array(tree, { maxLength: 8 }), (fields) => {
        const bytes = write(new ProtoWriter(), fields).finish();
        expect(check(bytes, fields)).toBe(true);
      }),
    );

    function write(writer: ProtoWriter, fields: Tree[]): ProtoWriter {
      fields.forEach((field, i) => {
        if (typeof field === 'number' || typeof field === 'bigint') writer.varint(i + 1, field);
        else if (field instanceof Uint8Array) writer.bytes(i + 1, field);
        else if (i % 2 === 0) writer.message(i + 1, write(new ProtoWriter(), field));
        else writer.message(i + 1, (inner) => write(inner, field));
      });
      return writer;
    }

    function check(bytes: Uint8Array, fields: Tree[]): boolean {
      let at = 0;
      const varint = () => {
        let value = 0n;
        for (let shift = 0n; ; shift += 7n) {
          const byte = bytes[at++];
          value |= BigInt(byte & 0x7f) << shift;
          if (byte < 0x80) return value;
        }
      };
      fields.forEach((field, i) => {
        const tag = Number(varint());
        expect(tag >> 3).toBe(i + 1);
        if (typeof field === 'number' || typeof field === 'bigint') {
          expect(varint()).toBe(BigInt(field));
        } else {
          const length = Number(varint());
          const content = bytes.subarray(at, at + length);
          at += length;
          if (field instanceof Uint8Array) expect(Buffer.compare(content, field)).toBe(0);
          else check(content, field);
        }
      });
      expect(at).toBe(bytes.length);
      return true;
    }
  });

  test('a writer goes on after finish, and its length is the length of its bytes', () => {
    const writer = new ProtoWriter().bytes(1, new Uint8Array(5000));
    expect(writer.finish().length).toBe(writer.length);
    expect(hex(writer.varint(2, 1)).slice(-5)).toBe('10 01');
  });
});

function hex(writer: ProtoWriter): string {
  return Array.from(writer.finish(), (byte) => byte.toString(16).padStart(2, '0')).join(' ');
}
