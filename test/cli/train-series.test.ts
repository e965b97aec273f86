import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../run/temporary.js';
import { startTcts, tcts } from './train-process.js';

const CONFIG = `problem:
  kind: series
  data: {format: csv, path: wave.csv, target: y}
  tasks: [1, 2, 4]
  main: 2
  window: 8
  model: {hidden: 8}
  batch: 32
  learningRate: 0.01
strategy: {name: learned, hidden: [8], without: [forecasts]}
training: {episodes: 20, steps: 10}
`;

/** A wave of 12 hours, which a window of 8 tells all about. */
function folderWith(): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'small.yaml'), CONFIG);
  const hour = (t: number) => new Date(Date.UTC(2020, 0, 1, t)).toISOString().slice(0, 16);
  const rows = Array.from({ length: 500 }, (_, t) => `${hour(t)},${5 * Math.sin((2 * Math.PI * t) / 12)},${t % 5}`);
  writeFileSync(join(folder, 'wave.csv'), `date,y,z\n${rows.join('\n')}\n`);
  return folder;
}

test('a series is trained, and a run that was killed ends as one that was not', { timeout: 120_000 }, async () => {
  const folder = folderWith();
  const saving = ['--set', 'saving.everySteps=7', '--set', 'logging.progressSeconds=0.05'];
  const whole = await tcts(folder, 'train', 'small.yaml', '--json', '--set', 'name=whole', ...saving);
  expect(whole.code).toBe(0);
  const result = JSON.parse(whole.stdout);
  expect(result.test.skill).toBeGreaterThan(0.9);
  // "No change" over two hours is wrong by 5·√2·sin(2π/12) on average.
  expect(result.test['raw MSE']).toBeCloseTo(12.5 * (1 - result.test.skill), 0);

  const { child, ended } = startTcts(folder, 'train', 'small.yaml', '--set', 'name=parts', ...saving);
  child.stderr.on('data', (text: Buffer) => {
    if (/step [2-9]\d\//.test(String(text))) child.kill('SIGKILL');
  });
  expect((await ended).signal).toBe('SIGKILL');
  const resumed = await tcts(folder, 'train', '--resume', 'runs/parts', '--json', '--quiet');
  expect({ ...JSON.parse(resumed.stdout), folder: '' }).toEqual({ ...result, folder: '' });
  const log = (name: string) => readFileSync(join(folder, 'runs', name, 'metrics.jsonl'), 'utf8');
  expect(log('parts')).toBe(log('whole'));
});

describe('bad input is one sentence', () => {
  test.each([
    [['--set', 'problem.data.path=absent.csv'], /absent\.csv: cannot read it: no such file or folder/],
    [
      ['--set', 'problem.data.target=OT'],
      /wave\.csv: problem\.data\.target: there is no column "OT", expected one of y, z/,
    ],
    [['--set', 'problem.main=3'], /problem\.main: 3 is not among the tasks 1, 2, 4/],
    [['--set', 'problem.tasks=[1, 2, 1]'], /problem\.tasks: expected each horizon once/],
    [['--set', 'problem.corruption.noise=1e300'], /problem\.corruption\.noise: expected a number from 0 to 1000000/],
    [
      ['--set', 'problem.data={format: synthetic, rows: 1e10}'],
      /problem\.data\.rows: expected an integer from 1 to 10000000, found 10000000000/,
    ],
    [['--set', 'problem.tasks=[2, 200]'], /problem\.split\.validation: rows 301 to 400 have no sample/],
  ])('%j', async (args, sentence) => {
    const { code, stdout, stderr } = await tcts(folderWith(), 'train', 'small.yaml', '--quiet', ...args);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(sentence);
    expect(stderr).not.toMatch(/ {4}at |internal error/);
  });
});
