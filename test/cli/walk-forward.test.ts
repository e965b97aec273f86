import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { trainRun } from '../../src/cli/training-run.js';
import {
  checkpointFolder,
  isRunning,
  latestCheckpoint,
  memberFolder,
  openRun,
  readMembers,
} from '../../src/run/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { startTcts, tcts } from './train-process.js';

const CONFIG = `problem:
  kind: forecast
  data: {format: synthetic, stocks: 20, days: 200, strength: 0.6}
  split:
    train: ['2015-01-20', '2015-04-30']
    validation: ['2015-05-01', '2015-06-15']
    test: ['2015-06-16', '2015-09-30']
  tasks: 2
  features: {window: 6}
  model: {name: gru, hidden: 4, layers: 1}
  batch: {size: 50}
  validation: {measure: loss}
strategy: {name: fixed}
training: {episodes: 12, steps: 5}
saving: {everySteps: 6, everySeconds: null}
threads: 1
`;

const WALK = ['--walk-forward', '{train: 3m, validation: 1m, step: 2m}'];

test('a walk-forward that was killed goes on where it was, and is evaluated as one run', {
  timeout: 120_000,
}, async () => {
  const folder = temporaryFolder();
  const run = join(folder, 'runs/walk');
  writeFileSync(join(folder, 'walk.yaml'), CONFIG);
  const args = ['train', 'walk.yaml', ...WALK, '--cores', '1'];
  const { child, ended } = startTcts(folder, ...args);
  // When the first member is finished and the second is at work.
  const second = checkpointFolder(memberFolder(run, '2015-07-20'));
  while (child.exitCode === null && (latestCheckpoint(second, () => {})?.step ?? 0) === 0) await sleep(5);
  child.kill('SIGKILL');
  expect((await ended).signal).toBe('SIGKILL');
  expect(readMembers(run)?.map(({ name }) => name)).toEqual(['2015-05-20', '2015-07-20', '2015-09-20']);
  expect(openRun(run).info.state).toBe('running');
  const first = memberFolder(run, '2015-05-20');
  expect(openRun(first).info.state).toBe('finished');
  const before = readFileSync(join(first, 'run.json'), 'utf8');
  const refused = await tcts(folder, 'evaluate', 'runs/walk');
  expect(refused.stderr).toMatch(
    /runs\/walk: its member 2015-0[79]-20 is \w+, expected all to be finished: tcts train --resume runs\/walk\n$/,
  );

  const resumed = await tcts(folder, ...args, '--resume');
  expect(resumed.code, resumed.stderr).toBe(0);
  expect(resumed.stderr).toMatch(/done {4}2015-05-20: already done\n/);
  expect(resumed.stdout).toMatch(/^finished after 180 updates of 3 runs\nbest validation loss [\d.]+, on average\n/);
  expect(readFileSync(join(first, 'run.json'), 'utf8')).toBe(before);
  expect(openRun(run).info.state).toBe('finished');
  expect(isRunning(memberFolder(run, '2015-07-20'))).toBe(false);
  // What a process that was never killed makes of the same configuration.
  const killed = memberFolder(run, '2015-07-20');
  const { folder: never } = await trainRun(join(killed, 'config.yaml'), { folder: join(folder, 'never'), quiet: true });
  for (const file of ['metrics.jsonl', 'result.json']) {
    expect(readFileSync(join(killed, file), 'utf8')).toBe(readFileSync(join(never, file), 'utf8'));
  }

  const { stdout } = await tcts(folder, 'evaluate', 'runs/walk');
  expect(stdout).toMatch(
    /by window of the walk-forward:\n.*RankIC.*\n.*\n2015-01-20 to 2015-04-19 {2}2015-05-20 to 2015-07-19 /,
  );
  // The walk ends where the dates beside it say.
  expect(stdout).toMatch(/2015-09-20 to 2015-09-30 /);
});

test('windows of a configuration start from the one before, with the loss and the features it names', {
  timeout: 60_000,
}, async () => {
  const folder = temporaryFolder();
  const walk = '{train: 3m, validation: 1m, step: 2m, to: 2015-08-31, warmStart: true}';
  const text = CONFIG.replace(/split:\n( {4}.*\n)+/, `split: {walkForward: ${walk}}\n  loss: rank\n`)
    .replace('window: 6', 'kind: alpha360, window: 3')
    .replace('size: 50', 'days: 4')
    .replace('episodes: 12', 'episodes: 1');
  writeFileSync(join(folder, 'steps.yaml'), text);
  const trained = await tcts(folder, 'train', 'steps.yaml', '--quiet', '--cores', '2');
  expect({ code: trained.code, stderr: trained.stderr }).toEqual({ code: 0, stderr: '' });
  const run = join(folder, 'runs/steps');
  const names = readMembers(run)!.map(({ name }) => name);
  expect(names).toEqual(['2015-05-07', '2015-07-07']);
  // Without dates, the first training part begins with the first whole window: the third weekday from 5 January on.
  const configs = names.map((name) => readFileSync(join(memberFolder(run, name), 'config.yaml'), 'utf8'));
  expect(configs[0]).toMatch(/train:\n? *-? *\[?\s*"?'?2015-01-07/);
  expect(configs[0]).not.toMatch(/warmStart: \S*members/);
  expect(configs[1]).toMatch(/warmStart: \S*members\/2015-05-07/);
  for (const config of configs) expect(config).toMatch(/kind: alpha360[\s\S]*loss: rank/);
  const { stdout } = await tcts(folder, 'evaluate', 'runs/steps', '--json');
  const { windows, dates } = JSON.parse(stdout);
  expect(dates).toEqual(['2015-05-07', '2015-08-31']);
  expect(windows.map(({ test }: { test: string[] }) => test[0])).toEqual(names);
});
