import { createHash } from 'node:crypto';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { InputError } from '../errors.js';
import { readBytes } from '../files.js';
import { decodeSafetensors, encodeSafetensors, type StoredTensor } from '../optim/safetensors.js';
import { ANYONE, type Owner, writeAsOwner } from './lock.js';

/** The complete state of a run at one moment. */
export interface Snapshot {
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  /** Plain JSON values; numbers come back bit for bit, NaN and infinities included. */
  readonly state: unknown;
}

/** Several snapshots as one; the tensors of part `p` are named `p/…`. */
export function joinSnapshots(parts: Readonly<Record<string, Snapshot>>): Snapshot {
  const tensors = Object.entries(parts).flatMap(([part, snapshot]) =>
    [...snapshot.tensors].map(([name, tensor]) => [`${part}/${name}`, tensor] as const),
  );
  const state = Object.fromEntries(Object.entries(parts).map(([part, snapshot]) => [part, snapshot.state]));
  return { tensors: new Map(tensors), state };
}

/** A part of what `joinSnapshots` joined. */
export function partOf(snapshot: Snapshot, part: string): Snapshot {
  const states = snapshot.state as Record<string, unknown>;
  if (!Object.hasOwn(states, part)) throw new InputError('the saved state does not have this part', { key: part });
  const prefix = `${part}/`;
  const own = [...snapshot.tensors].filter(([name]) => name.startsWith(prefix));
  return { tensors: new Map(own.map(([name, tensor]) => [name.slice(prefix.length), tensor])), state: states[part] };
}

/** A copy of a snapshot, unaffected by later changes. */
export function copySnapshot({ tensors, state }: Snapshot): Snapshot {
  const copies = [...tensors].map(([name, tensor]) => [name, { ...tensor, data: tensor.data.slice() }] as const);
  return { tensors: new Map(copies), state: structuredClone(state) };
}

/** A snapshot of only plain JSON values. */
export function stateOnly(state: unknown): Snapshot {
  return { tensors: new Map(), state };
}

/** A snapshot and the step it was taken at. */
export interface Checkpoint extends Snapshot {
  /** Steps done when it was taken. */
  readonly step: number;
}

/** A checkpoint that was read from a file. */
export interface SavedCheckpoint extends Checkpoint {
  readonly path: string;
}

