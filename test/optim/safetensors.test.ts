import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { InputError } from '../../src/errors.js';
import {
  decodeSafetensors,
  encodeSafetensors,
  readSafetensors,
  type StoredTensor,
  writeSafetensors,
} from '../../src/optim/safetensors.js';

/** A file from a header text, unpadded, and data bytes, as the format's description says. */
function file(header: string, data: readonly number[]): Uint8Array<ArrayBuffer> {
  const json = new TextEncoder().encode(header);
  const length = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => Math.floor(json.length / 2 ** (8 * i)) % 256);
  return Uint8Array.from([...length, ...json, ...data]);
}

const arbitraryTensor: fc.Arbitrary<StoredTensor> = fc
  .record({
    dtype: fc.constantFrom('F32', 'F64', 'I32', 'I64', 'U32', 'U8', 'BOOL'),
    shape: fc.array(fc.nat(4), { maxLength: 3 }),
    bytes: fc.uint8Array({ minLength: 8 * 64, maxLength: 8 * 64 }),
  })
  .map(({ dtype, shape, bytes }) => {
    const count = shape.reduce((product, n) => product * n, 1);
    const { buffer } = bytes.slice();
    switch (dtype) {
      case 'F32':
        return { dtype, shape, data: new Float32Array(buffer, 0, count) };
      case 'F64':
        return { dtype, shape, data: new Float64Array(buffer, 0, count) };
      case 'I32':
        return { dtype, shape, data: new Int32Array(buffer, 0, count) };
      case 'I64':
        return { dtype, shape, data: new BigInt64Array(buffer, 0, count) };
      case 'U32':
        return { dtype, shape, data: new Uint32Array(buffer, 0, count) };
      default:
        return { dtype: dtype as 'U8' | 'BOOL', shape, data: new Uint8Array(buffer, 0, count) };
    }
  });

const arbitraryTensors = fc
  .uniqueArray(
    fc.tuple(
      fc.string({ unit: 'grapheme' }).filter((name) => name !== '__metadata__'),
      arbitraryTensor,
    ),
    { selector: ([name]) => name, maxLength: 6 },
  )
  .map((entries) => new Map(entries));

const arbitraryMetadata = fc.dictionary(fc.string(), fc.string());

describe('the layout', () => {
  // 1.0 is 3f800000, −2.5 is c0200000; little-endian.
  const data = [0x00, 0x00, 0x80, 0x3f, 0x00, 0x00, 0x20, 0xc0, 7];
  // 107 characters, padded with 5 spaces to a multiple of 8.
  const header =
    '{"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[],"data_offsets":[8,9]}}';
  const written = Uint8Array.from([112, 0, 0, 0, 0, 0, 0, 0, ...new TextEncoder().encode(header.padEnd(112)), ...data]);

  it('is written byte for byte as described, with the data aligned', () => {
    const tensors = new Map<string, StoredTensor>([
      ['b', { dtype: 'U8', shape: [], data: Uint8Array.of(7) }],
      ['w', { dtype: 'F32', shape: [1, 2], data: Float32Array.of(1, -2.5) }],
    ]);
    expect(header.length).toBe(107);
    expect(Buffer.from(encodeSafetensors(tensors)).toString('latin1')).toBe(Buffer.from(written).toString('latin1'));
  });

  it('is read, padded or not, at any alignment', () => {
    const shifted = new Uint8Array(written.length + 1);
    shifted.set(written, 1);
    for (const bytes of [written, file(header, data), shifted.subarray(1)]) {
      const { tensors, metadata } = decodeSafetensors(bytes, 'model');
      expect([...tensors.keys()]).toEqual(['w', 'b']);
      expect(tensors.get('w')).toEqual({ dtype: 'F32', shape: [1, 2], data: Float32Array.of(1, -2.5) });
      expect(tensors.get('b')).toEqual({ dtype: 'U8', shape: [], data: Uint8Array.of(7) });
      expect(metadata).toEqual({});
    }
  });

  it('holds metadata as texts', () => {
    const bytes = file('{"__metadata__":{"format":"pt","step":"12"}}', []);
    expect(decodeSafetensors(bytes, 'model')).toEqual({ tensors: new Map(), metadata: { format: 'pt', step: '12' } });
  });

  it('holds 64-bit integers and doubles', () => {
    // −2 in two's complement; 0.5 is 3fe0000000000000.
    const bytes = file(
      '{"i":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},"d":{"dtype":"F64","shape":[1],"data_offsets":[8,16]}}',
      [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f],
    );
    const { tensors } = decodeSafetensors(bytes, 'model');
    expect(tensors.get('i')?.data).toEqual(BigInt64Array.of(-2n));
    expect(tensors.get('d')?.data).toEqual(Float64Array.of(0.5));
  });
});

