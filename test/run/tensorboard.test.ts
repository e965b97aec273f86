import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { InputError } from '../../src/errors.js';
import { crc32c, EventWriter, maskedCrc32c, numbersOf, tfRecord } from '../../src/run/metrics-log.js';
import { temporaryFolder } from './temporary.js';

describe('CRC-32C', () => {
  // The check value of the catalogue of CRCs, and the test patterns of RFC 3720, appendix B.4.
  test.each([
    ['"123456789"', Buffer.from('123456789'), 0xe3069283],
    ['nothing', Buffer.alloc(0), 0],
    ['32 bytes of zeros', Buffer.alloc(32), 0x8a9136aa],
    ['32 bytes of ones', Buffer.alloc(32, 0xff), 0x62a8ab43],
    ['32 rising bytes', Buffer.from(Array.from({ length: 32 }, (_, i) => i)), 0x46dd794e],
    ['32 falling bytes', Buffer.from(Array.from({ length: 32 }, (_, i) => 31 - i)), 0x113fdb5c],
  ])('of %s', (_, bytes, crc) => {
    expect(crc32c(bytes)).toBe(crc);
  });
});

describe('a TFRecord', () => {
  test('is framed by its length and two masked checksums', () => {
    // crc = 0xE3069283 rotated right by 15 is 0x2507C60D; plus 0xA282EAD8 is 0xC78AB0E5.
    expect(maskedCrc32c(Buffer.from('123456789'))).toBe(0xc78ab0e5);
    const record = Buffer.from(tfRecord(Buffer.from('123456789')));
    expect(record.readBigUInt64LE(0)).toBe(9n);
    expect(record.readUInt32LE(8)).toBe(maskedCrc32c(record.subarray(0, 8)));
    expect(record.toString('latin1', 12, 21)).toBe('123456789');
    expect(record.readUInt32LE(21)).toBe(0xc78ab0e5);
    expect(record).toHaveLength(25);
  });
});

describe('an event file', () => {
  test('begins with the version event that every TensorBoard writes', () => {
    const writer = new EventWriter(temporaryFolder(), { now: () => 1 });
    writer.close();
    const bytes = readFileSync(writer.path);
    // wall_time = 1.0: tag 1<<3|1, then 1.0 as f64; file_version: tag 3<<3|2, length 13, text.
    const event = Buffer.concat([
      Buffer.from('09000000000000f03f', 'hex'),
      Buffer.from('1a0d', 'hex'),
      Buffer.from('brain.Event:2'),
    ]);
    // The checksum of the length 24 that the TensorFlow sources' writer puts before every version event of this size.
    expect(bytes.subarray(0, 8)).toEqual(Buffer.from('1800000000000000', 'hex'));
    expect(bytes.subarray(8, 12)).toEqual(Buffer.from('a37f4b22', 'hex'));
    expect(bytes.subarray(12, 36)).toEqual(event);
    expect(writer.path).toMatch(/events\.out\.tfevents\.0000000001\./);
  });

  test('holds scalars under their names, with step and time', () => {
    const writer = new EventWriter(temporaryFolder(), { now: () => 12.5 });
    writer.scalars(300, { loss: 0.5, 'tasks/1': -2 });
    writer.close();
    const [, event] = readEvents(writer.path);
    expect(event.double(1)).toBe(12.5);
    expect(event.int(2)).toBe(300);
    const values = event.message(5).messages(1);
    expect(values.map((value) => [value.string(1), value.float(2)])).toEqual([
      ['loss', 0.5],
      ['tasks/1', -2],
    ]);
  });

  test('of a resumed run makes TensorBoard forget the steps after the checkpoint', () => {
    const writer = new EventWriter(temporaryFolder(), { resumedAt: 40 });
    writer.close();
    const [, event] = readEvents(writer.path);
    expect(event.int(2)).toBe(41);
    expect(event.message(7).int(1)).toBe(1);
  });
});

test('the numbers of a record are found at every depth', () => {
  expect(numbersOf({ loss: 1, name: 'x', none: null, tasks: { a: 2, list: [3, 4] } })).toEqual({
    loss: 1,
    'tasks/a': 2,
    'tasks/list/0': 3,
    'tasks/list/1': 4,
  });
});

/** Reads the records of an event file with all their checksums. */
function readEvents(path: string): Message[] {
  const bytes = readFileSync(path);
  const events: Message[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = Number(bytes.readBigUInt64LE(at));
    expect(bytes.readUInt32LE(at + 8)).toBe(maskedCrc32c(bytes.subarray(at, at + 8)));
    const data = bytes.subarray(at + 12, at + 12 + length);
    expect(bytes.readUInt32LE(at + 12 + length)).toBe(maskedCrc32c(data));
    events.push(new Message(data));
    at += length + 16;
  }
  return events;
}

/** The fields of a protocol buffer, decoded by the wire format alone. */
class Message {
  private readonly fields: { field: number; bytes: Buffer; int: number }[] = [];

  constructor(bytes: Buffer) {
    let at = 0;
    const varint = () => {
      let value = 0;
      for (let shift = 1; ; shift *= 128) {
        const byte = bytes[at++];
        value += (byte & 0x7f) * shift;
        if (byte < 0x80) return value;
      }
    };
    while (at < bytes.length) {
      const tag = varint();
      const [field, wire] = [tag >> 3, tag & 7];
      if (wire === 0) {
        this.fields.push({ field, bytes: Buffer.alloc(0), int: varint() });
        continue;
      }
      const length = wire === 1 ? 8 : wire === 5 ? 4 : varint();
      this.fields.push({ field, bytes: bytes.subarray(at, at + length), int: 0 });
      at += length;
    }
  }

  private one(field: number) {
    const found = this.fields.filter((entry) => entry.field === field);
    expect(found).toHaveLength(1);
    return found[0];
  }

  int = (field: number) => this.one(field).int;
  double = (field: number) => this.one(field).bytes.readDoubleLE();
  float = (field: number) => this.one(field).bytes.readFloatLE();
  string = (field: number) => this.one(field).bytes.toString('utf8');
  message = (field: number) => new Message(this.one(field).bytes);
  messages = (field: number) => this.fields.filter((f) => f.field === field).map((f) => new Message(f.bytes));
  doubles = (field: number) => {
    const { bytes } = this.one(field);
    return Array.from({ length: bytes.length / 8 }, (_, i) => bytes.readDoubleLE(8 * i));
  };
}

test('an event file that the system does not accept any more is said with a sentence', () => {
  const writer = new EventWriter(temporaryFolder());
  writer.close();
  for (const act of [() => writer.sync(), () => writer.scalars(1, { loss: 2 }), () => writer.close()]) {
    expect(act).toThrow(InputError);
    expect(act).toThrow(`${writer.path}: cannot write it: the operating system answered EBADF`);
  }
});

test('two processes that agree in host, number and second have event files of their own', () => {
  const folder = temporaryFolder();
  const writers = [1, 2].map(() => new EventWriter(folder, { now: () => 7 }));
  for (const writer of writers) writer.close();
  expect(new Set(writers.map(({ path }) => path)).size).toBe(2);
});
