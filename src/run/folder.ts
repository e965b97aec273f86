import { type Dirent, existsSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { z } from 'zod';
import { InputError } from '../errors.js';
import { fileError, isTemporary, makeFolder, readJsonFile, readText } from '../files.js';
import { checkpointFolder } from './checkpoint.js';
import { freeOnResume } from './config/load.js';
import { differences, parseSource, resolvedYaml } from './config/sources.js';
import { acquireLock, type Lock, type LockOptions, lockHolder, type Owner, writeAsOwner } from './lock.js';
import type { Validation } from './results.js';
import { compatible, runtimeVersions, toolVersion } from './versions.js';

/**
 * - `running`: in progress, or killed if no process holds the folder's lock
 * - `interrupted`: stopped by a signal; everything is saved
 * - `failed`: stopped by an error
 */
export type RunState = 'running' | 'finished' | 'interrupted' | 'failed';

/** The content of `run.json`. */
export interface RunInfo {
  readonly name: string;
  readonly seed: number;
  /** Version of tcts. */
  readonly version: string;
  readonly node: string;
  readonly onnxruntime: string;
  /** ISO 8601. */
  readonly created: string;
  readonly state: RunState;
  /** The command line that started or last resumed the run. */
  readonly command: readonly string[];
  /** Processes that share each batch, if there are several. */
  readonly processes?: number;
  /** What its problem's `validate` measures, if the configuration does not say: see `CreateOptions`. */
  readonly measure?: Validation;
}

/** A configuration as plain values. */
export type ConfigValues = Readonly<Record<string, unknown>>;

/** A run folder: `config.yaml`, `run.json`, `metrics.jsonl`, event files, `checkpoints/`. */
export interface RunFolder {
  readonly path: string;
  readonly info: RunInfo;
  /** The resolved configuration, as saved. */
  readonly config: ConfigValues;
}

/** A run folder that this process alone may write to. */
export interface OwnedRunFolder extends RunFolder {
  readonly lock: Lock;
  /** Its state when it was opened; undefined for a new one. */
  readonly before: RunState | undefined;
}

export interface CreateOptions {
  readonly config: ConfigValues;
  readonly seed: number;
  /** Default the command line of this process. */
  readonly command?: readonly string[];
  /** Processes that share each batch. Default 1. */
  readonly processes?: number;
  /** What validation measures, for a problem from a module. Default: from the configuration. */
  readonly measure?: Validation;
}

/** Makes a run folder and locks it. A folder that holds a run, or anything else, is rejected. */
export function createRun(path: string, options: CreateOptions): OwnedRunFolder {
  if (isRun(path)) throw new InputError('there is already a run: resume it, or choose another name', { file: path });
  const lock = lockFolder(path);
  try {
    // Checked again, now that no other process can be creating it.
    if (isRun(path)) throw new InputError('another run was just created there: choose another name', { file: path });
    const foreign = readdirSync(path).filter((name) => !OWN_NAMES.has(name) && !isTemporary(name));
    if (foreign.length > 0) {
      throw new InputError(`the folder is not empty (it holds ${foreign[0]}): choose another name`, { file: path });
    }
    const checkpoints = checkpointFolder(path);
    makeFolder(checkpoints);
    const [checkpoint] = readdirSync(checkpoints).filter((name) => !isTemporary(name));
    if (checkpoint !== undefined) {
      throw new InputError(`the folder is not empty (it holds checkpoints/${checkpoint}): choose another name`, {
        file: path,
      });
    }
    removeTemporaryFiles(lock, path, checkpoints);
    writeAsOwner(lock, join(path, CONFIG), resolvedYaml(options.config));
    const info: RunInfo = {
      name: basename(resolve(path)),
      seed: options.seed,
      version: toolVersion,
      ...runtimeVersions(),
      created: new Date().toISOString(),
      state: 'running',
      command: options.command ?? process.argv,
      ...(options.processes === undefined || options.processes === 1 ? {} : { processes: options.processes }),
      ...(options.measure === undefined ? {} : { measure: options.measure }),
    };
    // Last: its presence makes the folder a run.
    writeInfo(path, info, lock);
    return { path, info, config: readConfig(path), lock, before: undefined };
  } catch (error) {
    lock.release();
    throw fileError(error, 'write', path);
  }
}

/** Opens a run folder for reading, even while another process writes to it. */
export function openRun(path: string): RunFolder {
  if (!isRun(path)) throw new InputError('not a run folder: it has no run.json', { file: path });
  return { path, info: readInfo(path), config: readConfig(path) };
}

export interface ResumeOptions extends LockOptions {
  /** The configuration the run should continue with. Default the saved one. */
  readonly config?: ConfigValues;
  /** Default the command line of this process. */
  readonly command?: readonly string[];
  /** Processes that share each batch; another number than the run was started with is rejected. Default 1. */
  readonly processes?: number;
}

/** Locks a run folder to continue with it. Another configuration, or another version of the tool, is rejected. */
export function resumeRun(path: string, options: ResumeOptions = {}): OwnedRunFolder {
  if (!isRun(path)) throw new InputError('there is no run to resume: the folder has no run.json', { file: path });
  const lock = lockFolder(path, options);
  try {
    makeFolder(checkpointFolder(path));
    // Before anything is read: a process that has lost the folder can no longer write to it.
    removeTemporaryFiles(lock, path, checkpointFolder(path));
    const { info, config: saved } = openRun(path);
    requireCompatible(info.version, join(path, INFO));
    const config = options.config ?? saved;
    requireSameConfig(saved, config, join(path, CONFIG));
    requireSameProcesses(info, options.processes ?? 1, join(path, INFO));
    if (differences(saved, plainValues(config)).length > 0) {
      writeAsOwner(lock, join(path, CONFIG), resolvedYaml(config));
    }
    const resumed: RunInfo = { ...info, state: 'running', command: options.command ?? process.argv };
    writeInfo(path, resumed, lock);
    return { path, info: resumed, config: readConfig(path), lock, before: info.state };
  } catch (error) {
    lock.release();
    throw fileError(error, 'write', path);
  }
}

/** Whether the folder holds a run. */
export function isRun(path: string): boolean {
  return existsSync(join(path, INFO));
}

/** The configuration of a run. */
export function runConfigFile(run: string): string {
  return join(run, CONFIG);
}

/** The files that describe a run: its configuration and its outcome. */
export function descriptionFiles(run: string): string[] {
  return [join(run, INFO), runConfigFile(run)];
}

/** A run folder that was found. */
export interface FoundRun {
  readonly path: string;
  /** Path below the searched folder, with slashes; for that folder itself its name. */
  readonly name: string;
}

export interface FindOptions {
  /** Maximum search depth below the folder. Default: any. */
  readonly depth?: number;
  /** Follow links to folders; none is visited twice. Default true. */
  readonly links?: boolean;
}

/**
 * The run folders in a folder, or that folder itself, in the order of their names. A folder with a configuration and
 * checkpoints but no `run.json` also counts: it is being created or copied, and `isRun` is false for it.
 */
export function findRunFolders(root: string, options: FindOptions = {}): Generator<FoundRun> {
  const holdsRun = (names: readonly string[]) =>
    names.includes(INFO) || (names.includes(CONFIG) && names.includes('checkpoints'));
  return foldersHolding(root, holdsRun, options);
}

/** Folders whose entries match the search, without those inside them. */
export function* foldersHolding(
  root: string,
  holds: (names: readonly string[]) => boolean,
  { depth = Number.POSITIVE_INFINITY, links = true }: FindOptions = {},
): Generator<FoundRun> {
  const seen = new Set<string>();
  yield* search(root, depth);

  function* search(folder: string, left: number): Generator<FoundRun> {
    const real = realpathSync(folder);
    if (seen.has(real)) return;
    seen.add(real);
    const entries = listing(folder);
    if (holds(entries.map(({ name }) => name))) {
      const name = relative(root, folder).split(sep).join('/') || basename(real);
      yield { path: folder, name };
      return;
    }
    if (left === 0) return;
    for (const entry of entries) {
      const path = join(folder, entry.name);
      if (!entry.name.startsWith('.') && isFolder(entry, path, links)) yield* search(path, left - 1);
    }
  }
}

function isFolder(entry: Dirent, path: string, links: boolean): boolean {
  if (!entry.isSymbolicLink()) return entry.isDirectory();
  return links && (statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false);
}

/** Empty for an unreadable folder: its content is not ours. */
function listing(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).sort((a, b) => byNumberAndName(a.name, b.name));
  } catch {
    return [];
  }
}

