import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished, test, vi } from 'vitest';
import { stringify } from 'yaml';
import { trainConfigSchema } from '../../src/problems/index.js';
import { isRunning, lockHolder, openRun } from '../../src/run/index.js';
import { isDone, type Job, type JobProgress, runJob } from '../../src/sweep/index.js';
import { followed } from '../../src/sweep/job.js';
import { temporaryFolder } from '../run/temporary.js';

function jobIn(folder: string, { episodes = 4, ...changed }: Partial<Job> & { episodes?: number } = {}): Job {
  const config = trainConfigSchema.parse({
    problem: { kind: 'known-answer' },
    strategy: { name: 'mtl' },
    training: { episodes, steps: 5 },
    threads: 1,
    logging: { tensorboard: false },
  });
  return { name: 'a', folder: join(folder, 'a'), config: stringify(config), after: [], cores: 1, ...changed };
}

const bits = (job: Job) => readFileSync(join(job.folder, 'metrics.jsonl'), 'utf8');

/** Waits until the run has logged something. */
async function underWay({ folder }: Job): Promise<void> {
  const log = join(folder, 'metrics.jsonl');
  while (!(existsSync(log) && statSync(log).size > 0)) await sleep(20);
}

describe('a job', () => {
  it('trains in its folder and tells how far it is', async () => {
    const job = jobIn(temporaryFolder());
    const seen: JobProgress[] = [];
    expect(isDone(job)).toBe(false);
    expect(await runJob(job, { onProgress: (progress) => seen.push(progress) })).toEqual({ state: 'done' });
    expect(isDone(job)).toBe(true);
    expect(openRun(job.folder).info).toMatchObject({ name: 'a', state: 'finished' });
    expect(seen.at(-1)).toMatchObject({ step: 20, steps: 20 });
  });

  it('is not trained again when it is done', async () => {
    const job = jobIn(temporaryFolder());
    await runJob(job);
    const { mtimeMs } = statSync(join(job.folder, 'run.json'));
    expect(await runJob(job)).toEqual({ state: 'done' });
    expect(statSync(join(job.folder, 'run.json')).mtimeMs).toBe(mtimeMs);
  });

  it('that is stopped saves itself, and goes on to the end that it would have come to', async () => {
    const undisturbed = jobIn(temporaryFolder(), { episodes: 6000 });
    const job = jobIn(temporaryFolder(), { episodes: 6000 });
    const stop = new AbortController();
    const stopped = runJob(job, { signal: stop.signal });
    await underWay(job);
    stop.abort();
    expect(await stopped).toEqual({ state: 'stopped' });
    expect(openRun(job.folder).info.state).toBe('interrupted');
    expect(await runJob(job)).toEqual({ state: 'done' });
    await runJob(undisturbed);
    expect(bits(job)).toBe(bits(undisturbed));
  });

  it('stops when the process that started it is killed', async () => {
    const job = jobIn(temporaryFolder(), { episodes: 100_000 });
    const module = fileURLToPath(new URL('../../dist/sweep/job.js', import.meta.url));
    const code = `import { runJob } from ${JSON.stringify(module)}; await runJob(${JSON.stringify(job)});`;
    const parent = spawn(process.execPath, ['--input-type=module', '--eval', code], { stdio: 'ignore' });
    await underWay(job);
    expect(isRunning(job.folder)).toBe(true);
    parent.kill('SIGKILL');
    await once(parent, 'exit');
    while (isRunning(job.folder)) await sleep(20);
    expect(openRun(job.folder).info.state).toBe('interrupted');
  });

  it.skipIf(!existsSync('/proc/self/stat'))(
    'pauses when Ctrl-Z stops the process that started it, and goes on with it',
    async () => {
      const job = jobIn(temporaryFolder(), { episodes: 100_000 });
      const module = fileURLToPath(new URL('../../dist/sweep/job.js', import.meta.url));
      const code = `import { runJob } from ${JSON.stringify(module)}; await runJob(${JSON.stringify(job)});`;
      const parent = spawn(process.execPath, ['--input-type=module', '--eval', code], { stdio: 'ignore' });
      onTestFinished(() => void parent.kill('SIGKILL'));
      await underWay(job);
      const { pid } = lockHolder(join(job.folder, 'run.lock'))!;
      const states = () => [parent.pid!, pid].map((id) => /\) (\S)/.exec(readFileSync(`/proc/${id}/stat`, 'utf8'))![1]);
      parent.kill('SIGTSTP');
      await vi.waitFor(() => expect(states()).toEqual(['T', 'T']), 10_000);
      parent.kill('SIGCONT');
      await vi.waitFor(() => expect(states()).not.toContain('T'), 10_000);
      parent.kill('SIGKILL');
      while (isRunning(job.folder)) await sleep(20);
    },
  );

  it('with another configuration than the folder holds is refused', async () => {
    const folder = temporaryFolder();
    await runJob(jobIn(folder));
    const outcome = await runJob(jobIn(folder, { episodes: 5 }));
    expect(outcome).toMatchObject({ state: 'failed' });
    expect(outcome).toHaveProperty('reason', expect.stringMatching(/training\.episodes was 4 and is now 5/));
  });

  it('that fails says why in the words of the tool', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'a'), 'in the way');
    expect(await runJob(jobIn(join(folder, 'a')))).toMatchObject({
      state: 'failed',
      reason: expect.stringMatching(/a part of the path is a file/),
    });
    const job = jobIn(folder, { folder: join(folder, 'b'), after: [['evaluate']] });
    expect(await runJob(job)).toEqual({
      state: 'failed',
      reason: expect.stringMatching(/there is nothing to evaluate in a run of known-answer/),
    });
  });

  it('runs the verbs that follow once each', async () => {
    const job = jobIn(temporaryFolder());
    await runJob(job);
    // As if an evaluation had been made; a second one would fail.
    writeFileSync(join(job.folder, 'job.json'), JSON.stringify({ done: [['evaluate', '--k', '1']] }));
    const again = { ...job, after: [['evaluate', '--k', '1']] };
    expect(isDone(again)).toBe(true);
    expect(await runJob(again)).toEqual({ state: 'done' });
    expect(isDone({ ...job, after: [['evaluate', '--k', '3']] })).toBe(false);
  });
});

