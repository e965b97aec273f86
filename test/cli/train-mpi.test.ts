import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { bestCheckpoint, checkpointFolder, latestCheckpoint, openRun } from '../../src/run/index.js';
import { describeWithMpi, mpirun } from '../mpirun.js';
import { temporaryFolder } from '../run/temporary.js';
import { type Ended, startTctsBy, tcts } from './train-process.js';

const FORECAST = `problem:
  kind: forecast
  data: {format: synthetic, stocks: 60, days: 160, strength: 0.6}
  split:
    train: ['2015-01-20', '2015-04-30']
    validation: ['2015-05-01', '2015-06-15']
    test: ['2015-06-16', '2015-07-31']
  features: {window: 6}
  model: {name: gru, hidden: 6, layers: 2, dropout: 0.2}
  chosen: add
  batch: {size: 100}
  learningRate: 0.01
strategy: {name: learned, hidden: [8], without: [sample]}
training: {episodes: 6, steps: 10}
logging: {everySteps: 7}
threads: 1
`;

const TRANSLATION = `problem:
  kind: translation
  data: {from: toy, pairs: 80}
  waits: 9
  main: 3
  model: {preset: tiny, width: 16, ffn: 16}
  batch: {tokens: 200, accumulate: 2}
  learning: {peak: 3e-3, warmup: 5}
strategy: {name: learned}
training: {episodes: 2, steps: 4}
logging: {everySteps: 1}
threads: 1
`;

function folderWith(config: string): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'small.yaml'), config);
  return folder;
}

function startJob(folder: string, processes: number, ...args: string[]) {
  return startTctsBy(mpirun(processes), folder, 'train', 'small.yaml', ...args);
}

describeWithMpi('mpirun -n N tcts train', () => {
  test.each([
    ['a GRU', FORECAST, 2],
    ['a Transformer', TRANSLATION, 3],
    // Of 16 sentences for each process or more, which divide the estimated losses among them, too.
    [
      'a Transformer with larger batches',
      TRANSLATION.replace('{tokens: 200, accumulate: 2}', '{tokens: 800}\n  mainLoss: estimated'),
      2,
    ],
  ])('trains %s to the bits of N workers', { timeout: 120_000 }, async (_, config, processes) => {
    const folder = folderWith(config);
    const set = ['--set', `workers=${processes}`, '--set', 'name=workers', '--quiet', '--json'];
    const workers = await tcts(folder, 'train', 'small.yaml', ...set);
    const job = await startJob(folder, processes, '--set', 'name=job', '--quiet', '--json').ended;
    expect(job).toMatchObject({ code: 0, stderr: '' });
    // Only one process prints.
    const [expected, found] = [workers, job].map(({ stdout }) => JSON.parse(stdout));
    expect(found).toEqual({ ...expected, folder: 'runs/job' });
    expectSameRun(join(folder, 'runs/job'), join(folder, 'runs/workers'));
    expect(openRun(join(folder, 'runs/job')).info).toMatchObject({ state: 'finished', processes });
  });

  test('ends as if it had never been killed or interrupted', { timeout: 600_000 }, async () => {
    const folder = folderWith(FORECAST.replace('episodes: 6', 'episodes: 8'));
    const run = join(folder, 'runs/small');
    const args = ['--set', 'saving.everySteps=3', '--set', 'logging.progressSeconds=0.05'];
    const whole = await tcts(folder, 'train', 'small.yaml', '--set', 'workers=2', '--set', 'name=whole', '--quiet');
    expect(whole.code).toBe(0);

    const dead = await stopAt(10, startJob(folder, 2, ...args), ({ ranks }) => process.kill(ranks[1], 'SIGKILL'));
    expect(dead.code).not.toBe(0);
    expect(dead.stderr).toMatch(/process rank 1 .*exited on signal 9 \(Killed\)/);
    expect(temporaryFiles(run)).toEqual([]);

    const killed = await stopAt(25, startJob(folder, 2, '--resume', ...args), ({ launcher, ranks }) => {
      for (const pid of [launcher, ...ranks]) process.kill(pid, 'SIGKILL');
    });
    expect(killed.signal).toBe('SIGKILL');

    // As mpirun does when it gets a SIGINT.
    const interrupted = await stopAt(45, startJob(folder, 2, '--resume', ...args), ({ ranks }) => {
      for (const pid of ranks) process.kill(pid, 'SIGTERM');
    });
    expect(interrupted.code).toBe(130);
    expect(interrupted.stderr).toMatch(
      /everything is saved; to continue: mpirun -n 2 tcts train --resume runs\/small\n/,
    );
    expect(interrupted.stderr.match(/everything is saved/g)).toHaveLength(1);
    expect(openRun(run).info.state).toBe('interrupted');

    const alone = await tcts(folder, 'train', 'small.yaml', '--resume');
    expect(alone.code).toBe(1);
    expect(alone.stderr).toMatch(
      /run\.json: the run was started with 2 process\(es\) and cannot continue with 1: .* -n 2\n$/,
    );

    expect(await startJob(folder, 2, '--resume', '--quiet', ...args).ended).toMatchObject({ code: 0, stderr: '' });
    expectSameRun(run, join(folder, 'runs/whole'));
  });

  test.each([
    ['a typing error', ['--set', 'strategy.nam=mtl'], {}, /^tcts: .*strategy\.nam: unknown key/m],
    ['no MPI library', [], { TCTS_MPI_LIBRARY: '/nowhere/libmpi.so' }, /^tcts: .*no usable MPI library was found/m],
  ])('says %s in one sentence of one process', { timeout: 120_000 }, async (_, args, environment, sentence) => {
    const folder = folderWith(FORECAST);
    const launcher = [...mpirun(2), ...Object.entries(environment).flatMap((entry) => ['-x', entry.join('=')])];
    const { code, stdout, stderr } = await startTctsBy(launcher, folder, 'train', 'small.yaml', ...args).ended;
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(sentence);
    expect(stderr.match(/^tcts/gm)).toHaveLength(1);
    expect(readdirSync(folder)).toEqual(['small.yaml']);
  });

  test('of one process is plain training, and needs no MPI', { timeout: 120_000 }, async () => {
    const folder = folderWith(TRANSLATION);
    const launcher = [...mpirun(1), '-x', 'TCTS_MPI_LIBRARY=/nowhere/libmpi.so'];
    const { code, stderr } = await startTctsBy(launcher, folder, 'train', 'small.yaml', '--quiet').ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(openRun(join(folder, 'runs/small')).info.processes).toBeUndefined();
  });
});