/** Which older checkpoints are kept. */
export interface SaveOptions {
  /** Checkpoints kept, at least 2; older ones are deleted once the new one is safely on disk. Default 2. */
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

/** The best checkpoint of a folder of checkpoints. */
export function bestFile(folder: string): string {
  return join(folder, BEST);
}

/** Writes `best.safetensors`, which later checkpoints do not displace. */
export function saveBest(folder: string, checkpoint: Checkpoint, { owner = ANYONE }: Pick<SaveOptions, 'owner'> = {}) {
  const path = bestFile(folder);
  writeAsOwner(owner, path, encodeCheckpoint(checkpoint));
  return path;
}

/**
 * The newest intact checkpoint; `warn` is told about damaged ones, which are skipped. Undefined if none was ever saved;
 * an error if all of them are damaged.
 */
export function latestCheckpoint(folder: string, warn: Warn): SavedCheckpoint | undefined {
  for (const checkpoint of wholeCheckpoints(folder, warn)) return checkpoint;
  const { length } = generations(folder);
  if (length === 0) return undefined;
  throw new InputError(`none of the ${length} checkpoints can be read: all of them are damaged`, { file: folder });
}

/** Is told about a damaged checkpoint that is skipped: a sentence, and its path. */
type Warn = (sentence: string, path: string) => void;

/** The intact checkpoints, newest first; `warn` is told about damaged ones, which are skipped. */
function* wholeCheckpoints(folder: string, warn: Warn): Generator<SavedCheckpoint> {
  for (const { path } of generations(folder)) {
    try {
      yield readCheckpoint(path);
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      warn(`the checkpoint is damaged and was skipped: ${error.message}`, path);
    }
  }
}

/** The checkpoint with the best score, if one was saved. */
export function bestCheckpoint(folder: string): SavedCheckpoint | undefined {
  const path = bestFile(folder);
  return existsSync(path) ? readCheckpoint(path) : undefined;
}

/** Which checkpoint of a run: the best on the main task, the newest, or the mean of the newest n. */
export type CheckpointChoice = 'best' | 'latest' | `average:${number}`;

/** A choice in words. */
export function checkpointInWords(choice: string): string {
  const [name, count] = choice.split(':');
  return count === undefined ? `${name} parameters` : `mean of the last ${count} checkpoints`;
}

/** The checkpoints of a run to average, newest first. Before the first validation the newest is the best. */
export function* chosenCheckpoints(run: string, choice: CheckpointChoice): Generator<SavedCheckpoint> {
  const folder = checkpointFolder(run);
  const count = Number(/^average:(\d+)$/.exec(choice)?.[1] ?? 1);
  if (count === 1) {
    const newest = () => latestCheckpoint(folder, () => {});
    const saved = choice === 'best' ? (bestCheckpoint(folder) ?? newest()) : newest();
    if (saved === undefined) throw new InputError('the run has no checkpoint yet', { file: run });
    yield saved;
    return;
  }
  let found = 0;
  for (const saved of wholeCheckpoints(folder, () => {})) {
    yield saved;
    if (++found === count) return;
  }
  const sentence = `there are ${found} checkpoints, ${choice} needs ${count}: train with --set saving.keep=${count}`;
  throw new InputError(sentence, { file: folder });
}

/** What a session has saved of its trainee. */
export function trainedState({ tensors, state, path }: SavedCheckpoint): Snapshot {
  const subject = (state as { subject?: unknown } | null)?.subject;
  if (subject === undefined) throw new InputError('it is not a checkpoint of a training run', { file: path });
  return { tensors, state: subject };
}

/** Where the checkpoints of a run are. */
export function checkpointFolder(run: string): string {
  return join(run, 'checkpoints');
}

/** Reads a checkpoint and verifies its checksum. */
export function readCheckpoint(path: string): SavedCheckpoint {
  const bytes = readBytes(path);
  const { tensors, metadata } = decodeSafetensors(bytes, path);
  const at = checksumOffset(bytes);
  if (metadata.format !== FORMAT || at < 0) throw new InputError('it is not a checkpoint of tcts', { file: path });
  if (metadata.sha256 !== digest(bytes, at)) {
    throw new InputError('the checksum does not match: the file is damaged', { file: path });
  }
  return { path, tensors, step: Number(metadata.step), state: exactParse(metadata.state) };
}

/** The checksum covers every byte of the file except its own, which count as zeros. */
function encodeCheckpoint({ step, tensors, state }: Checkpoint): Uint8Array {
  const metadata = { sha256: '0'.repeat(DIGITS), format: FORMAT, step: String(step), state: exactStringify(state) };
  const bytes = encodeSafetensors(tensors, metadata);
  const at = checksumOffset(bytes);
  bytes.set(Buffer.from(digest(bytes, at)), at);
  return bytes;
}

/**
 * Offset of the checksum's digits, or -1. Quotes inside the state are escaped, and tensors are described by
 * objects, so no other part of the header can look like this.
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

/**
 * JSON that restores every number exactly: NaN, the infinities and -0, which JSON cannot express, are written as
 * `{"$number": "-0"}`. A state that is saved and restored must not differ in a single bit.
 */
export function exactStringify(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) => {
    if (typeof item !== 'number' || (Number.isFinite(item) && !Object.is(item, -0))) return item;
    return { [MARK]: Object.is(item, -0) ? '-0' : String(item) };
  });
}

/** Reads what `exactStringify` wrote. */
function exactParse(text: string): unknown {
  return JSON.parse(text, (_key, item: unknown) => {
    if (typeof item !== 'object' || item === null || !Object.hasOwn(item, MARK)) return item;
    return Number((item as Record<string, unknown>)[MARK]);
  });
}

const MARK = '$number';
