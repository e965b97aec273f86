import { closeSync, readSync } from 'node:fs';
import { fileError, openRegular } from './files.js';

/** A line of a file. */
export interface FileLine {
  /** Without its newline; valid until the next line is asked for. Undefined where it is longer than any of ours. */
  readonly bytes: Buffer | undefined;
  /** Offset of the byte behind its newline. */
  readonly end: number;
}

/**
 * The lines of a file from a byte on, read piece by piece: the file may be larger than memory. A last line without its
 * newline is one that is being written, or whose writing was cut off: it is left out.
 */
export function* fileLines(path: string, from = 0): Generator<FileLine> {
  const file = attempt(path, () => openRegular(path));
  try {
    yield* openFileLines(file, from, path);
  } finally {
    closeSync(file);
  }
}

/** As `fileLines`, of a file that is open. */
export function* openFileLines(file: number, from: number, path: string): Generator<FileLine> {
  let buffer = Buffer.allocUnsafe(PIECE);
  /** What of the buffer is filled, and where in the file it begins. */
  let [filled, start] = [0, from];
  let isSkipping = false;
  for (;;) {
    const count = attempt(path, () => readSync(file, buffer, filled, buffer.length - filled, start + filled));
    if (count === 0) return;
    const searched = filled;
    filled += count;
    let line = 0;
    for (let end = find(buffer, searched, filled); end >= 0; end = find(buffer, end + 1, filled)) {
      yield { bytes: isSkipping ? undefined : buffer.subarray(line, end), end: start + end + 1 };
      isSkipping = false;
      line = end + 1;
    }
    // What is left is the beginning of a line, and goes to the front.
    if (line === 0 && filled >= LONGEST) isSkipping = true;
    if (isSkipping) line = filled;
    buffer.copyWithin(0, line, filled);
    start += line;
    filled -= line;
    if (filled === buffer.length) buffer = Buffer.concat([buffer], 2 * buffer.length);
  }
}

function find(buffer: Buffer, from: number, to: number): number {
  const at = buffer.indexOf(NEWLINE, from);
  return at < to ? at : -1;
}

function attempt<T>(path: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw fileError(error, 'read', path);
  }
}

const NEWLINE = 10;

/** Bytes that are read at a time, and of the longest line that is kept. */
const PIECE = 2 ** 20;
const LONGEST = 2 ** 24;
