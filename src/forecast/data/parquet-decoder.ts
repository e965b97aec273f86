import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { DecodedArray } from 'hyparquet';
import { InputError } from '../../errors.js';
import { fileError } from '../../files.js';

/** What a Parquet file holds: the names of its columns, and the stretches of rows it can be read in. */
export interface ParquetOutline {
  readonly columns: readonly string[];
  readonly ranges: readonly { readonly rowStart: number; readonly rowEnd: number }[];
}

/**
 * Decodes a Parquet file in a thread of its own: on damaged bytes the decoder may loop without end or fill the memory,
 * and only a thread can be stopped. Whatever goes wrong is an `InputError`. Must be closed.
 */
export class ParquetDecoder {
  readonly #file: string;
  readonly #deadline: number;
  readonly #thread: Worker;

  /** @param patience milliseconds an answer may take, and a second more for each megabyte of the file */
  constructor(file: string, patience: number) {
    this.#file = file;
    let bytes: number;
    try {
      bytes = statSync(file).size;
    } catch (error) {
      throw fileError(error, 'read', file);
    }
    this.#deadline = patience + bytes / 1_000;
    const module = pathToFileURL(createRequire(import.meta.url).resolve('hyparquet')).href;
    this.#thread = new Worker(DECODER, {
      eval: true,
      workerData: { file, module },
      resourceLimits: { maxOldGenerationSizeMb: 2048 },
    });
  }

  outline(): Promise<ParquetOutline> {
    return this.#ask({});
  }

  /** The values of one column in one of the ranges of the outline. */
  column(column: string, rowStart: number, rowEnd: number): Promise<DecodedArray> {
    return this.#ask({ column, rowStart, rowEnd });
  }

  async close(): Promise<void> {
    await this.#thread.terminate();
  }

  #ask<T>(question: object): Promise<T> {
    return new Promise((resolve, reject) => {
      const fail = (reason: string): void => {
        stop();
        reject(new InputError(`not a readable Parquet file: ${reason}`, { file: this.#file }));
      };
      const timer = setTimeout(() => fail('decoding it comes to no end'), this.#deadline);
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
        this.#thread.off('message', onMessage).off('error', onError);
      };
      this.#thread.on('message', onMessage).on('error', onError);
      this.#thread.postMessage(question);
    });
  }
}

/** The thread's program, in plain JavaScript since a thread cannot load TypeScript. Answers one question at a time. */
const DECODER = `
const { closeSync, fstatSync, openSync, readSync } = require('node:fs');
const { parentPort, workerData } = require('node:worker_threads');
const { brotliDecompressSync, gunzipSync } = require('node:zlib');

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
// What writers use beside snappy, which the module brings itself.
const compressors = { GZIP: (bytes) => gunzipSync(bytes), BROTLI: (bytes) => brotliDecompressSync(bytes) };

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
