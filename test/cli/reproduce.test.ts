import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../run/temporary.js';
import { tcts } from './train-process.js';

it.each([
  [
    'an experiment that is not in the paper',
    ['weather'],
    /there is no experiment "weather", expected stock, translation or scheduling/,
  ],
  [
    'the small scale without data',
    ['stock', '--scale', 'small'],
    /--data: missing, expected the path of qlib's folder/,
  ],
  ['data that are not there', ['stock', '--scale', 'full', '--data', 'none'], /--data: there is no none/],
  ['data for the smoke test', ['translation', '--data', 'x'], /--data: the smoke test has data of its own/],
  [
    'a scale that there is not',
    ['scheduling', '--scale', 'full'],
    /--scale: scheduling has no scale full, expected smoke/,
  ],
  [
    'many problems without their data',
    ['scheduling', '--scale', 'small'],
    /--data: missing, expected the path of a folder as described in docs\/scaling\.md/,
  ],
  ['seeds that are none', ['scheduling', '--seeds', '3-1'], /--seeds: expected whole numbers such as/],
  [
    'a beginning without a yes',
    ['stock'],
    /stock-smoke: 16 runs in runs\/stock-smoke[\s\S]*no terminal to ask on: use --yes/,
  ],
])('%s is refused', async (_, args, message) => {
  const folder = temporaryFolder();
  const { code, stderr } = await tcts(folder, 'reproduce', ...args);
  expect(code).toBe(1);
  expect(stderr).toMatch(message);
  expect(existsSync(join(folder, 'runs'))).toBe(false);
});

it('--dry-run lists the runs, says how long they will take, and begins none', { timeout: 60_000 }, async () => {
  const folder = temporaryFolder();
  const dry = ['reproduce', 'scheduling', '--dry-run', '--seeds', '7'];
  const { code, stdout, stderr } = await tcts(folder, ...dry, '--set', 'earlyStopping.patience=3');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^known-answer,strategy=mtl,seed=7 +to do +1 +\d+/m);
  expect(stderr).toMatch(/^16 trainings will take at most about \d+s on \d+ cores, by \d short trials; evaluations/m);
  const quiet = await tcts(folder, ...dry, '--quiet', '--json');
  expect(quiet.stderr).toBe('');
  const { runs, seconds } = JSON.parse(quiet.stdout);
  expect(runs).toHaveLength(16);
  expect(seconds).toBeGreaterThan(0);
  expect(existsSync(join(folder, 'runs'))).toBe(false);
});
