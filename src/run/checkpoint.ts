import { createHash } from 'node:crypto';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { InputError } from '../errors.js';
import { readBytes } from '../files.js';
import { decode, encode, type StoredTensor } from '../optim/safetensors.js';
import { exactParse, exactStringify } from './exact-json.js';
import { ANYONE, type Owner, writeAsOwner } from './fence.js';

/** Everything a run has to remember at one moment. */
export interface Snapshot {
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  /** Plain JSON values; numbers come back bit for bit, NaN and infinities included. */
  readonly state: unknown;
}

export interface Checkpoint extends Snapshot {
  /** Steps done when it was taken. */
  readonly step: number;
}

export interface SavedCheckpoint extends Checkpoint {
  readonly path: string;
}

export interface SaveOptions {
  /** Checkpoints kept, at least 2; older ones are deleted once the new one is safely on the disk. Default 2. */
  readonly keep?: number;
  /** Paths of damaged checkpoints: they do not count, and are deleted once the run is past them. Default none. */
  readonly damaged?: ReadonlySet<string>;
  /** Who owns the folder. Default anyone. */
  readonly owner?: Owner;
}

/** Writes `step-….safetensors` to the folder, atomically, and returns its path. */
export function saveCheckpoint(folder: string, checkpoint: Checkpoint, options: SaveOptions = {}): string {
  const { keep = 2, damaged = new Set(), owner = ANYONE } = options;
  if (keep < 2) throw new RangeError(`keep is ${keep}, but at least 2 generations of checkpoints must be kept`);
  const path = join(folder, `step-${String(checkpoint.step).padStart(9, '0')}.safetensors`);
  writeAsOwner(owner, path, encodeCheckpoint(checkpoint));
  // Later ones are damaged, or the run would have resumed from them; they will be written again.
  const earlier = generations(folder).filter(({ step }) => step < checkpoint.step);
  const whole = earlier.filter((found) => !damaged.has(found.path));
  const old = [...whole.slice(keep - 1), ...earlier.filter((found) => damaged.has(found.path))];
  for (const found of old) rmSync(found.path, { force: true });
  return path;
}

/** Writes `best.safetensors`, which no later checkpoint pushes out. */
export function saveBest(folder: string, checkpoint: Checkpoint, { owner = ANYONE }: Pick<SaveOptions, 'owner'> = {}) {
  const path = join(folder, BEST);
  writeAsOwner(owner, path, encodeCheckpoint(checkpoint));
  return path;
}

/**
 * The newest checkpoint that is whole; `warn` is told of those that are passed over. Undefined if none was ever saved;
 * an error if there are some but none of them is whole.
 */
export function latestCheckpoint(folder: string, warn: Warn): SavedCheckpoint | undefined {
  for (const checkpoint of wholeCheckpoints(folder, warn)) return checkpoint;
  const { length } = generations(folder);
  if (length === 0) return undefined;
  throw new InputError(`none of the ${length} checkpoints can be read: all of them are damaged`, { file: folder });
}

/** Told of a checkpoint that is passed over: a sentence, and its path. */
type Warn = (sentence: string, path: string) => void;

/** The checkpoints that are whole, the newest first; `warn` is told of those that are passed over. */
export function* wholeCheckpoints(folder: string, warn: Warn): Generator<SavedCheckpoint> {
  for (const { path } of generations(folder)) {
    try {
      yield readCheckpoint(path);
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      warn(`the checkpoint is damaged and passed over: ${error.message}`, path);
    }
  }
}

/** The checkpoint with the best score, if one was saved. */
export function bestCheckpoint(folder: string): SavedCheckpoint | undefined {
  const path = join(folder, BEST);
  return existsSync(path) ? readCheckpoint(path) : undefined;
}

/** Reads a checkpoint and makes sure that not a byte of it has changed since it was written. */
export function readCheckpoint(path: string): SavedCheckpoint {
  const bytes = readBytes(path);
  const { tensors, metadata } = decode(bytes, path);
  const at = checksumOffset(bytes);
  if (metadata.format !== FORMAT || at < 0) throw new InputError('it is not a checkpoint of tcts', { file: path });
  if (metadata.sha256 !== digest(bytes, at)) {
    throw new InputError('the checksum does not fit: the file is damaged', { file: path });
  }
  return { path, tensors, step: Number(metadata.step), state: exactParse(metadata.state) };
}

/** The checksum covers every byte of the file but its own, which count as zeros. */
function encodeCheckpoint({ step, tensors, state }: Checkpoint): Uint8Array {
  const metadata = { sha256: '0'.repeat(DIGITS), format: FORMAT, step: String(step), state: exactStringify(state) };
  const bytes = encode(tensors, metadata);
  const at = checksumOffset(bytes);
  bytes.set(Buffer.from(digest(bytes, at)), at);
  return bytes;
}

/**
 * Where the digits of the checksum stand, or -1. Quotes inside the state are escaped, and tensors are described by
 * objects, so that no other part of the header can look like this.
 */
function checksumOffset(bytes: Uint8Array<ArrayBuffer>): number {
  const header = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const at = header.indexOf(CHECKSUM_KEY);
  return at < 0 || at + CHECKSUM_KEY.length + DIGITS > bytes.length ? -1 : at + CHECKSUM_KEY.length;
}

function digest(bytes: Uint8Array, checksumAt: number): string {
  return createHash('sha256')
    .update(bytes.subarray(0, checksumAt))
    .update('0'.repeat(DIGITS))
    .update(bytes.subarray(checksumAt + DIGITS))
    .digest('hex');
}

/** The regular checkpoints of a folder, the newest first. */
export function generations(folder: string): { step: number; path: string }[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .map((name) => ({ step: Number(NAME.exec(name)?.[1] ?? Number.NaN), path: join(folder, name) }))
    .filter(({ step }) => !Number.isNaN(step))
    .sort((a, b) => b.step - a.step);
}

const NAME = /^step-(\d+)\.safetensors$/;
const BEST = 'best.safetensors';
const FORMAT = 'tcts checkpoint 1';
const CHECKSUM_KEY = '"sha256":"';
/** Hexadecimal digits of a SHA-256. */
const DIGITS = 64;
