import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InputError } from '../../src/errors.js';
import { PickleGlobal, PickleObject, readPickle } from '../../src/optim/pickle.js';
import { openTorchFile, TorchTensor, widened } from '../../src/optim/torch-file.js';
import { temporaryFolder } from '../run/temporary.js';

const vectors = fileURLToPath(new URL('../vectors/', import.meta.url));

/** A pickle from bytes and texts. */
const pickle = (...parts: (number | string)[]): Uint8Array =>
  Buffer.concat(parts.map((part) => (typeof part === 'number' ? Buffer.of(part) : Buffer.from(part, 'latin1'))));

const unpickled = (...parts: (number | string)[]): unknown => readPickle(pickle(...parts), { file: 'a.pkl' }).value;

describe('a pickle', () => {
  it('gives plain data', () => {
    // pickle.dumps(…, protocol=2) of Python 3.11.
    expect(unpickled(0x80, 2, 'K', 7, '.')).toBe(7);
    expect(unpickled(0x80, 2, 'J\xfe\xff\xff\xff.')).toBe(-2);
    expect(unpickled(0x80, 2, '\x8a\x05\x00\x00\x00\x00\xff.')).toBe(-(2 ** 32));
    expect(unpickled(0x80, 2, '\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01.')).toBe(2n ** 64n);
    expect(unpickled(0x80, 2, 'G\x3f\xf8\x00\x00\x00\x00\x00\x00.')).toBe(1.5);
    expect(unpickled(0x80, 2, 'X\x03\x00\x00\x00a\xc3\xa9q\x00.')).toBe('aé');
    expect(unpickled(0x80, 2, ']q\x00(K\x01\x88Ne.')).toEqual([1, true, null]);
    expect(unpickled(0x80, 2, '}q\x00X\x01\x00\x00\x00aq\x01K\x01K\x02\x86q\x02s.')).toEqual(new Map([['a', [1, 2]]]));
    // The same object twice.
    expect(unpickled(0x80, 2, ']q\x00(]q\x01h\x01e.')).toEqual([[], []]);
    // collections.OrderedDict([('a', 1)]), argparse.Namespace(a=1)
    const ordered = 'ccollections\nOrderedDict\n)R(X\x01\x00\x00\x00aK\x01u.';
    expect(unpickled(0x80, 2, ordered)).toEqual(new Map([['a', 1]]));
    const space = unpickled(0x80, 2, 'cargparse\nNamespace\n)\x81}X\x01\x00\x00\x00aK\x01sb.') as PickleObject;
    expect(space).toBeInstanceOf(PickleObject);
    expect(space.type).toEqual(new PickleGlobal('argparse', 'Namespace'));
    expect(space.attributes).toEqual(new Map([['a', 1]]));
  });

  it.each([
    ['cos\nsystem\nX\x04\x00\x00\x00true\x85R.', 'os.system'],
    ['cposix\nsystem\nX\x04\x00\x00\x00true\x85R.', 'posix.system'],
    ['c__builtin__\neval\nX\x01\x00\x00\x001\x85R.', '__builtin__.eval'],
    ['\x8c\x0asubprocess\x8c\x05Popen\x93.', 'subprocess.Popen'],
  ])('runs nothing: %j', (code, name) => {
    expect(() => unpickled(0x80, 2, code)).toThrow(
      `a.pkl: not a pickle of tensors and plain data: it names ${name}, which is neither plain data nor a tensor`,
    );
  });

  it.each([
    ['', 'it is cut off'],
    ['K', 'it is cut off'],
    ['.', 'its stack is empty'],
    ['h\x07.', 'it refers to the value 7, which it does not have'],
    ['\xff.', 'the operation 0xff at byte 2 is not known'],
    ['K\x01K\x02R.', 'it calls what is not a function'],
    ['K\x01Q.', 'it refers to something outside'],
  ])('that is none is refused: %j', (code, sentence) => {
    expect(() => unpickled(0x80, 2, code)).toThrow(sentence);
  });
});

describe('a file of torch.save', () => {
  let scratch: string | undefined;
  const opened = (bytes: Uint8Array): unknown => {
    scratch ??= temporaryFolder();
    const path = join(scratch, 'a.pt');
    writeFileSync(path, bytes);
    const file = openTorchFile(path);
    const { value } = file;
    file.close();
    return value;
  };

  it.each(['checkpoint_best.pt', 'legacy.pt'])('is read: %s', (name) => {
    const file = openTorchFile(join(vectors, 'fairseq', name));
    const state = (file.value as Map<string, Map<string, TorchTensor>>).get('model')!;
    const table = state.get('decoder.embed_tokens.weight')!;
    expect(table).toBeInstanceOf(TorchTensor);
    expect(table.shape).toEqual([12, 8]);
    const numbers = file.floats(table);
    // Row 1 is that of the padding.
    expect([...numbers.subarray(8, 16)]).toEqual(new Array(8).fill(0));
    // A view of it: column 3, every second row.
    const column = file.floats(new TorchTensor(table.storage, table.offset + 3, [6], [16]));
    expect([...column]).toEqual([0, 2, 4, 6, 8, 10].map((row) => numbers[8 * row + 3]));
    file.close();
  });

  it('that is cut off or changed is refused or read, and nothing else happens', () => {
    for (const name of ['checkpoint_best.pt', 'legacy.pt']) {
      const whole = readFileSync(join(vectors, 'fairseq', name));
      fc.assert(
        fc.property(fc.nat(whole.length - 1), (length) => {
          try {
            opened(whole.subarray(0, length));
          } catch (error) {
            if (!(error instanceof InputError)) throw error;
            return true;
          }
          return name === 'legacy.pt'; // whose last storages are read when they are asked for
        }),
        { numRuns: 60 },
      );
      fc.assert(
        fc.property(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
          const bytes = Uint8Array.from(whole);
          bytes[at] ^= change;
          try {
            opened(bytes);
          } catch (error) {
            if (!(error instanceof InputError)) throw error;
          }
        }),
        { numRuns: 100 },
      );
    }
    expect(() => opened(Buffer.from('not a checkpoint'))).toThrow(/neither as a zip archive nor as a pickle/);
  });

  it('may hold numbers of 16 bits', () => {
    // IEEE 754 half precision: 1, −2, 65504, the smallest, infinity, 1/3 to 11 bits; bfloat16: 1, −2, 3.140625.
    const half = widened(Uint16Array.of(0x3c00, 0xc000, 0x7bff, 0x0001, 0x7c00, 0x3555), 'F16');
    expect([...half]).toEqual([1, -2, 65504, 2 ** -24, Number.POSITIVE_INFINITY, 0.333251953125]);
    expect([...widened(Uint16Array.of(0x3f80, 0xc000, 0x4049), 'BF16')]).toEqual([1, -2, 3.140625]);
  });
});