test('a log is followed while it grows, a half-written line waits, and one that is cut is read anew', () => {
  const folder = temporaryFolder();
  const path = join(folder, 'metrics.jsonl');
  const advance = followed(folder, 9);
  expect(advance()).toBeUndefined();
  writeFileSync(path, '{"step":1,"loss":3}\n{"step":2,"perf');
  expect(advance()).toEqual({ step: 1, steps: 9 });
  expect(advance()).toBeUndefined();
  appendFileSync(path, 'ormance":-5}\n{"step":4,"performance":-7}\n');
  expect(advance()).toEqual({ step: 4, steps: 9, best: -5 });
  writeFileSync(path, '{"step":1,"loss":3}\n');
  expect(advance()).toEqual({ step: 1, steps: 9 });
});

test('a log that is cut and grows beyond what was read is read anew, wherever the cut was', () => {
  const folder = temporaryFolder();
  const path = join(folder, 'metrics.jsonl');
  const advance = followed(folder, 9);
  writeFileSync(path, '{"step":1,"performance":-5}\n{"step":2,"performance":-4}\n');
  expect(advance()).toEqual({ step: 2, steps: 9, best: -4 });
  writeFileSync(path, '{"step":1,"performance":-5}\n{"step":2,"loss":12345.678901}\n{"step":3}\n');
  expect(advance()).toEqual({ step: 3, steps: 9, best: -5 });
});

test.each(['garbage', '[1]', '{"step":', 'null', '\u0000\uffff'])('a line that is %j is passed over', (line) => {
  const folder = temporaryFolder();
  const path = join(folder, 'metrics.jsonl');
  const advance = followed(folder, 9);
  writeFileSync(path, `{"step":1}\n${line}\n`);
  expect(advance()).toEqual({ step: 1, steps: 9 });
  appendFileSync(path, `${line}\n`);
  expect(advance()).toBeUndefined();
  appendFileSync(path, '{"step":2}\n');
  expect(advance()).toEqual({ step: 2, steps: 9 });
});

test('a foreign line in the log of a run at work harms neither the job nor the log', async () => {
  const undisturbed = jobIn(temporaryFolder(), { episodes: 6000 });
  const job = jobIn(temporaryFolder(), { episodes: 6000 });
  const seen: JobProgress[] = [];
  const outcome = runJob(job, { onProgress: (progress) => seen.push(progress) });
  await underWay(job);
  // Long before the run ends: what comes after its last line would stay.
  for (let i = 0; i < 10; i++) {
    appendFileSync(join(job.folder, 'metrics.jsonl'), 'garbage\n');
    await sleep(5);
  }
  expect(isDone(job)).toBe(false);
  expect(await outcome).toEqual({ state: 'done' });
  expect(seen.at(-1)).toMatchObject({ step: 30_000, steps: 30_000 });
  await runJob(undisturbed);
  expect(bits(job)).toBe(bits(undisturbed));
});
