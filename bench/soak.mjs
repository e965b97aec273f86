/**
 * Whether the server keeps up for long: many streams, some of whose clients vanish in the middle.
 *
 *     node bench/soak.mjs RUN [--streams 200] [--minutes 10] [--policy wait-k:3] [--pace 1] [--seed 1]
 *
 * Each stream plays example sentences of the run at `pace` words a second, one after the other, over a WebSocket of its
 * own. One sentence in ten is left: its connection is cut off, half of the time by a reset, at a random word. What
 * every other sentence came to is compared with what the server made of it alone, before. The server's memory is read
 * every ten seconds and printed for each minute: that of the last third of the time must not lie more than 10 % above
 * that of the middle third. Ends with exit code 1 if anything is wrong.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { WebSocket } from 'ws';
import { Random } from '../dist/random.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    streams: { type: 'string', default: '200' },
    minutes: { type: 'string', default: '10' },
    policy: { type: 'string', default: 'wait-k:3' },
    pace: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
  },
});
const [run] = positionals;
if (run === undefined) throw new Error('expected the folder of a translation run');
const [streams, minutes, pace] = [values.streams, values.minutes, values.pace].map(Number);
const name = basename(resolve(run));
const random = new Random(values.seed);

const main = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const server = spawn(process.execPath, [main, 'serve', run, '--port', '0']);
let said = '';
server.stderr.setEncoding('utf8').on('data', (text) => (said += text));
const counts = { complete: 0, wrong: 0, left: 0, refused: 0 };
const memory = [];
try {
  const url = await address();
  const { runs } = await (await fetch(`${url}/api/translation`)).json();
  const sentences = runs.find(({ id }) => id === name).examples.map(({ source }) => source);
  const expected = new Map();
  for (const sentence of sentences) expected.set(sentence, await play(url, sentence, { pause: 1 }));
  const [began, busy] = [performance.now(), cpuSeconds()];
  const until = began + 60_000 * minutes;
  const every = Math.min(10_000, 6000 * minutes);
  const watch = setInterval(() => memory.push(residentMegabytes()), every);
  await Promise.all(Array.from({ length: streams }, (_, i) => stream(i, url, sentences, expected, until)));
  clearInterval(watch);
  const seconds = (performance.now() - began) / 1000;
  const mean = (from, to) => {
    const part = memory.slice(Math.floor(from * memory.length), Math.ceil(to * memory.length));
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  };
  const [middle, last] = [mean(1 / 3, 2 / 3), mean(2 / 3, 1)];
  console.log(`${streams} streams, ${pace} words a second each, ${values.policy}, ${seconds.toFixed(0)} s`);
  console.log(
    `sentences: ${counts.complete} complete, of these ${counts.wrong} wrong; ${counts.left} left on the way; ${counts.refused} refused`,
  );
  console.log(`memory of the server: ${middle.toFixed(0)} MB in the middle third, ${last.toFixed(0)} MB in the last`);
  const perMinute = Math.max(1, Math.round(60_000 / every));
  const byMinute = memory.filter((_, i) => (i + 1) % perMinute === 0).map((value) => value.toFixed(0));
  console.log(`memory at the end of each minute, MB: ${byMinute.join(' ')}`);
  console.log(`processor time of the server: ${((100 * (cpuSeconds() - busy)) / seconds).toFixed(0)} % of one core`);
  const isFlat = last < 1.1 * middle;
  if (counts.wrong + counts.refused > 0 || !isFlat || server.exitCode !== null || /^\s+at /m.test(said)) {
    console.log(`failed${said === '' ? '' : `; the server said:\n${said}`}`);
    process.exitCode = 1;
  }
} finally {
  server.kill('SIGINT');
}

/** Plays sentences until the time is over, each over its own connection. */
async function stream(i, url, sentences, expected, until) {
  const own = random.fork(`stream ${i}`);
  await sleep(1000 * own.uniform());
  while (performance.now() < until) {
    const sentence = sentences[own.int(sentences.length)];
    const leaveAt = own.uniform() < 0.1 ? own.int(sentence.split(' ').length) : undefined;
    // Loopback has many addresses: each stream is a client with its own limits.
    const from = `127.0.${1 + Math.floor(i / 200)}.${1 + (i % 200)}`;
    try {
      const text = await play(url, sentence, { pause: 1000 / pace, leaveAt, from, reset: own.uniform() < 0.5 });
      if (text === undefined) counts.left++;
      else {
        counts.complete++;
        if (text !== expected.get(sentence)) counts.wrong++;
      }
    } catch (error) {
      counts.refused++;
      console.log(error.message);
    }
  }
}

/** What comes of a sentence; undefined if it was left at a word. */
async function play(url, sentence, { pause, leaveAt, from, reset = false }) {
  const socket = new WebSocket(`${url.replace('http', 'ws').replace('localhost', '127.0.0.1')}/live`, {
    localAddress: from,
  });
  await once(socket, 'open');
  let text = '';
  const done = new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.on('close', (code) => reject(new Error(`closed with ${code}`)));
    socket.on('message', (data) => {
      const message = JSON.parse(data);
      if (message.type === 'text') text += message.text;
      else if (message.type === 'done') resolve();
      else if (message.type === 'error') reject(new Error(message.message));
    });
  });
  done.catch(() => {});
  const send = (message) => socket.send(JSON.stringify({ lane: 'a', ...message }));
  send({ type: 'begin', run: name, policy: values.policy });
  for (const [i, word] of sentence.split(' ').entries()) {
    if (i === leaveAt) {
      if (reset) socket._socket.resetAndDestroy();
      else socket.terminate();
      return undefined;
    }
    if (socket.readyState !== WebSocket.OPEN) break;
    send({ type: 'word', word });
    await sleep(pause);
  }
  if (socket.readyState === WebSocket.OPEN) send({ type: 'end' });
  await done;
  // Until the server has let go of it: a stream has one connection at a time, however slow the machine is.
  const closed = once(socket, 'close');
  socket.close();
  await closed;
  return text;
}

async function address() {
  for await (const text of createInterface({ input: server.stderr })) {
    const [found] = /http:\S+/.exec(text) ?? [];
    if (found !== undefined) {
      said = '';
      return found;
    }
  }
  throw new Error(`the server did not start: ${said}`);
}

/** Linux counts in hundredths of a second. */
function cpuSeconds() {
  const fields = readFileSync(`/proc/${server.pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

function residentMegabytes() {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]) / 1024;
}