const byNumberAndName = new Intl.Collator('en', { numeric: true }).compare;

/** Whether a process is working on the run, as far as can be determined. */
export function isRunning(path: string): boolean {
  return lockHolder(lockPath(path)) !== undefined;
}

/** Writes the state of a run into its `run.json`. */
export function recordState(run: OwnedRunFolder, state: RunState): void {
  writeInfo(run.path, { ...run.info, state }, run.lock);
}

/** Rejects a configuration that differs in keys that can change the results, and names them. */
export function requireSameConfig(saved: ConfigValues, now: ConfigValues, file: string): void {
  const changed = differences(saved, plainValues(now)).filter(
    ({ key }) => !freeOnResume.some((free) => key === free || key.startsWith(`${free}.`)),
  );
  if (changed.length === 0) return;
  const list = changed.map(({ key, a, b }) => `${key} was ${shown(a)} and is now ${shown(b)}`).join('; ');
  throw new InputError(`the run cannot be resumed with another configuration: ${list}`, { file });
}

/** Another number would split batches differently and change the last bits of the results. */
function requireSameProcesses({ processes = 1 }: RunInfo, now: number, file: string): void {
  if (processes === now) return;
  const command = processes === 1 ? 'start it without mpirun' : `start it with mpirun -n ${processes}`;
  throw new InputError(
    `the run was started with ${processes} process(es) and cannot continue with ${now}: ${command}`,
    {
      file,
    },
  );
}

