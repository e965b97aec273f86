import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readMetrics } from '../../src/run/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { startTcts, tcts } from './train-process.js';

const CONFIG = `problem: {kind: known-answer}
strategy: {name: learned, hidden: [8]}
training: {episodes: 12, steps: 5}
logging: {everySteps: 20}
`;

function folderWith(config = CONFIG): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'small.yaml'), config);
  return folder;
}

test('a run leaves its figures in its folder', async () => {
  const folder = folderWith();
  const { code, stdout, stderr } = await tcts(folder, 'train', 'small.yaml', '--set', 'seed=3', '--quiet');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(
    /^finished after 60 updates\nbest validation loss [\d.]+, at update \d+\nthat model on test data: loss [\d.]+\nrun folder: runs\/small\nnext: (npx )?tcts report runs\/small\n$/,
  );

  const run = join(folder, 'runs/small');
  const records = readMetrics(join(run, 'metrics.jsonl'));
  expect(records.filter(({ episode }) => episode === undefined).map(({ step }) => step)).toEqual([
    1, 2, 5, 10, 20, 40, 60,
  ]);
  const episodes = records.filter(({ episode }) => episode !== undefined);
  expect(episodes.map(({ step }) => step)).toEqual(Array.from({ length: 12 }, (_, e) => 5 * (e + 1)));
  for (const { performance, reward, distribution, entropy, gradNorm } of episodes) {
    expect([performance, reward, entropy].every(Number.isFinite)).toBe(true);
    expect(Object.keys(distribution as object)).toEqual(['clean', 'main', 'off-60', 'off-120', 'off-180']);
    expect(gradNorm === null || Number.isFinite(gradNorm)).toBe(true);
  }
  const result = JSON.parse(readFileSync(join(run, 'result.json'), 'utf8'));
  const performances = episodes.map(({ performance }) => performance as number);
  expect(result).toMatchObject({ updates: 60, best: { performance: Math.max(...performances) } });
  expect(result.best.update).toBe(5 * (performances.indexOf(result.best.performance) + 1));

  const again = await tcts(folder, 'train', 'small.yaml');
  expect(again).toMatchObject({ code: 1, stdout: '' });
  expect(again.stderr).toMatch(/runs\/small: there is already a run: resume it, or choose another name\n$/);
});

test('--set gives the strategy that a shorthand names its keys, in whatever order they come', async () => {
  const folder = folderWith();
  const set = ['--set', 'strategy.easiest=first', '--strategy', 'curriculum'];
  expect((await tcts(folder, 'train', 'small.yaml', ...set, '--quiet')).code).toBe(0);
  expect(readFileSync(join(folder, 'runs/small/config.yaml'), 'utf8')).toMatch(
    /name: curriculum\n {2}easiest: first\n/,
  );
});

test('results can be printed as JSON, and resuming a finished run only prints them', async () => {
  const folder = folderWith();
  const first = await tcts(folder, 'train', 'small.yaml', '--set', 'strategy.name=mtl', '--json', '--quiet');
  expect(first.code).toBe(0);
  expect(JSON.parse(first.stdout)).toMatchObject({
    folder: 'runs/small',
    updates: 60,
    test: { loss: expect.any(Number) },
  });
  const again = await tcts(folder, 'train', '--resume', 'runs/small', '--json', '--quiet');
  expect(again).toMatchObject({ code: 0, stdout: first.stdout });
});

test('Ctrl-C saves and says how to continue', { timeout: 60_000 }, async () => {
  const folder = folderWith(CONFIG.replace('episodes: 12', 'episodes: 100000'));
  const { child, ended } = startTcts(folder, 'train', 'small.yaml', '--set', 'logging.progressSeconds=0.05');
  child.stderr.once('data', () => child.kill('SIGINT'));
  const { code, stderr } = await ended;
  expect(code).toBe(130);
  expect(stderr).toMatch(/to continue: tcts train --resume runs\/small\n$/);
  expect(stderr).toMatch(/loss [\d.]+.*(clean|main|off)-?\d* \d+ %/);
  const other = await tcts(folder, 'train', '--resume', 'runs/small', '--set', 'seed=9');
  expect(other).toMatchObject({ code: 1 });
  expect(other.stderr).toMatch(/seed/);
});

test('two processes cannot train in one folder', { timeout: 60_000 }, async () => {
  const folder = folderWith(CONFIG.replace('episodes: 12', 'episodes: 100000'));
  const { child, ended } = startTcts(folder, 'train', 'small.yaml', '--set', 'logging.progressSeconds=0.05');
  const running = new Promise((resolve) => child.stderr.once('data', resolve));
  await running;
  const second = await tcts(folder, 'train', '--resume', 'runs/small');
  child.kill('SIGKILL');
  await ended;
  expect(second.code).toBe(1);
  expect(second.stderr).toMatch(/process \d+/);
});

test('early stopping ends a run, and is refused where it cannot be meant', { timeout: 60_000 }, async () => {
  const folder = folderWith(CONFIG.replace('episodes: 12', 'episodes: 100000'));
  const stop = ['--set', 'earlyStopping.patience=5', '--quiet', '--json'];
  const { code, stdout } = await tcts(folder, 'train', 'small.yaml', '--set', 'strategy.name=fixed', ...stop);
  expect(code).toBe(0);
  const { updates, best, stoppedEarly } = JSON.parse(stdout);
  expect(updates).toBe(best.update + 5 * 5);
  expect(stoppedEarly).toBe(true);

  // Stopped between the best model and the end, a run continues counting where it was.
  const paused = ['train', 'small.yaml', '--set', 'strategy.name=fixed', '--set', 'name=paused', ...stop.slice(0, 3)];
  expect(await tcts(folder, ...paused, '--until', String(best.update + 12))).toMatchObject({ code: 0, stdout: '' });
  const resumed = await tcts(folder, 'train', '--resume', 'runs/paused', '--quiet');
  expect(resumed.stdout).toContain(`finished after ${updates} updates, as the last 5 validations were no better\n`);
  for (const file of ['result.json', 'metrics.jsonl']) {
    const [whole, parts] = ['small', 'paused'].map((run) => readFileSync(join(folder, 'runs', run, file), 'utf8'));
    expect(parts).toBe(whole);
  }
  const refused = await tcts(
    folder,
    'train',
    'small.yaml',
    '--set',
    'strategy.name=best-fixed',
    '--set',
    'name=b',
    ...stop,
  );
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toContain('earlyStopping.patience: best-fixed trains 5 models in sequence');
});

test.each([
  [['train', 'absent.yaml'], /absent\.yaml.* does not exist/],
  [['train', '.'], /\.: it is a folder, expected a configuration file/],
  [['train', 'small.yaml', '--resume'], /runs\/small: there is no run to resume/],
  [['train', 'small.yaml', '--set', 'strategy.nam=mtl'], /strategy\.nam: .*name/],
  [['train', 'small.yaml', '--set', 'strategy.without=[los]'], /strategy\.without: there is no feature group "los"/],
])('%j is refused with one sentence', async (args, sentence) => {
  const { code, stdout, stderr } = await tcts(folderWith(), ...args);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(sentence);
  expect(stderr).not.toMatch(/ {4}at |internal error/);
  expect(stderr.trimEnd().split('\n')).toHaveLength(1);
});
