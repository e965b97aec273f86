import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import { builtFile } from '../files.js';
import { INTERRUPTED } from '../run/progress.js';
import type { Outcome } from './job.js';

export interface StopOptions {
  /** Fires to let the process save its state and stop. */
  readonly signal?: AbortSignal;
  /** Fires when it must be gone, saved or not. */
  readonly kill?: AbortSignal;
}

/**
 * Runs the tool as a separate process. When `signal` fires, or when this process dies, it is asked to save its state and
 * stop. It does not get the Ctrl-C that a terminal sends to all.
 */
export async function runTool(args: readonly string[], { signal, kill }: StopOptions = {}): Promise<Outcome> {
  if (signal?.aborted) return { state: 'stopped' };
  const tether = pathToFileURL(builtFile('sweep/tether.js')).href;
  const child = spawn(process.execPath, ['--import', tether, builtFile('cli/main.js'), ...args], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    detached: true,
    windowsHide: true,
  });
  const release = pauseWithUs(child);
  const stop = () => child.kill('SIGTERM');
  const end = () => child.kill('SIGKILL');
  signal?.addEventListener('abort', stop, { once: true });
  kill?.addEventListener('abort', end, { once: true });
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-KEPT);
  });
  try {
    const [code, by] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
    if (code === 0) return { state: 'done' };
    if (kill?.aborted && by === 'SIGKILL') return { state: 'stopped' };
    if (signal?.aborted && (code === INTERRUPTED || by === 'SIGTERM')) return { state: 'stopped' };
    return { state: 'failed', reason: reasonOf(args[0], errors, code, by) };
  } catch (error) {
    return { state: 'failed', reason: `tcts ${args[0]} cannot be started: ${(error as Error).message}` };
  } finally {
    release();
    signal?.removeEventListener('abort', stop);
    kill?.removeEventListener('abort', end);
  }
}

const children = new Set<ChildProcess>();

/**
 * Ctrl-Z stops this process and, as the terminal does not reach them, its children too; `fg` and `bg` continue all. The
 * children get SIGSTOP: they are in sessions of their own without a terminal, where SIGTSTP has no effect.
 */
function pauseWithUs(child: ChildProcess): () => void {
  if (children.size === 0) {
    process.on('SIGTSTP', pause);
    process.on('SIGCONT', goOn);
  }
  children.add(child);
  return () => {
    children.delete(child);
    if (children.size > 0) return;
    process.off('SIGTSTP', pause);
    process.off('SIGCONT', goOn);
  };
}

function pause(): void {
  for (const child of children) child.kill('SIGSTOP');
  process.kill(process.pid, 'SIGSTOP');
}

function goOn(): void {
  for (const child of children) child.kill('SIGCONT');
}

/** The tool's last message, or else how it ended. */
function reasonOf(verb: string, errors: string, code: number | null, signal: NodeJS.Signals | null): string {
  const said = errors.slice(errors.lastIndexOf(SPEAKER) + SPEAKER.length);
  if (errors.includes(SPEAKER)) return said.trim().replaceAll('\n', '; ');
  const end = signal === null ? `with code ${code}` : `by ${signal}`;
  const lines = errors.trim().split('\n');
  const told = lines.findLast((line) => /^\w*Error\b/.test(line)) ?? lines.at(-1);
  return `tcts ${verb} was ended ${end}${told ? `: ${told}` : ''}`;
}

/** How error messages of the tool begin. */
const SPEAKER = 'tcts: ';

/** Characters of the error output that are kept. */
const KEPT = 10_000;
