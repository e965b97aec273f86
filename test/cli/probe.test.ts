import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { readMetrics } from '../../src/run/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { startTcts, tcts } from './train-process.js';

const demo = fileURLToPath(new URL('../../configs/demo.yaml', import.meta.url));

// Long enough to be stopped in the middle.
const LONG = `problem: {kind: known-answer}
strategy: {name: learned, hidden: [8]}
training: {episodes: 30000, steps: 10}
logging: {progressSeconds: 0.05}
`;

function folderWith(config = LONG): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'long.yaml'), config);
  return folder;
}

/** What a probe has measured, without what depends on the machine. */
function measured(folder: string) {
  const { configured: _, ...result } = JSON.parse(readFileSync(join(folder, 'probe.json'), 'utf8'));
  const branches = readMetrics(join(folder, 'branches.jsonl')).map(({ seconds: _, ...branch }) => branch);
  return { result, branches };
}

test('a probe of the demo prints its matrix, keeps it, and advises', { timeout: 60_000 }, async () => {
  const folder = temporaryFolder();
  const { code, stdout, stderr } = await tcts(folder, 'probe', demo, '--budget', '0.5', '--quiet');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/half off-180, against main alone +−[\d.]+ +−[\d.]+ % +−[\d.]+ to −[\d.]+ +0\.\d+ +hurts/);
  expect(stdout).toMatch(
    /\nThe sibling clean helps, but the siblings off-120 and off-180 hurt\.\nrecommended: strategy: {name: influence}\nexpected time: /,
  );
  expect(stdout).toMatch(/\nresults: runs\/demo-probe\n$/);
  const out = join(folder, 'runs/demo-probe');
  const { result, branches } = measured(out);
  // 8 seeds of 10 arms, and the line that says what is in the file.
  expect(branches).toHaveLength(81);
  expect(result).toMatchObject({
    format: 'tcts probe 1',
    plan: { updates: 800 },
    recommendation: { helps: ['clean'] },
  });
  expect(readFileSync(join(out, 'transfer.svg'), 'utf8')).toMatch(/^<svg [\s\S]*off-180[\s\S]*<\/svg>\n$/);
  expect(readFileSync(join(out, 'transfer.csv'), 'utf8').trim().split('\n')).toHaveLength(1 + 9);

  // Once more: nothing is left to do.
  const again = await tcts(folder, 'probe', demo, '--budget', '0.5', '--quiet');
  expect(again.stdout.replace(/^The configured.*\n/m, '')).toBe(stdout.replace(/^The configured.*\n/m, ''));
  const other = await tcts(folder, 'probe', demo, '--budget', '0.4');
  expect(other.code).toBe(1);
  expect(other.stderr).toMatch(/branches\.jsonl: it was started with a different budget/);
  const changed = await tcts(folder, 'probe', demo, '--budget', '0.5', '--set', 'threads=1');
  expect(changed.code).toBe(1);
  expect(changed.stderr).toMatch(/threads was 2 and is now 1/);
});

test('what it says before it starts is what it does', async () => {
  const folder = temporaryFolder();
  const { code, stderr } = await tcts(folder, 'probe', demo);
  expect(code).toBe(0);
  // 1600 updates a training: 8 seeds · (8 + 6 · 2) are a tenth.
  expect(stderr).toMatch(
    /^main task main, siblings clean, off-60, off-120, off-180\n8 seeds, each with 6 branches of 2 updates from a checkpoint, 8 updates of common training before it \(0\.5 % of a training\)\n/,
  );
  expect(stderr).toMatch(
    /\n160 updates, 10 % of a training: about \d+s; the training as configured takes about \d+s\n/,
  );
});

test('--write makes a configuration that trains', { timeout: 60_000 }, async () => {
  const folder = temporaryFolder();
  const set = ['--set', 'training.episodes=60', '--set', 'strategy.hidden=[8]', '--budget', '2'];
  const { code, stdout } = await tcts(
    folder,
    'probe',
    demo,
    ...set,
    '--write',
    'probed.yaml',
    '--out',
    'out',
    '--seeds',
    '3',
    '--quiet',
  );
  expect(code).toBe(0);
  expect(stdout).toMatch(/\nresults: out\nconfiguration: probed\.yaml\n$/);
  // So few updates show nothing; with these seeds fixed has the better mean.
  expect(stdout).toContain('No difference can be seen. fixed has the better mean');
  const written = readFileSync(join(folder, 'probed.yaml'), 'utf8');
  expect(written).toBe(`# Written by tcts probe: ${/^No difference.*$/m.exec(stdout)![0]}
extends: ${relative(folder, demo)}
training:
  episodes: 60
strategy:
  name: fixed
  task: null
`);
  const trained = await tcts(folder, 'train', 'probed.yaml', '--json', '--quiet');
  expect(JSON.parse(trained.stdout)).toMatchObject({ folder: 'runs/probed', updates: 120 });
});

