import { isUtf8 } from 'node:buffer';
import { closeSync, createReadStream, openSync, type ReadStream, readSync } from 'node:fs';
import { createGunzip } from 'node:zlib';
import { InputError } from '../../errors.js';
import { fileError } from '../../files.js';

/** Corresponding lines of two files. */
export interface PairBlock {
  /** 1-based number of the first line. */
  readonly line: number;
  readonly source: readonly string[];
  readonly target: readonly string[];
}

/** Two files side by side, in blocks; files of different length are rejected with both counts. */
export async function* readPairs(sourceFile: string, targetFile: string): AsyncGenerator<PairBlock> {
  const sides = [new Side(sourceFile), new Side(targetFile)];
  try {
    for (let line = 1; ; ) {
      const [sources, targets] = await Promise.all(sides.map((side) => side.available()));
      const count = Math.min(sources, targets);
      if (count === 0) break;
      const [source, target] = sides.map((side) => side.take(count));
      yield { line, source, target };
      line += count;
    }
    const [n, m] = [await sides[0].total(), await sides[1].total()];
    if (n !== m) {
      const longer = n > m ? sourceFile : targetFile;
      const sentence = `parallel files must have as many lines: ${sourceFile} has ${n}, ${targetFile} has ${m}`;
      throw new InputError(sentence, { file: longer, line: Math.min(n, m) + 1 });
    }
  } finally {
    await Promise.all(sides.map((side) => side.close()));
  }
}

/** One file, read ahead by at most one block. */
class Side {
  private readonly blocks: AsyncGenerator<string[]>;
  private block: string[] = [];
  private position = 0;
  private taken = 0;

  constructor(path: string) {
    this.blocks = readLines(path);
  }

  async available(): Promise<number> {
    while (this.position >= this.block.length) {
      const { done, value } = await this.blocks.next();
      if (done) return 0;
      this.block = value;
      this.position = 0;
    }
    return this.block.length - this.position;
  }

  take(count: number): string[] {
    const lines = this.block.slice(this.position, this.position + count);
    this.position += count;
    this.taken += count;
    return lines;
  }

  /** Lines of the whole file. */
  async total(): Promise<number> {
    for (let rest = await this.available(); rest > 0; rest = await this.available()) this.take(rest);
    return this.taken;
  }

  async close(): Promise<void> {
    await this.blocks.return(undefined);
  }
}

/** No sentence is this long: a file without line feeds fails here instead of filling the memory. */
const longestLine = 64 * 2 ** 20;

/**
 * The lines of a UTF-8 text file, plain or gzip (by content, not by name), in blocks as they are read. Lines end at a
 * line feed only, since U+2028 and the like occur inside sentences; a carriage return before it and a byte order mark at
 * the start are dropped.
 */
export async function* readLines(path: string): AsyncGenerator<string[]> {
  let file: ReadStream | undefined;
  try {
    const gunzip = isGzip(path) ? createGunzip({ chunkSize: 1 << 18 }) : undefined;
    file = createReadStream(path, { highWaterMark: 1 << 18 });
    if (gunzip) file.on('error', (error) => gunzip.destroy(error)).pipe(gunzip);
    yield* decodeLines(gunzip ?? file, path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (code.startsWith('Z_')) throw new InputError('the gzip data are damaged or end too early', { file: path });
    throw fileError(error, 'read', path);
  } finally {
    file?.destroy();
  }
}

/** The lines of a stream of UTF-8 bytes; `name` is used in errors. */
export async function* decodeLines(chunks: AsyncIterable<Uint8Array>, name: string): AsyncGenerator<string[]> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let line = 1;
  let pending: Uint8Array[] = [];
  let pendingBytes = 0;
  const decode = (bytes: Uint8Array): string[] => {
    let text: string;
    try {
      text = decoder.decode(bytes);
    } catch {
      throw notUtf8(bytes, name, line);
    }
    if (line === 1 && text.startsWith('\ufeff')) text = text.slice(1);
    const lines = text.split('\n');
    line += lines.length;
    return text.includes('\r') ? lines.map((content) => content.replace(/\r$/, '')) : lines;
  };

  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf(0x0a);
    if (end < 0) {
      pending.push(chunk);
      pendingBytes += chunk.length;
      if (pendingBytes > longestLine) {
        throw new InputError('the line is longer than 64 MB, expected one sentence per line', { file: name, line });
      }
      continue;
    }
    const complete = Buffer.concat([...pending, chunk.subarray(0, end)]);
    pending = [chunk.subarray(end + 1)];
    pendingBytes = pending[0].length;
    yield decode(complete);
  }
  if (pendingBytes > 0) yield decode(Buffer.concat(pending));
}

function isGzip(path: string): boolean {
  const file = openSync(path, 'r');
  try {
    const start = new Uint8Array(2);
    return readSync(file, start, 0, 2, 0) === 2 && start[0] === 0x1f && start[1] === 0x8b;
  } finally {
    closeSync(file);
  }
}

function notUtf8(bytes: Uint8Array, file: string, firstLine: number): InputError {
  let line = firstLine;
  let start = 0;
  for (;;) {
    const feed = bytes.indexOf(0x0a, start);
    const end = feed < 0 ? bytes.length : feed;
    if (feed < 0 || !isUtf8(bytes.subarray(start, end))) break;
    start = end + 1;
    line++;
  }
  const utf16 =
    firstLine === 1 && ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff));
  const found = utf16 ? 'UTF-16' : 'a byte sequence that is not UTF-8';
  return new InputError(`found ${found}, expected UTF-8 text`, { file, line });
}
