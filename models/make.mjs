/**
 * Makes the bundled model, `models/verb-final`: `npm run model` (half a minute).
 *
 * Trains the shipped configuration `verb-final` for twice its usual time, and keeps of the run folder what translating
 * needs: the parameters of the best checkpoint without the state of optimiser and scheduler, the vocabularies and the
 * settings.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bestCheckpoint, checkpointFolder, saveBest } from '../dist/run/index.js';

// The model was made when this was the default.
const RATE = ['--set', 'strategy.learningRate=0.005'];
const TRAIN = ['train', 'verb-final', '--set', 'training.episodes=80', ...RATE];
const KEPT = ['config.yaml', 'model.json', 'text.json', 'dict.verb-final.txt', 'dict.english.txt'];
const target = fileURLToPath(new URL('verb-final', import.meta.url));
const main = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));

const scratch = mkdtempSync(join(tmpdir(), 'tcts-model-'));
try {
  execFileSync(process.execPath, [main, ...TRAIN], { cwd: scratch, stdio: 'inherit' });
  const run = join(scratch, 'runs/verb-final');
  rmSync(target, { recursive: true, force: true });
  mkdirSync(checkpointFolder(target), { recursive: true });
  for (const name of KEPT) cpSync(join(run, name), join(target, name));
  const { command: _, ...info } = JSON.parse(readFileSync(join(run, 'run.json'), 'utf8'));
  writeFileSync(join(target, 'run.json'), `${JSON.stringify({ ...info, command: ['tcts', ...TRAIN] }, null, 2)}\n`);
  const { step, tensors } = bestCheckpoint(checkpointFolder(run));
  const isParameter = (name) => name.startsWith('problem/model/') && !name.startsWith('problem/model/slot.');
  const parameters = new Map([...tensors].filter(([name]) => isParameter(name)));
  saveBest(checkpointFolder(target), { step, tensors: parameters, state: { subject: { problem: { model: null } } } });
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
const files = readdirSync(target, { recursive: true }).map((name) => statSync(join(target, name)));
const bytes = files.filter((file) => file.isFile()).reduce((sum, { size }) => sum + size, 0);
console.log(`models/verb-final: ${Math.ceil(bytes / 1000)} kB`);
