import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { InputError } from '../errors.js';
import { fileError } from '../files.js';

/** A complete input file. */
export interface ScoreInput {
  /** For messages: the path, or `standard input` for `-`. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Reads a file, plain or gzip, or standard input where the path is `-`. */
export async function readInput(path: string): Promise<ScoreInput> {
  const name = path === '-' ? 'standard input' : path;
  const raw = path === '-' ? await readStandardInput() : readPath(path);
  const bytes = raw[0] === 0x1f && raw[1] === 0x8b ? unzip(raw, name) : raw;
  if (bytes.length === 0) throw new InputError('the file is empty', { file: name });
  return { name, bytes };
}

/** Several inputs, of which standard input can be at most one. */
async function readInputs(paths: readonly string[]): Promise<ScoreInput[]> {
  if (paths.filter((path) => path === '-').length > 1) {
    throw new InputError('standard input (-) can be used for one file only');
  }
  const inputs: ScoreInput[] = [];
  for (const path of paths) inputs.push(await readInput(path));
  return inputs;
}

/**
 * The lines of a text, split at "\n" only (a line may hold any other separator Unicode knows); a newline at the end does
 * not begin another line. A byte order mark is text, as it is for sacreBLEU.
 *
 * @param onBad is called with the error of a line that is not UTF-8, which is then empty. Default: it is thrown
 */
export function splitLines({ name, bytes }: ScoreInput, onBad?: (error: InputError) => void): string[] {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const lines: string[] = [];
  for (let start = 0; start < bytes.length; ) {
    const newline = bytes.indexOf(NEWLINE, start);
    const end = newline === -1 ? bytes.length : newline;
    try {
      lines.push(decoder.decode(bytes.subarray(start, end)));
    } catch {
      const error = new InputError('the line is not UTF-8 text', { file: name, line: lines.length + 1 });
      if (onBad === undefined) throw error;
      onBad(error);
      lines.push('');
    }
    start = end + 1;
  }
  return lines;
}

/** Reads texts whose lines belong together: all must have as many. */
export async function readAligned(paths: readonly string[]): Promise<string[][]> {
  const inputs = await readInputs(paths);
  const texts = inputs.map((input) => splitLines(input));
  for (const [i, lines] of texts.entries()) {
    if (lines.length !== texts[0].length) {
      const [first, other] = [`${inputs[0].name} has ${count(texts[0].length)}`, `${inputs[i].name} ${lines.length}`];
      throw new InputError(`${first}, ${other}: expected the same number of lines`);
    }
  }
  return texts;
}

const NEWLINE = 0x0a;

function count(lines: number): string {
  return lines === 1 ? '1 line' : `${lines} lines`;
}

function readPath(path: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (error) {
    throw fileError(error, 'read', path);
  }
}

async function readStandardInput(): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function unzip(bytes: Uint8Array, name: string): Uint8Array {
  try {
    return gunzipSync(bytes);
  } catch (error) {
    throw new InputError(`the gzip data are damaged (${(error as Error).message})`, { file: name });
  }
}
