/**
 * Builds everything into dist: the WebAssembly kernels, the library with the command line, and the page. On a terminal a
 * line says what is being done and for how long; what a step prints is shown where it fails.
 *
 *     node build.mjs
 */

import { spawn } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(fileURLToPath(import.meta.url));
const STEPS = [
  ['WebAssembly kernels', 'asc assembly/kernels.ts --config assembly/asconfig.json --target release'],
  ['WebAssembly trees', 'asc assembly/trees.ts --config assembly/trees.asconfig.json --target release'],
  ['the library', 'tsc -p tsconfig.build.json'],
  ['the library', 'node remove-stale.mjs'],
  ['the page', 'tsc -p page'],
  ['the page', 'node page/build.mjs'],
];

const began = performance.now();
const line = (text) => process.stderr.isTTY && process.stderr.write(`\r\x1b[K${text}`);
for (const [i, [what, command]] of STEPS.entries()) {
  const show = () =>
    line(`building ${what} (${i + 1} of ${STEPS.length}), ${((performance.now() - began) / 1000).toFixed(0)} s`);
  show();
  const timer = setInterval(show, 200);
  const { code, printed } = await run(command);
  clearInterval(timer);
  line('');
  if (code === 0) continue;
  process.stderr.write(`${printed}building ${what} failed: ${command}\n`);
  process.exit(1);
}

// In a clone, npx runs the file itself.
chmodSync(join(root, 'dist/cli/main.js'), 0o755);

/** Runs a command with the tools of the project. */
function run(command) {
  const path = `${join(root, 'node_modules/.bin')}${process.platform === 'win32' ? ';' : ':'}${process.env.PATH}`;
  const child = spawn(command, { cwd: root, shell: true, env: { ...process.env, PATH: path } });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (printed += text));
  return new Promise((resolve) => {
    child.on('error', (error) => resolve({ code: 1, printed: `${error.message}\n` }));
    child.on('close', (code) => resolve({ code, printed }));
  });
}