/** Waits until a job shows that it has done this many steps, and does something to its processes. */
async function stopAt(
  steps: number,
  { child, ended }: ReturnType<typeof startTctsBy>,
  stop: (pids: { launcher: number; ranks: number[] }) => void,
): Promise<Ended> {
  let done = false;
  child.stderr.on('data', (text) => {
    const shown = [...String(text).matchAll(/step (\d+)\//g)].map(([, step]) => Number(step));
    if (done || !shown.some((step) => step >= steps)) return;
    done = true;
    const launcher = child.pid!;
    const children = readFileSync(`/proc/${launcher}/task/${launcher}/children`, 'utf8');
    stop({ launcher, ranks: children.trim().split(' ').map(Number) });
  });
  const end = await ended;
  expect(done).toBe(true);
  return end;
}

function expectSameRun(found: string, expected: string): void {
  for (const file of ['metrics.jsonl', 'result.json']) {
    expect(readFileSync(join(found, file), 'utf8')).toBe(readFileSync(join(expected, file), 'utf8'));
  }
  for (const read of [latest, bestCheckpoint]) expect(essence(read, found)).toEqual(essence(read, expected));
  expect(temporaryFiles(found)).toEqual([]);
}

/** All of a checkpoint that must be the same: parameters, scheduler, optimiser, random numbers, position. */
function essence(read: typeof bestCheckpoint, run: string) {
  const { step, tensors, state } = read(checkpointFolder(run))!;
  const bytes = [...tensors].map(([name, { data }]) => [
    name,
    Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64'),
  ]);
  return { step, bytes, subject: (state as { subject: unknown }).subject };
}

function latest(folder: string) {
  return latestCheckpoint(folder, (warning) => {
    throw new Error(warning);
  });
}

function temporaryFiles(run: string): string[] {
  return (readdirSync(run, { recursive: true }) as string[]).filter((file) => file.endsWith('.tmp'));
}