describe('round trips', () => {
  it('return every tensor and all metadata', () => {
    fc.assert(
      fc.property(arbitraryTensors, arbitraryMetadata, (tensors, metadata) => {
        const decoded = decodeSafetensors(encodeSafetensors(tensors, metadata), 'model');
        expect(Object.entries(decoded.metadata).sort()).toEqual(Object.entries(metadata).sort());
        expect([...decoded.tensors.keys()].sort()).toEqual([...tensors.keys()].sort());
        for (const [name, { dtype, shape, data }] of tensors) {
          const other = decoded.tensors.get(name);
          expect(other).toMatchObject({ dtype, shape });
          expect(bytesOf(other!.data)).toEqual(bytesOf(data));
        }
      }),
    );
  });

  it('start every tensor at a multiple of its element size', () => {
    fc.assert(
      fc.property(arbitraryTensors, (tensors) => {
        const bytes = encodeSafetensors(tensors);
        for (const { data } of decodeSafetensors(bytes, 'model').tensors.values())
          expect(data.buffer).toBe(bytes.buffer);
      }),
    );
  });
});

describe('a corrupt file', () => {
  it('gives an InputError or tensors, never anything else', () => {
    const change = fc.oneof(
      fc.record({ kind: fc.constant('set' as const), at: fc.nat(), byte: fc.nat(255) }),
      fc.record({ kind: fc.constant('cut' as const), at: fc.nat(), byte: fc.nat(255) }),
      fc.record({ kind: fc.constant('insert' as const), at: fc.nat(), byte: fc.nat(255) }),
      fc.record({ kind: fc.constant('digit' as const), at: fc.nat(), byte: fc.nat(9) }),
    );
    fc.assert(
      fc.property(arbitraryTensors, fc.array(change, { minLength: 1, maxLength: 4 }), (tensors, changes) => {
        let bytes = [...encodeSafetensors(tensors, { a: 'b' })];
        for (const { kind, at, byte } of changes) {
          const place = at % (bytes.length + 1);
          if (kind === 'set') bytes[place] = byte;
          if (kind === 'cut') bytes = bytes.slice(0, place);
          if (kind === 'insert') bytes.splice(place, 0, byte);
          // A digit in place of a digit keeps the JSON valid, so the checks behind it are reached.
          const digit = bytes.findIndex((b, i) => i >= place && i >= 8 && b >= 0x30 && b <= 0x39);
          if (kind === 'digit' && digit >= 0) bytes[digit] = 0x30 + byte;
        }
        try {
          decodeSafetensors(Uint8Array.from(bytes), 'model');
        } catch (error) {
          expect(error).toBeInstanceOf(InputError);
          expect((error as InputError).where.file).toBe('model');
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('gives an InputError for bytes that were never a safetensors file', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(() => decodeSafetensors(Uint8Array.from(bytes), 'model')).toThrow(InputError);
      }),
    );
  });

  const f32 = (shape: string, offsets: string) => `{"dtype":"F32","shape":${shape},"data_offsets":${offsets}}`;
  const eight = [0, 0, 0, 0, 0, 0, 0, 0];
  it.each<[string, Uint8Array<ArrayBuffer>, string]>([
    ['an empty file', new Uint8Array(0), 'model: the file has 0 bytes, too few'],
    [
      'a header longer than the file',
      file('{}', []).subarray(0, 9),
      'the header should have 2 bytes, but only 1 follow',
    ],
    ['a huge header length', new Uint8Array(16).fill(255), 'the header should have 18446744073709551615 bytes'],
    ['invalid JSON', file('{"a":', []), 'the header is not valid JSON'],
    ['invalid UTF-8', Uint8Array.from([2, 0, 0, 0, 0, 0, 0, 0, 0xc3, 0x28]), 'the header is not valid JSON'],
    ['a header that is a list', file('[]', []), 'the header is not a JSON object'],
    ['metadata that is not text', file('{"__metadata__":{"a":1}}', []), '"__metadata__" must map strings to strings'],
    ['an entry that is no description', file('{"a":3}', []), 'model: a: the header has no description'],
    ['an unknown dtype', file('{"a":{"dtype":"F99","shape":[],"data_offsets":[0,4]}}', eight), 'unknown dtype "F99"'],
    [
      'a dtype out of the prototype',
      file('{"a":{"dtype":"toString","shape":[],"data_offsets":[0,4]}}', eight),
      'unknown',
    ],
    ['a negative size', file(`{"a":${f32('[-1]', '[0,4]')}}`, eight), '"shape" is [-1]'],
    ['a fractional size', file(`{"a":${f32('[0.5]', '[0,4]')}}`, eight), '"shape" is [0.5]'],
    ['offsets in reverse', file(`{"a":${f32('[1]', '[4,0]')}}`, eight), '"data_offsets" is [4,0]'],
    ['one offset', file(`{"a":${f32('[1]', '[4]')}}`, eight), '"data_offsets" is [4]'],
    [
      'too few bytes for the shape',
      file(`{"a":${f32('[3]', '[0,8]')}}`, eight),
      '[3] of F32 takes 12 bytes, but the file has 8',
    ],
    [
      'an overflowing shape',
      file(`{"a":${f32('[9007199254740991,9007199254740991]', '[0,8]')}}`, eight),
      'but the file has 8',
    ],
    [
      'a gap',
      file(`{"a":${f32('[1]', '[4,8]')}}`, eight),
      'a: the data begins at byte 4 and leaves a gap, expected byte 0',
    ],
    [
      'an overlap',
      file(`{"a":${f32('[1]', '[0,4]')},"b":${f32('[1]', '[2,6]')}}`, eight),
      'b: the data begins at byte 2 and overlaps the tensor before it, expected byte 4',
    ],
    [
      'a cut',
      file(`{"a":${f32('[2]', '[0,8]')}}`, eight.slice(1)),
      'ends at byte 8, but the file has only 7 bytes of data',
    ],
    ['bytes too many', file(`{"a":${f32('[1]', '[0,4]')}}`, eight), '4 bytes at the end belong to no tensor'],
    ['a repeated name', file(`{"a":${f32('[1]', '[0,4]')},"a":${f32('[1]', '[4,8]')}}`, eight), 'leaves a gap'],
  ])('with %s is refused with the reason', (_, bytes, message) => {
    expect(() => decodeSafetensors(bytes, 'model')).toThrow(InputError);
    expect(() => decodeSafetensors(bytes, 'model')).toThrow(message);
  });
});

describe('encode', () => {
  it.each<[string, string, object]>([
    ['a wrong number of elements', 'a', { dtype: 'F32', shape: [3], data: new Float32Array(2) }],
    ['an array of another type', 'a', { dtype: 'F32', shape: [2], data: new Float64Array(2) }],
    ['the name of the metadata', '__metadata__', { dtype: 'U8', shape: [0], data: new Uint8Array(0) }],
  ])('refuses %s, naming the tensor', (_, name, tensor) => {
    expect(() => encodeSafetensors(new Map([[name, tensor as StoredTensor]]))).toThrow(`${name}: `);
  });
});

describe('files', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'tcts-safetensors-'));
  });
  afterAll(() => {
    rmSync(folder, { recursive: true });
  });

  it('hold what is encoded, and are read back', () => {
    const tensors = new Map<string, StoredTensor>([
      ['x', { dtype: 'I32', shape: [3], data: Int32Array.of(1, -2, 3) }],
      ['y', { dtype: 'BOOL', shape: [2], data: Uint8Array.of(0, 1) }],
    ]);
    const path = join(folder, 'model.safetensors');
    writeSafetensors(path, tensors, { step: '3' });
    expect(Buffer.compare(readFileSync(path), encodeSafetensors(tensors, { step: '3' }))).toBe(0);
    expect(readSafetensors(path)).toEqual({ tensors, metadata: { step: '3' } });
  });

  it('that are missing or damaged are named', () => {
    const path = join(folder, 'broken.safetensors');
    writeFileSync(path, 'not tensors at all');
    expect(() => readSafetensors(path)).toThrow(`${path}: the header should have`);
    expect(() => readSafetensors(join(folder, 'none'))).toThrow(`${join(folder, 'none')}: cannot read it`);
  });
});

function bytesOf(data: StoredTensor['data']): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice();
}
