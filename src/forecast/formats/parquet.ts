import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { extname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { DecodedArray } from 'hyparquet';
import { z } from 'zod';
import { InputError } from '../../errors.js';
import { fileError } from '../../files.js';
import {
  dataFormat,
  fillSource,
  GroupNumbers,
  Notes,
  type ReaderOptions,
  type Reading,
  type ReadOptions,
  tableKeys,
} from './format.js';
import { findColumns, RowTable } from './rows.js';

const schema = z.strictObject({ format: z.literal('parquet').describe('A Parquet file.'), ...tableKeys });

type ParquetSource = z.output<typeof schema>;

export const parquet = dataFormat({
  schema,
  title: 'Parquet',
  recognises: (path, isFolder) => !isFolder && ['.parquet', '.pq'].includes(extname(path).toLowerCase()),
  read: (source, options) => read(source, options),
  files: ({ path, members }) => [path, ...(members === undefined ? [] : [members])],
});

/**
 * Reads prices from a Parquet file or a folder of them.
 *
 * @param patience see `read`
 */
export function readParquet(source: ReaderOptions<typeof schema>, patience?: number): Promise<Reading> {
  return read(fillSource(parquet, source), {}, patience);
}

/**
 * Reads prices from one long Parquet file: one row per stock and day, with the columns date (a DATE, a TIMESTAMP at midnight,
 * or text), symbol (text), open, high, low, close, volume (and vwap). A null is a missing value. The line of an error is
 * the number of the row, from 1.
 *
 * @param patience milliseconds the decoder may take for an answer, plus a second per megabyte: decoding is some
 *   hundred times faster, but damaged bytes can keep it busy forever
 */
async function read(source: ParquetSource, options: ReadOptions, patience = 10_000): Promise<Reading> {
  const decoder = new ParquetDecoder(source.path, patience);
  try {
    return await readRows(source, options, decoder);
  } finally {
    await decoder.close();
  }
}

async function readRows(source: ParquetSource, options: ReadOptions, decoder: ParquetDecoder): Promise<Reading> {
  const file = source.path;
  const { columns: names, ranges } = await decoder.outline();
  const notes = new Notes();
  const columns = findColumns({ names, needsSymbol: true, file }, source, options, notes);
  const table = new RowTable(source, columns.fields, notes, options);
  const groups = new GroupNumbers();
  for (const { rowStart, rowEnd } of ranges) {
    const read = async (at: number): Promise<DecodedArray> => {
      const data = await decoder.column(names[at], rowStart, rowEnd);
      if (data.length !== rowEnd - rowStart) {
        throw new InputError(`holds ${data.length} values for ${rowEnd - rowStart} rows`, { file, key: names[at] });
      }
      return data;
    };
    const dates = await read(columns.date);
    const symbols = await read(columns.symbol);
    const values: DecodedArray[] = [];
    for (const at of columns.at) values.push(await read(at));
    for (let i = 0; i < rowEnd - rowStart; i++) {
      const row = rowStart + i + 1;
      const value = (f: number): number =>
        options.group !== undefined && columns.fields[f] === options.group
          ? toGroup(values[f][i], groups)
          : toNumber(values[f][i], columns.fields[f], file, row);
      table.add(toDate(dates[i], file, row), toSymbol(symbols[i], file, row), value, file, row);
    }
  }
  return table.finish();
}

function toNumber(x: unknown, key: string, file: string, row: number): number {
  if (typeof x === 'number') return x;
  if (typeof x === 'bigint') return Number(x);
  if (x === null || x === undefined) return Number.NaN;
  throw new InputError(`${describe(x)} is not a number`, { file, line: row, key });
}

function toGroup(x: unknown, groups: GroupNumbers): number {
  return x === null || x === undefined || x === '' ? Number.NaN : groups.of(String(x));
}

function toDate(x: unknown, file: string, row: number): string {
  if (typeof x === 'string') return x;
  if (x instanceof Date && !Number.isNaN(x.getTime())) return x.toISOString();
  throw new InputError(`${describe(x)} is not a date`, { file, line: row, key: 'date' });
}

function toSymbol(x: unknown, file: string, row: number): string {
  if (typeof x === 'string') return x;
  if (typeof x === 'number' || typeof x === 'bigint') return String(x);
  throw new InputError(`${describe(x)} is not the code of a stock`, { file, line: row, key: 'symbol' });
}

function describe(x: unknown): string {
  return x === null || x === undefined ? 'no value' : `${JSON.stringify(x) ?? typeof x}`.slice(0, 80);
}

/** What a Parquet file holds: the names of its columns, and the stretches of rows it can be read in. */
export interface ParquetOutline {
  readonly columns: readonly string[];
  readonly ranges: readonly { readonly rowStart: number; readonly rowEnd: number }[];
}

/**
 * Decodes a Parquet file in its own thread: on damaged bytes the decoder may loop without end or fill the memory,
 * and only a thread can be stopped. Any failure is an `InputError`. Must be closed.
 */
export class ParquetDecoder {
  private readonly file: string;
  private readonly deadline: number;
  private readonly thread: Worker;

  /** @param patience milliseconds an answer may take, and a second more for each megabyte of the file */
  constructor(file: string, patience: number) {
    this.file = file;
    let bytes: number;
    try {
      bytes = statSync(file).size;
    } catch (error) {
      throw fileError(error, 'read', file);
    }
    this.deadline = patience + bytes / 1_000;
    const module = pathToFileURL(createRequire(import.meta.url).resolve('hyparquet')).href;
    this.thread = new Worker(DECODER, {
      eval: true,
      workerData: { file, module },
      resourceLimits: { maxOldGenerationSizeMb: 2048 },
    });
  }

  outline(): Promise<ParquetOutline> {
    return this.ask({});
  }

  /** The values of one column in one of the ranges of the outline. */
  column(column: string, rowStart: number, rowEnd: number): Promise<DecodedArray> {
    return this.ask({ column, rowStart, rowEnd });
  }

  async close(): Promise<void> {
    await this.thread.terminate();
  }

  private ask<T>(question: object): Promise<T> {
    return new Promise((resolve, reject) => {
      const fail = (reason: string): void => {
        stop();
        reject(new InputError(`not a readable Parquet file: ${reason}`, { file: this.file }));
      };
      const timer = setTimeout(() => fail('decoding it does not end'), this.deadline);
      const onError = (error: Error): void => fail(error.message);
      const onMessage = (reply: { answer: T } | { fault: string }): void => {
        if ('fault' in reply) fail(reply.fault);
        else {
          stop();
          resolve(reply.answer);
        }
      };
      const stop = (): void => {
        clearTimeout(timer);
        this.thread.off('message', onMessage).off('error', onError);
      };
      this.thread.on('message', onMessage).on('error', onError);
      this.thread.postMessage(question);
    });
  }
}

/** The thread's program, in plain JavaScript since a thread cannot load TypeScript. Answers one question at a time. */
const DECODER = `
const { closeSync, fstatSync, openSync, readSync } = require('node:fs');
const { parentPort, workerData } = require('node:worker_threads');
const { brotliDecompressSync, gunzipSync, zstdDecompressSync } = require('node:zlib');

const descriptor = openSync(workerData.file, 'r');
const byteLength = fstatSync(descriptor).size;
const file = {
  byteLength,
  slice(start, end = byteLength) {
    const bytes = new Uint8Array(Math.min(end, byteLength) - start);
    for (let got = 0; got < bytes.length; ) {
      const n = readSync(descriptor, bytes, got, bytes.length - got, start + got);
      if (n === 0) throw new Error('the file ends at byte ' + (start + got));
      got += n;
    }
    return bytes.buffer;
  },
};
const unknown = (codec) => () => {
  throw new Error('it is compressed with ' + codec + ', expected snappy, gzip, brotli or no compression');
};
// Codecs that writers use besides snappy, which the module includes; Node.js has zstd from 22.15 on.
const compressors = {
  GZIP: (bytes) => gunzipSync(bytes),
  BROTLI: (bytes) => brotliDecompressSync(bytes),
  ZSTD: zstdDecompressSync ? (bytes) => zstdDecompressSync(bytes) : unknown('zstd'),
  LZ4: unknown('lz4'),
  LZ4_RAW: unknown('lz4'),
};

let scan;
parentPort.on('message', async ({ column, rowStart, rowEnd }) => {
  try {
    if (column !== undefined) {
      parentPort.postMessage({ answer: await scan.readColumn({ column, rowStart, rowEnd }) });
      return;
    }
    const { parquetScan, parquetSchema } = await import(workerData.module);
    scan = await parquetScan({ file, compressors });
    const columns = parquetSchema(scan.metadata).children.map(({ element }) => element.name);
    if (!columns.every((name) => typeof name === 'string')) throw new Error('a column has no name');
    parentPort.postMessage({ answer: { columns, ranges: scan.ranges } });
  } catch (error) {
    parentPort.postMessage({ fault: error instanceof Error ? error.message : String(error) });
  }
});
process.on('exit', () => closeSync(descriptor));
`;
