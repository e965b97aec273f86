import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { checkpointFolder, openRun } from '../../src/run/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { startTcts, startTctsBy, tcts } from './train-process.js';

const MARKET = `problem:
  kind: forecast
  data: {format: synthetic, stocks: 40, days: 120}
  split:
    train: ['2015-01-20', '2015-03-31']
    validation: ['2015-04-01', '2015-04-30']
    test: ['2015-05-01', '2015-06-10']
  features: {window: 4}
  model: {name: gru, hidden: 4, layers: 1}
  batch: {size: 50}
strategy: {name: mtl}
training: {episodes: 3, steps: 4}
saving: {everySteps: 1}
threads: 1
`;

function folderWith(config: string): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'small.yaml'), config);
  return folder;
}

test.each([
  ['strategy.name=learned', 'strategy.without=[nonsense]', /strategy\.without: .*nonsense/],
  ['strategy.name=fixed', 'strategy.task=99', /strategy\.task/],
])('bad input with two workers is said, and the process ends: %s %s', async (name, bad, sentence) => {
  const folder = folderWith(MARKET);
  const { child, ended } = startTcts(folder, 'train', 'small.yaml', '--set', 'workers=2', '--set', name, '--set', bad);
  onTestFinished(() => void child.kill('SIGKILL'));
  const end = await Promise.race([ended, sleep(45_000)]);
  expect(end).toMatchObject({ code: 1, stderr: expect.stringMatching(sentence) });
});

test('training that diverges says what was not finite at which update, what is kept and what to try', async () => {
  const folder = folderWith(MARKET);
  const { code, stderr } = await tcts(folder, 'train', 'small.yaml', '--set', 'problem.learningRate=1e30', '--quiet');
  // Adam's first update moves every parameter by the learning rate; the second forward pass overflows.
  expect(stderr).toMatch(
    /^tcts: runs\/small: training has diverged: the loss is \S+ at update 2: .*; the checkpoint of update 1 is kept; a lower learning rate \(problem\.learningRate\) may help\n$/,
  );
  expect(code).toBe(1);
  expect(readdirSync(checkpointFolder(join(folder, 'runs/small')))).toContain('step-000000001.safetensors');
});

describe('resuming a finished run', () => {
  test('whose best model is missing is refused, and the run and its result stay as they were', async () => {
    const folder = folderWith(MARKET);
    expect((await tcts(folder, 'train', 'small.yaml', '--quiet')).code).toBe(0);
    const run = join(folder, 'runs/small');
    const result = readFileSync(join(run, 'result.json'), 'utf8');
    const best = JSON.parse(result).best.update;
    rmSync(join(checkpointFolder(run), 'best.safetensors'));
    const { code, stderr, stdout } = await tcts(folder, 'train', '--resume', 'runs/small', '--quiet');
    expect(stderr).toBe(
      `tcts: runs/small/checkpoints/best.safetensors: expected the best model of the run, that of update ${best}, ` +
        'but it is missing; result.json is left as it was\n',
    );
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(readFileSync(join(run, 'result.json'), 'utf8')).toBe(result);
    expect(openRun(run).info.state).toBe('finished');
  });

  test('whose last checkpoint is damaged says so even with --quiet, and comes to the same end', async () => {
    const folder = folderWith(MARKET);
    expect((await tcts(folder, 'train', 'small.yaml', '--quiet')).code).toBe(0);
    const run = join(folder, 'runs/small');
    const metrics = readFileSync(join(run, 'metrics.jsonl'), 'utf8');
    truncateSync(join(checkpointFolder(run), 'step-000000012.safetensors'), 100);
    rmSync(join(run, 'timings.jsonl'));
    const { code, stderr } = await tcts(folder, 'train', '--resume', 'runs/small', '--quiet');
    expect(stderr).toMatch(/^warning: the checkpoint is damaged and was skipped: .*step-000000012\.safetensors.*\n$/);
    expect(code).toBe(0);
    expect(readFileSync(join(run, 'metrics.jsonl'), 'utf8')).toBe(metrics);
  });
});

test('what a killed evaluation was writing is removed by the next one', { timeout: 120_000 }, async () => {
  const folder = folderWith(MARKET);
  expect((await tcts(folder, 'train', 'small.yaml', '--quiet')).code).toBe(0);
  const evaluation = join(folder, 'runs/small/evaluation');
  const preload = fileURLToPath(new URL('../run/other-host.mjs', import.meta.url));
  // Right before the first file that it has written gets its name.
  const environment = ['env', `NODE_OPTIONS=--import ${preload}`, 'TEST_FREEZE_AT=1'];
  const { child, ended } = startTctsBy(environment, folder, 'evaluate', 'runs/small');
  while (temporaries(evaluation).length === 0) await sleep(20);
  child.kill('SIGKILL');
  await ended;
  expect(temporaries(evaluation)).toHaveLength(1);
  // One that another process of this machine is at stays.
  const [abandoned] = temporaries(evaluation);
  const living = join(evaluation, abandoned.replace(`.${child.pid}.`, `.${process.pid}.`));
  expect(living).not.toBe(join(evaluation, abandoned));
  writeFileSync(living, '');
  expect((await tcts(folder, 'evaluate', 'runs/small')).code).toBe(0);
  expect(temporaries(evaluation).map((path) => join(evaluation, path))).toEqual([living]);
});

function temporaries(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return (readdirSync(folder, { recursive: true }) as string[]).filter((path) => path.endsWith('.tmp'));
}
