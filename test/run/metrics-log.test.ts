import { appendFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InputError } from '../../src/errors.js';
import { MetricsLog, readMetrics } from '../../src/run/index.js';
import { temporaryFolder } from './temporary.js';

const records = fc.array(fc.dictionary(fc.string(), fc.oneof(fc.integer(), fc.string(), fc.double(), fc.boolean())));

describe('the log', () => {
  test('has one JSON object a line', () => {
    const path = join(temporaryFolder(), 'metrics.jsonl');
    const log = new MetricsLog(path);
    log.append({ step: 1, loss: 0.5, tasks: Float32Array.from([0.25, 0.75]), note: 'two\nlines' });
    log.append({ step: 2, loss: Number.NaN });
    log.close();
    expect(readFileSync(path, 'utf8')).toBe(
      '{"step":1,"loss":0.5,"tasks":[0.25,0.75],"note":"two\\nlines"}\n{"step":2,"loss":null}\n',
    );
  });

  test('goes on from a length it had, and forgets the rest', () => {
    const path = join(temporaryFolder(), 'metrics.jsonl');
    const log = new MetricsLog(path);
    log.append({ step: 1, text: 'ü' });
    const { length } = log;
    log.append({ step: 2 });
    log.close();
    appendFileSync(path, '{"ste');
    const resumed = new MetricsLog(path, length);
    resumed.append({ step: 3 });
    resumed.close();
    expect(readFileSync(path, 'utf8')).toBe('{"step":1,"text":"ü"}\n{"step":3}\n');
    expect(resumed.length).toBe(readFileSync(path).length);
  });

  test('that is shorter than the checkpoint says is refused', () => {
    const path = join(temporaryFolder(), 'metrics.jsonl');
    writeFileSync(path, '{}\n');
    expect(() => new MetricsLog(path, 10)).toThrow(/has 3 bytes, but .* had 10/);
  });

  test('cannot be written where there is no folder', () => {
    expect(() => new MetricsLog(join(temporaryFolder(), 'absent', 'metrics.jsonl'))).toThrow(InputError);
  });
});

describe('reading the log', () => {
  test('cut off anywhere gives the records that are whole', () => {
    const path = join(temporaryFolder(), 'metrics.jsonl');
    fc.assert(
      fc.property(records, fc.double({ min: 0, max: 1, noNaN: true }), (written, where) => {
        const log = new MetricsLog(path);
        const ends = written.map((record) => {
          log.append(record);
          return log.length;
        });
        log.close();
        const cut = Math.floor(where * log.length);
        truncateSync(path, cut);
        const whole = written.slice(0, ends.filter((end) => end <= cut).length);
        expect(readMetrics(path)).toEqual(JSON.parse(JSON.stringify(whole)));
      }),
    );
  });

  test('refuses a line that is not a JSON object, by its number', () => {
    const path = join(temporaryFolder(), 'metrics.jsonl');
    writeFileSync(path, '{"step":1}\n{"step":\n{"step":3}\n');
    expect(() => readMetrics(path)).toThrow(`${path}:2: the line is not valid JSON`);
    writeFileSync(path, '{"step":1}\n[1]\n');
    expect(() => readMetrics(path)).toThrow(`${path}:2: expected a JSON object, found [1]`);
  });

  test('of arbitrary bytes either succeeds or is refused with a sentence', () => {
    const path = join(temporaryFolder(), 'metrics.jsonl');
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        writeFileSync(path, bytes);
        try {
          expect(readMetrics(path).length).toBeLessThanOrEqual(bytes.filter((byte) => byte === 10).length);
        } catch (error) {
          expect(error).toBeInstanceOf(InputError);
        }
      }),
    );
  });
});

test('lines of a former owner go nowhere, and what others have put into the log is overwritten', () => {
  const path = join(temporaryFolder(), 'metrics.jsonl');
  const former = new MetricsLog(path);
  former.append({ step: 1 });
  const { length } = former;
  const heir = new MetricsLog(path, length);
  former.append({ step: 2, late: true });
  appendFileSync(path, 'garbage that is longer than a line of the log\n');
  heir.append({ step: 2 });
  heir.append({ step: 3 });
  former.close();
  heir.close();
  expect(readFileSync(path, 'utf8')).toBe('{"step":1}\n{"step":2}\n{"step":3}\n');
});
