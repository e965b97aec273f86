// Loaded before a program (NODE_OPTIONS=--import …) to make it believe that it is on its own host, and to freeze it:
//   TEST_HOST       the name of the host
//   TEST_FREEZE_AT  number of the call that changes files, from 0, right before which the process stops itself (SIGSTOP)
//   TEST_TRACE      file that gets a list of these calls in JSON, when the process ends
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';

const { TEST_HOST, TEST_FREEZE_AT, TEST_TRACE } = process.env;
if (TEST_HOST !== undefined) os.hostname = () => TEST_HOST;

const write = fs.writeFileSync;
const calls = [];
for (const name of ['linkSync', 'renameSync', 'rmSync', 'unlinkSync', 'writeFileSync', 'writeSync', 'ftruncateSync']) {
  const call = fs[name];
  fs[name] = (...args) => {
    if (calls.length === Number(TEST_FREEZE_AT)) freeze();
    calls.push(`${name} ${args.filter((arg) => typeof arg === 'string').join(' ')}`);
    return call(...args);
  };
}
syncBuiltinESMExports();

/** On a busy machine, the signal may take a moment. */
function freeze() {
  process.kill(process.pid, 'SIGSTOP');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
}
if (TEST_TRACE !== undefined) process.on('exit', () => write(TEST_TRACE, JSON.stringify(calls)));
