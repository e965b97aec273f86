import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { decodeLines, readLines, readPairs } from '../../src/translate/corpus/text-files.js';

const folder = mkdtempSync(join(tmpdir(), 'tcts-lines-'));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

async function all(blocks: AsyncIterable<string[]>): Promise<string[]> {
  const lines: string[] = [];
  for await (const block of blocks) lines.push(...block);
  return lines;
}

async function* inChunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let i = 0; i < bytes.length; i += size) yield bytes.subarray(i, i + size);
}

describe('reading lines', () => {
  it('drops a byte order mark and carriage returns, keeps other separators and a last line without line feed', async () => {
    const path = file('mixed', '\ufeffa\r\nb\u2028c\u0085d\n\ne');
    expect(await all(readLines(path))).toEqual(['a', 'b\u2028c\u0085d', '', 'e']);
  });

  it('reads gzip by its content, whatever the name', async () => {
    expect(await all(readLines(file('plain.name', gzipSync('a\nb\n'))))).toEqual(['a', 'b']);
  });

  it('gives the same lines however the bytes are cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: 'grapheme' }).map((line) => line.replace(/[\n\r\ufeff]/g, ''))),
        fc.integer({ min: 1, max: 9 }),
        async (lines, size) => {
          const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
          expect(await all(decodeLines(inChunks(bytes, size), 'stream'))).toEqual(lines);
        },
      ),
    );
  });

  it('names the line of a byte that is not UTF-8', async () => {
    const latin1 = file('latin1', Buffer.from('gut\nsch\xf6n\n', 'latin1'));
    await expect(all(readLines(latin1))).rejects.toThrow(`${latin1}:2: found a byte sequence that is not UTF-8`);
    await expect(all(readLines(file('utf16', Buffer.from('\ufeffab\n', 'utf16le'))))).rejects.toThrow('UTF-16');
    await expect(all(decodeLines(inChunks(Buffer.from([0x61, 0x0a, 0xe4, 0xb8]), 2), 'stdin'))).rejects.toThrow(
      'stdin:2: ',
    );
  });

  it('says what is wrong with damaged gzip and missing files', async () => {
    const cut = file('cut.gz', gzipSync('some text that is long enough\n'.repeat(99)).subarray(0, 40));
    await expect(all(readLines(cut))).rejects.toThrow('the gzip data are damaged or end too early');
    await expect(all(readLines(join(folder, 'absent')))).rejects.toThrow('no such file');
  });
});

describe('reading parallel files', () => {
  it('keeps lines side by side across blocks of different size', async () => {
    const n = 20_000;
    const short = file('short', Array.from({ length: n }, (_, i) => `${i}\n`).join(''));
    const long = file('long', Array.from({ length: n }, (_, i) => `${i} ${'x'.repeat(i % 50)}\n`).join(''));
    let next = 1;
    for await (const { line, source, target } of readPairs(short, long)) {
      expect(line).toBe(next);
      next += source.length;
      expect(target.length).toBe(source.length);
      for (let i = 0; i < source.length; i++) if (!target[i].startsWith(`${source[i]} `)) throw new Error('misaligned');
    }
    expect(next).toBe(n + 1);
  });

  it('refuses files of different length with both counts', async () => {
    const a = file('three', 'a\nb\nc\n');
    const b = file('two', 'a\nb\n');
    const read = async (): Promise<void> => {
      for await (const _ of readPairs(a, b));
    };
    await expect(read()).rejects.toThrow(`${a} has 3, ${b} has 2`);
  });
});
