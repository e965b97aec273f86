import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { fileLines, openRegular, readBytes, readingWithin } from '../src/files.js';

const folder = mkdtempSync(join(tmpdir(), 'tcts-lines-'));
afterAll(() => rmSync(folder, { recursive: true }));

const file = join(folder, 'log');
const read = (from?: number) => {
  const lines: [string | undefined, number][] = [];
  for (const { bytes, end } of fileLines(file, from)) lines.push([bytes?.toString('utf8'), end]);
  return lines;
};

describe('the lines of a file', () => {
  it('are what stands between newlines, from any line on, the last only with its newline', () => {
    // Some are longer than what is read at a time, 2^20 bytes.
    const length = fc.oneof({ weight: 9, arbitrary: fc.nat(300) }, { weight: 1, arbitrary: fc.nat(1_500_000) });
    const line = fc.tuple(length, fc.constantFrom('a', 'é', '漢')).map(([n, letter]) => letter.repeat(n));
    fc.assert(
      fc.property(fc.array(line, { maxLength: 12 }), fc.string(), fc.nat(12), (lines, rest, first) => {
        const cut = rest.replaceAll('\n', '');
        writeFileSync(file, lines.map((text) => `${text}\n`).join('') + cut);
        let end = 0;
        const expected = lines.map((text) => {
          end += Buffer.byteLength(text) + 1;
          return [text, end];
        });
        const all = read();
        // Not by toEqual, which would print megabytes.
        expect(JSON.stringify(all) === JSON.stringify(expected)).toBe(true);
        const from = Number(expected[first]?.[1] ?? 0);
        expect(read(from).length).toBe(from === 0 ? lines.length : lines.length - first - 1);
      }),
      { numRuns: 40 },
    );
  });

  it('are passed over where they are longer than any log has', () => {
    writeFileSync(file, 'first\n');
    truncateSync(file, 40_000_000);
    appendFileSync(file, '\nlast\n');
    expect(read()).toEqual([
      ['first', 6],
      [undefined, 40_000_001],
      ['last', 40_000_006],
    ]);
  });
});

describe.skipIf(process.platform === 'win32')('a regular file', () => {
  it('is none that is a pipe, a device or a folder, and opening does not wait for a writer', () => {
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    expect(() => openRegular(pipe)).toThrow('expected a regular file, found a pipe');
    expect(() => openRegular('/dev/zero')).toThrow('expected a regular file, found a device');
    expect(() => openRegular(folder)).toThrow('expected a regular file, found a folder');
    expect(() => [...fileLines(pipe)]).toThrow('found a pipe');
  });

  it('is read inside a folder alone where that is asked for, also after a pause', async () => {
    writeFileSync(join(folder, 'inside'), 'x');
    await readingWithin(folder, async () => {
      await new Promise((resolve) => setTimeout(resolve, 1));
      expect(readBytes(join(folder, 'inside'))).toHaveLength(1);
      expect(() => readBytes('/etc/passwd')).toThrow('leads out of the run folder');
      expect(() => readBytes(join(folder, '..', '..', 'etc/passwd'))).toThrow('leads out of the run folder');
      expect(() => readBytes(join(folder, 'pipe'))).toThrow('found a pipe');
    });
    expect(readBytes('/etc/passwd').length).toBeGreaterThan(0);
  });
});
