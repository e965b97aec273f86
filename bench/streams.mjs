/**
 * How long a live stream waits for its output when many share one model:
 *
 *     node bench/streams.mjs RUN [--streams 50] [--seconds 30] [--policy wait-k:3] [--threads 1]
 *
 * `tcts serve` runs as its own process; each of the streams is a client that plays the run's example sentences at
 * one word a second over a WebSocket, beginning at a random moment. Timed are: from a word to the first token that is
 * written after it, for words after which one is; and from the end of a sentence to its last token.
 */

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { WebSocket } from 'ws';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    streams: { type: 'string', default: '50' },
    seconds: { type: 'string', default: '30' },
    policy: { type: 'string', default: 'wait-k:3' },
    threads: { type: 'string', default: '1' },
  },
});
const [run] = positionals;
if (run === undefined) throw new Error('expected the folder of a translation run');
const [streams, seconds] = [Number(values.streams), Number(values.seconds)];

const main = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const server = spawn(process.execPath, [main, 'serve', run, '--port', '0', '--threads', values.threads]);
let said = '';
server.stderr.setEncoding('utf8').on('data', (text) => (said += text));
try {
  const url = await address();
  const { runs } = await (await fetch(`${url}/api/translation`)).json();
  const examples = runs.find(({ id }) => id === basename(resolve(run))).examples.map(({ source }) => source);
  await play(url, examples, 1, () => false); // opens the model
  const waits = { word: [], end: [] };
  const [until, busy] = [performance.now() + 1000 * seconds, cpuSeconds()];
  const all = Array.from({ length: streams }, async (_, i) => {
    await sleep(1000 * Math.random());
    const rotated = examples.map((_, e) => examples[(e + i) % examples.length]);
    return play(url, rotated, 1000, () => performance.now() < until, waits, `127.0.0.${1 + (i % 200)}`);
  });
  await Promise.all(all);
  const spent = cpuSeconds() - busy;
  console.log(`${streams} streams, one word a second each, ${values.policy}, ${seconds} s`);
  for (const [name, times] of Object.entries(waits)) console.log(line(name, times));
  console.log(`processor time of the server: ${((100 * spent) / seconds).toFixed(0)} % of one core`);
  console.log(`memory of the server: ${memory()} MB`);
} finally {
  server.kill('SIGINT');
}

/** Plays sentences one after the other, a word every `pause` milliseconds, once, and on while `goOn`. */
async function play(url, sentences, pause, goOn, waits = { word: [], end: [] }, from = undefined) {
  // Loopback has many addresses: each stream is a client with its own limits.
  const live = `${url.replace('http', 'ws').replace('localhost', '127.0.0.1')}/live`;
  const socket = new WebSocket(live, { localAddress: from });
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  const send = (message) => socket.send(JSON.stringify({ lane: 'a', ...message }));
  let pending; // the moment of the last word, until something is written
  let notify = () => {};
  socket.on('message', (data) => {
    const message = JSON.parse(data);
    if (message.type === 'error') throw new Error(message.message);
    if (message.type === 'event' && message.action === 'WRITE' && pending !== undefined) {
      waits.word.push(performance.now() - pending);
      pending = undefined;
    }
    if (message.type === 'begun' || message.type === 'done') notify();
  });
  const heard = () =>
    new Promise((resolve) => {
      notify = resolve;
    });
  let at = 0;
  do {
    const begun = heard();
    send({ type: 'begin', run: basename(resolve(run)), policy: values.policy });
    await begun;
    for (const word of sentences[at++ % sentences.length].split(' ')) {
      pending = performance.now();
      send({ type: 'word', word });
      await sleep(pause);
    }
    pending = undefined;
    const [ended, done] = [performance.now(), heard()];
    send({ type: 'end' });
    await done;
    waits.end.push(performance.now() - ended);
  } while (goOn());
  socket.close();
}

async function address() {
  for await (const text of createInterface({ input: server.stderr })) {
    const [found] = /http:\S+/.exec(text) ?? [];
    if (found !== undefined) return found;
  }
  throw new Error(`the server did not start: ${said}`);
}

function line(name, times) {
  const sorted = times.sort((a, b) => a - b);
  const at = (share) => `${sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))].toFixed(1)} ms`;
  const what = { word: 'word → next token', end: 'end → last token' }[name];
  return `${what}: ${sorted.length} times, median ${at(0.5)}, 95 % within ${at(0.95)}, 99 % within ${at(0.99)}`;
}

/** Linux counts in hundredths of a second. */
function cpuSeconds() {
  const fields = readFileSync(`/proc/${server.pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

function memory() {
  const status = readFileSync(`/proc/${server.pid}/status`, 'utf8');
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)[1]) / 1024);
}
