/**
 * A side written in JavaScript, run as its own process: `node serve.mjs MODULE OPTIONS-AS-JSON`.
 *
 * The module exports
 *
 *     async function setup(options) → { step, memory?, close }
 *
 * - `options` are those of the case: `workers` (worker threads sharing the batch), `threads` (of each session), and
 *   the case's own, such as `adam: true` for a step that includes the update.
 * - `step()` does one training step, also as a promise, and returns its loss if there is one: a loss that is not
 *   finite stops the bench. Everything that a training loop does once belongs into `setup`.
 * - `memory()` is the peak memory in MB if the process's own peak is not the right figure.
 * - `close()` ends threads.
 *
 * Between steps the side must be idle: the harness waits for it, and rejects a side that keeps a core busy. The
 * protocol is that of peers/protocol.py; nothing else may be written to stdout. Of several processes that mpirun has
 * started, the first is asked and answers; it has the others do the same.
 */

import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { launch } from '../dist/ranks.js';

const [modulePath, options] = process.argv.slice(2);
const { setup } = await import(pathToFileURL(modulePath).href);
const side = await setup(JSON.parse(options));
const job = launch();
const [RUN, QUIT] = ['SIGUSR2', 'SIGHUP'];

if (job === undefined || job.rank === 0) await serve(job === undefined ? [] : siblings());
else await follow();
await side.close();

async function serve(others) {
  const tell = (signal) => {
    for (const pid of others) process.kill(pid, signal);
  };
  answer('ready');
  for await (const request of createInterface({ input: process.stdin })) {
    if (request === 'run') {
      tell(RUN);
      answer(await timed());
    } else if (request === 'memory') answer((side.memory?.() ?? peakMemory()).toFixed(1));
    else if (request === 'facts') answer('{}');
    else if (request === 'quit') break;
    else throw new Error(`a side does not know the request "${request}"`);
  }
  tell(QUIT);
}

/** Requests come as signals: a process that waited for them inside MPI would not be idle. */
function follow() {
  const awake = setInterval(() => {}, 1 << 30);
  process.on(RUN, () => side.step());
  return new Promise((resolve) => process.once(QUIT, resolve)).finally(() => clearInterval(awake));
}

/** The other processes of the job. */
function siblings() {
  const parent = process.ppid;
  const children = readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').trim().split(' ');
  return children.map(Number).filter((pid) => pid !== process.pid);
}

async function timed() {
  const start = performance.now();
  const loss = await side.step();
  const milliseconds = (performance.now() - start).toFixed(4);
  return loss === undefined ? milliseconds : `${milliseconds} ${loss}`;
}

/** In MB. The kernel's VmHWM rather than ru_maxrss, which a process inherits from the one that started it. */
function peakMemory() {
  const status = readFileSync('/proc/self/status', 'utf8');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)[1]) / 1024;
}

function answer(line) {
  process.stdout.write(`${line}\n`);
}
