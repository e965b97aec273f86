import { createHash } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { endianness } from 'node:os';
import { resolve } from 'node:path';
import { InputError } from '../../errors.js';
import { fileError, readBytes, writeFileAtomic } from '../../files.js';
import { toolVersion } from '../../run/index.js';
import type { PricePanel } from '../data/panel.js';
import { type Note, Notes, type Reading } from './format.js';

/** Name of the cache of a run's own data in its folder. */
export const CACHE_FILE = 'data.cache';

/** Larger readings, in bytes, are not cached. */
const MOST_BYTES = 256 * 2 ** 20;

/**
 * What a reading depends on: the options it was made with, and name, size and time of the last change of every file. Taken
 * before the files are read, so a change in the meantime makes the key stale.
 */
export function cacheKey(options: object, files: readonly string[]): string {
  const stats = files.map((file) => {
    try {
      const { size, mtimeMs } = statSync(file);
      return [resolve(file), size, mtimeMs];
    } catch (error) {
      throw fileError(error, 'read', file);
    }
  });
  const parts = { version: toolVersion, byteOrder: endianness(), options, stats };
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

/**
 * Caches a reading in a file, unless the file already has it or the reading is too large. The file is written atomically.
 * A folder that is not writable is no reason to stop: the data are read again next time.
 *
 *     magic | length of the head | SHA-256 of all that follows | head, JSON | prices | members | cleaned prices | index
 */
export function writeCache(file: string, key: string, { panel, cleaned, notes }: Reading): void {
  if (panel.derived !== undefined) throw new RangeError('computed features are not part of a reading');
  const { calendar, symbols, fields, index } = panel;
  const blocks = [panel.values, panel.members, cleaned.values, index?.close].map((block) =>
    block === undefined ? EMPTY : new Uint8Array(block.buffer, block.byteOffset, block.byteLength),
  );
  if (cleaned.values === panel.values) blocks[2] = EMPTY;
  if (blocks.reduce((sum, { length }) => sum + length, 0) > MOST_BYTES || holds(file, key)) return;
  const head: Head = {
    key,
    calendar,
    symbols,
    fields,
    index: index?.symbol,
    notes: notes.list(),
    lengths: blocks.map(({ length }) => length),
  };
  const text = Buffer.from(JSON.stringify(head));
  const padded = Buffer.alloc(aligned(text.length), ' ');
  text.copy(padded);
  const pieces = [padded, ...blocks.flatMap((block) => [block, new Uint8Array(aligned(block.length) - block.length)])];
  const hash = createHash('sha256');
  for (const piece of pieces) hash.update(piece);
  const start = Buffer.alloc(START);
  start.write(MAGIC);
  start.writeUInt32LE(padded.length, MAGIC.length);
  hash.digest().copy(start, START - 32);
  try {
    writeFileAtomic(file, [start, ...pieces]);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
  }
}

/** The reading with this key; undefined if the file is missing, has another key, or is incomplete. */
export function readCache(file: string, key: string): Reading | undefined {
  if (!existsSync(file)) return undefined;
  const bytes = readBytes(file);
  const found = headOf(bytes);
  if (found === undefined || found.head.key !== key) return undefined;
  const digest = createHash('sha256').update(bytes.subarray(START)).digest();
  if (!digest.equals(bytes.subarray(START - 32, START))) return undefined;
  const { calendar, symbols, fields, index, notes: noted, lengths } = found.head;
  let at = found.end;
  const [values, members, cleaned, close] = lengths.map((length) => {
    const block = bytes.buffer.slice(at, at + length);
    at += aligned(length);
    return block;
  });
  const panel: PricePanel = {
    calendar,
    symbols,
    fields,
    values: new Float32Array(values),
    members: new Uint8Array(members),
    ...(index === undefined ? {} : { index: { symbol: index, close: new Float32Array(close) } }),
  };
  const notes = new Notes();
  for (const { kind, first, count } of noted) notes.add(kind, first, count);
  const isSame = cleaned.byteLength === 0;
  return { panel, cleaned: isSame ? panel : { ...panel, values: new Float32Array(cleaned) }, notes };
}

interface Head {
  readonly key: string;
  readonly calendar: readonly string[];
  readonly symbols: readonly string[];
  readonly fields: readonly string[];
  readonly index?: string;
  readonly notes: readonly Note[];
  /** Bytes of the blocks. */
  readonly lengths: readonly number[];
}

function headOf(bytes: Uint8Array): { readonly head: Head; readonly end: number } | undefined {
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length < START || start.toString('latin1', 0, MAGIC.length) !== MAGIC) return undefined;
  const end = START + start.readUInt32LE(MAGIC.length);
  try {
    return { head: JSON.parse(start.toString('utf8', START, end)) as Head, end };
  } catch {
    return undefined;
  }
}

function holds(file: string, key: string): boolean {
  return existsSync(file) && readCache(file, key) !== undefined;
}

function aligned(length: number): number {
  return 8 * Math.ceil(length / 8);
}

const MAGIC = 'tcts panel 1\n\0\0\0';
/** Magic, length of the head, four unused bytes, digest. */
const START = MAGIC.length + 8 + 32;
const EMPTY = new Uint8Array();
