import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createGunzip, gunzipSync } from 'node:zlib';
import { CsvError, type Options, parse } from 'csv-parse';
import { parse as parseWhole } from 'csv-parse/sync';
import { InputError } from './errors.js';
import { fileError, readBytes } from './files.js';

/** Takes the cells of a row; `line` is the line of the file that the row ends on. */
export type CsvRow = (cells: readonly string[], line: number) => void;

/**
 * Reads a CSV file, gzipped where its name ends in `.gz`, row by row: it may be larger than memory. Every row must have as
 * many cells as the first.
 */
export async function readCsvRows(file: string, delimiter: string, row: CsvRow): Promise<void> {
  const parser = parse({ ...taking(row), delimiter });
  const stages = isGzip(file) ? [createGunzip()] : [];
  try {
    // on_record consumes every record: drain the empty output, or the end never comes.
    parser.resume();
    await pipeline([createReadStream(file, { highWaterMark: 1 << 18 }), ...stages, parser]);
  } catch (error) {
    throw csvFault(error, file);
  }
}

/** The first rows of a CSV file, gzipped where its name ends in `.gz`. */
export async function firstCsvRows(file: string, delimiter: string, count: number): Promise<string[][]> {
  const input = createReadStream(file);
  const text = isGzip(file) ? input.pipe(createGunzip()) : input;
  const parser = text.pipe(parse({ ...COMMON, delimiter, to: count }));
  const fail = (error: Error) => parser.destroy(error);
  input.on('error', fail);
  text.on('error', fail);
  try {
    return (await parser.toArray()) as string[][];
  } catch (error) {
    throw csvFault(error, file);
  } finally {
    input.destroy();
  }
}

/** The rows of a CSV file, gzipped where its name ends in `.gz`, in UTF-8 or else Latin-1; blanks around cells are trimmed. */
export function readCsvTable(file: string): { readonly cells: readonly string[]; readonly line: number }[] {
  const rows: { cells: readonly string[]; line: number }[] = [];
  const bytes = readBytes(file);
  try {
    const text = decoded(isGzip(file) ? gunzipSync(bytes) : bytes);
    parseWhole(text, { ...taking((cells, line) => rows.push({ cells, line })), trim: true, relax_column_count: true });
  } catch (error) {
    throw csvFault(error, file, 'this is not CSV');
  }
  return rows;
}

/** The number in a cell; NaN for a missing value, undefined for anything else. */
export function csvNumber(text: string): number | undefined {
  const x = Number(text);
  if (x > 0 && x < Number.POSITIVE_INFINITY && NUMBER.test(text)) return x;
  const trimmed = text.trim();
  if (MISSING.test(trimmed)) return Number.NaN;
  return NUMBER.test(trimmed) ? Number(trimmed) : undefined;
}

/** Whether a name is that of a CSV file, gzipped or not. */
export function isCsvName(name: string): boolean {
  return /\.csv(\.gz)?$/i.test(name);
}

/** Decimal or scientific notation; what JavaScript would also take (0x1f, 1_000, blanks) is not a number in a table. */
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
const MISSING = /^(|nan|null|none|na|n\/a|\.)$/i;

const COMMON: Options = { bom: true, skip_empty_lines: true };

function taking(row: CsvRow): Options {
  return {
    ...COMMON,
    // The record is used here and not kept: null drops it.
    on_record: (cells: string[], { lines }) => {
      row(cells, lines);
      return null;
    },
  };
}

function isGzip(file: string): boolean {
  return file.toLowerCase().endsWith('.gz');
}

function csvFault(error: unknown, file: string, sentence = 'not a well-formed CSV row'): unknown {
  if (error instanceof InputError) return error;
  if (error instanceof CsvError) {
    const line = typeof error.lines === 'number' ? error.lines : undefined;
    return new InputError(`${sentence}: ${error.message}`, { file, line });
  }
  const { code } = error as { code?: string };
  if (code?.startsWith('Z_')) return new InputError('not a whole gzip file', { file });
  return fileError(error, 'read', file);
}

/** UTF-8, or else Latin-1: names of columns have units in them, such as °C. */
function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return Buffer.from(bytes).toString('latin1');
  }
}