/** Rejects what a version of the tool with another major or minor number has saved. */
export function requireCompatible(version: string, file: string): void {
  if (compatible(version, toolVersion)) return;
  throw new InputError(`it was written by tcts ${version}, which tcts ${toolVersion} cannot resume`, { file });
}

function lockFolder(path: string, options?: LockOptions): Lock {
  makeFolder(path);
  return acquireLock(lockPath(path), options);
}

function lockPath(path: string): string {
  return join(path, 'run.lock');
}

function readConfig(path: string): ConfigValues {
  const file = join(path, CONFIG);
  return parseSource(readText(file), file).values;
}

function readInfo(path: string): RunInfo {
  const file = join(path, INFO);
  try {
    const info = JSON.parse(readText(file)) as RunInfo;
    if (typeof info.version === 'string' && typeof info.state === 'string') return info;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new InputError('expected the description of a run in JSON, with its version and state', { file });
}

function writeInfo(path: string, info: RunInfo, owner: Owner): void {
  writeAsOwner(owner, join(path, INFO), `${JSON.stringify(info, null, 2)}\n`);
}

/** Files that a killed process, or one that has lost the folder, was writing: see `Owner`. */
function removeTemporaryFiles(owner: Owner, ...folders: readonly string[]): void {
  owner.requireHeld();
  for (const folder of folders) {
    for (const name of readdirSync(folder)) {
      if (isTemporary(name)) rmSync(join(folder, name), { force: true });
    }
  }
}

/** As they will be when read again: keys whose value is undefined are not written. */
function plainValues(config: ConfigValues): ConfigValues {
  return parseSource(resolvedYaml(config), '').values;
}

function shown(value: unknown): string {
  return value === undefined ? 'absent' : JSON.stringify(value);
}

/** Files of a run folder; others have their own constants where they are written. */
const CONFIG = 'config.yaml';
const INFO = 'run.json';

const OWN_NAMES = new Set(['run.lock', 'run.lock.takeover', CONFIG, 'checkpoints']);

const range = z.tuple([z.string(), z.string()]).readonly();

const memberSchema = z.object({
  /** Of its folder in `members/`. */
  name: z.string().regex(/^\w[\w.=,+-]*$/),
  seed: z.number(),
  /** First and last day of each part, if members differ in them. */
  window: z.object({ train: range, validation: range, test: range }).optional(),
});

const fileSchema = z.object({ members: z.array(memberSchema).min(1) });

/** One of the runs that a run consists of: a run folder in `members/` of the folder of the whole. */
export type Member = Readonly<z.output<typeof memberSchema>>;

/** The members of a run, in order of their windows and then seeds; undefined for a run that was trained by itself. */
export function readMembers(run: string): readonly Member[] | undefined {
  const file = join(run, MEMBERS_FILE);
  return existsSync(file) ? readJsonFile(file, fileSchema).members : undefined;
}

/** The list of members as JSON. */
export function membersJson(members: readonly Member[]): string {
  const plain = members.map(({ name, seed, window }) => ({ name, seed, window }));
  return `${JSON.stringify({ members: plain }, null, 1)}\n`;
}

/** The run folder of a member. */
export function memberFolder(run: string, name: string): string {
  return join(run, FOLDER, name);
}

/** The run that a run is a member of; the run itself if it is not one. */
export function wholeRun(run: string): string {
  const folder = dirname(resolve(run));
  const whole = dirname(folder);
  return basename(folder) === FOLDER && existsSync(join(whole, MEMBERS_FILE)) ? whole : run;
}

const FOLDER = 'members';

/** What a run that consists of others stores about them in its folder. */
export const MEMBERS_FILE = 'members.json';