test('killed or interrupted, it goes on to the same result', { timeout: 120_000 }, async () => {
  const folder = folderWith();
  expect((await tcts(folder, 'probe', 'long.yaml', '--out', 'whole', '--quiet')).code).toBe(0);
  const log = join(folder, 'parts/branches.jsonl');
  const lines = () => (existsSync(log) ? readFileSync(log, 'utf8').split('\n').length - 1 : 0);
  const args = ['probe', 'long.yaml', '--out', 'parts'];
  for (const signal of ['SIGKILL', 'SIGINT'] as const) {
    const before = lines();
    const { child, ended } = startTcts(folder, ...args);
    while (lines() < before + 12 && child.exitCode === null) await sleep(5);
    child.kill(signal);
    const { code, stderr } = await ended;
    if (signal === 'SIGINT') {
      expect(code).toBe(130);
      expect(stderr).toMatch(/updates \(\d+ are done\)[\s\S]*stopped; the same command continues from here\n$/);
    }
    expect(lines()).toBeGreaterThan(before);
    expect(lines()).toBeLessThan(100);
  }
  // A power cut in the middle of a line.
  appendFileSync(log, '{"seed":1,"check');
  expect((await tcts(folder, ...args, '--quiet')).code).toBe(0);
  expect(measured(join(folder, 'parts'))).toEqual(measured(join(folder, 'whole')));
});

test('two processes cannot probe in one folder', { timeout: 60_000 }, async () => {
  const folder = folderWith();
  const { child, ended } = startTcts(folder, 'probe', 'long.yaml', '--out', 'out');
  while (!existsSync(join(folder, 'out/branches.jsonl')) && child.exitCode === null) await sleep(5);
  // It stands still meanwhile, so that it cannot be done before the second one looks.
  child.kill('SIGSTOP');
  const second = await tcts(folder, 'probe', 'long.yaml', '--out', 'out');
  child.kill('SIGKILL');
  await ended;
  expect(second.code).toBe(1);
  expect(second.stderr).toMatch(/process \d+/);
});

test.each([
  [['absent.yaml'], /absent\.yaml.* does not exist/],
  [['long.yaml', '--budget', '-0.1'], /--budget.*expected a number above 0/],
  [['long.yaml', '--budget', 'much'], /--budget.*expected a number above 0/],
  [
    ['long.yaml', '--budget', '0.0001'],
    /budget: 30 updates are too few for 6 branches with 5 seeds, expected at least 40/,
  ],
  [['long.yaml', '--seeds', '2'], /--seeds.*expected a whole number from 3 to 100/],
  [['long.yaml', '--trunk', '1.5'], /trunk: expected a share between 0 and 1, found 1\.5/],
  [['long.yaml', '--checkpoints', '0'], /--checkpoints.*expected a whole number from 1/],
  [['long.yaml', '--set', 'training.step=3'], /training\.step: .*steps/],
  [['long.yaml', '--write', 'long.yaml'], /long\.yaml: --write: it already exists/],
  [['long.yaml', '--write', 'nowhere/x.yaml'], /nowhere\/x\.yaml: --write: cannot write it/],
])('%j is refused', async (args, sentence) => {
  const folder = folderWith();
  const { code, stdout, stderr } = await tcts(folder, 'probe', ...args);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(sentence);
  expect(stderr).not.toMatch(/ {4}at |internal error/);
  expect(existsSync(join(folder, 'runs/long-probe/probe.json'))).toBe(false);
});

test('a file that is not the log of a probe is left alone', async () => {
  const folder = folderWith();
  const log = join(folder, 'branches.jsonl');
  writeFileSync(log, '{"step":1}\n');
  const { code, stderr } = await tcts(folder, 'probe', 'long.yaml', '--out', dirname(log));
  expect(code).toBe(1);
  expect(stderr).toMatch(/branches\.jsonl:1: it is not the record of a probe/);
  expect(readFileSync(log, 'utf8')).toBe('{"step":1}\n');
});
