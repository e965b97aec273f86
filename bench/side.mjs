/** The harness's end of a side: a child process that does one step when asked. */

import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { peerEnvironment } from './environment.mjs';

/**
 * Starts a side and waits until it is ready.
 *
 * @param {import('./cases.mjs').SideSource} source
 * @param {string | undefined} python interpreter for scripts
 * @param {Parameters<typeof peerEnvironment>[0]} [way] of running a script
 */
export async function startSide(source, python, way) {
  const label = source.script ?? `${source.module} ${JSON.stringify(source.options ?? {})}`;
  const ours = [process.execPath, path('./serve.mjs'), path(source.module ?? ''), JSON.stringify(source.options ?? {})];
  const [command, ...args] = source.processes === undefined ? ours : [...mpirun(source.processes), ...ours];
  const child =
    source.script === undefined
      ? launch(command, args)
      : launch(python, [path(`./peers/${source.script}`), ...(source.args ?? [])], peerEnvironment(way));
  const errors = [];
  child.stderr.on('data', (text) => errors.push(text));
  child.stdin.on('error', () => {}); // A side that died is reported by `receive`, with what it wrote to stderr.
  const exited = new Promise((resolve) => child.once('close', resolve));
  const spawnFailure = new Promise((_, reject) => child.once('error', reject));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();

  const receive = async () => {
    const { value, done } = await Promise.race([lines.next(), spawnFailure]);
    if (!done) return value;
    await exited;
    throw new Error(`${label} ended early: ${Buffer.concat(errors).toString().trim() || 'without a word'}`);
  };
  const ask = (request) => {
    child.stdin.write(`${request}\n`);
    return receive();
  };

  const first = await receive();
  if (first !== 'ready') throw new Error(`${label} should have begun with "ready", not "${first}"`);

  return {
    /** Milliseconds of one step, on the clock and of all cores together, after which the side is idle again. */
    async run() {
      const before = processorTime(child.pid);
      const [milliseconds, loss] = (await ask('run')).split(' ').map(Number);
      const processor = processorTime(child.pid) - before;
      if (!(milliseconds > 0)) throw new Error(`${label} answered a step with ${milliseconds} ms`);
      if (loss !== undefined && !Number.isFinite(loss)) throw new Error(`${label} has a loss of ${loss}`);
      await idle(child.pid, label);
      return { milliseconds, processor, loss };
    },
    /** Milliseconds of processor time of all its threads so far, in steps of 10. */
    processorTime: () => {
      const stat = readIfPresent(`/proc/${child.pid}/stat`);
      const [user, system] = stat
        .slice(stat.lastIndexOf(')') + 2)
        .split(' ')
        .slice(11, 13);
      return 10 * (Number(user) + Number(system));
    },
    /** Peak memory in MB. */
    memory: async () => Number(await ask('memory')),
    facts: async () => JSON.parse(await ask('facts')),
    async quit() {
      child.stdin.end('quit\n');
      await Promise.race([exited, sleep(5000, undefined, { ref: false })]);
      child.kill('SIGKILL');
    },
  };
}

function launch(command, args, env = process.env) {
  return spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], env });
}

function mpirun(processes) {
  return ['mpirun', '--allow-run-as-root', '--oversubscribe', '-n', String(processes)];
}

/** @param {string} relative */
function path(relative) {
  return fileURLToPath(new URL(relative, import.meta.url));
}

const LOOKS = 4;
const BETWEEN_LOOKS_MS = 5;
const PATIENCE_MS = 2000;

/**
 * Waits until no thread of the process, or of a process that it has started, wants a core. Thread pools spin for a while after their last task (OpenBLAS
 * about 30 ms); the other side's step must not begin before.
 */
async function idle(pid, label) {
  const deadline = performance.now() + PATIENCE_MS;
  for (let quiet = 0; quiet < LOOKS; ) {
    await sleep(BETWEEN_LOOKS_MS);
    quiet = [pid, ...childrenOf(pid)].some(wantsCore) ? 0 : quiet + 1;
    if (performance.now() > deadline) throw new Error(`${label} keeps a core busy between its steps`);
  }
}

/** Whether a thread is running or waiting to run, state R: that shows a spinning thread on a busy machine too. */
function wantsCore(pid) {
  return readdirSync(`/proc/${pid}/task`).some((thread) => {
    const stat = readIfPresent(`/proc/${pid}/task/${thread}/stat`);
    return stat.charAt(stat.lastIndexOf(')') + 2) === 'R';
  });
}

function childrenOf(pid) {
  return readIfPresent(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean);
}

/** Milliseconds that the threads of a process, and of those that it has started, have been running. */
function processorTime(pid) {
  const threads = [pid, ...childrenOf(pid)].flatMap((process) =>
    readdirSync(`/proc/${process}/task`).map((thread) => `/proc/${process}/task/${thread}/schedstat`),
  );
  return threads.reduce((sum, file) => sum + Number(readIfPresent(file).split(' ')[0]) / 1e6, 0);
}

/** A thread may end between the listing and the look. */
function readIfPresent(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
