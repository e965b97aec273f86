import { readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { InputError } from '../../src/errors.js';
import {
  bestCheckpoint,
  checkpointFolder,
  commonKeys,
  isRunning,
  latestCheckpoint,
  openRun,
  type Resumable,
  type RunSession,
  type RunSessionOptions,
  readCheckpoint,
  readMetrics,
  runSession,
  saveCheckpoint,
  transientSession,
} from '../../src/run/index.js';
import { temporaryFolder } from './temporary.js';

const defaults = z.strictObject(commonKeys).parse({});
const config = { ...defaults, rate: 0.5, saving: { everySteps: 4, everySeconds: null, keep: 2 } };

describe('a session', () => {
  test('logs, saves and finishes a run', async () => {
    const folder = runFolder();
    const outcome = await train({ folder, total: 10 });
    expect(outcome).toMatchObject({ state: 'finished', step: 10, signal: undefined });
    expect(openRun(folder).info.state).toBe('finished');
    expect(isRunning(folder)).toBe(false);
    // x ← x/2 + 1 from 0: 1, 1.5, 1.75, …, that is 2 − 2^(1−n).
    const expected = Array.from({ length: 10 }, (_, i) => ({ step: i + 1, x: 2 - 2 ** -i }));
    expect(readMetrics(join(folder, 'metrics.jsonl'))).toEqual(expected);
    expect(readMetrics(join(folder, 'timings.jsonl'))).toHaveLength(10);
    expect(readdirSync(checkpointFolder(folder)).filter((name) => name.startsWith('step'))).toEqual([
      'step-000000008.safetensors',
      'step-000000010.safetensors',
    ]);
    expect(readdirSync(folder).filter((name) => name.startsWith('events.out.tfevents.'))).toHaveLength(1);
  });

  test('that fails is resumed from its last checkpoint and ends as if it had not', async () => {
    const [whole, broken] = [runFolder(), runFolder()];
    await train({ folder: whole, total: 10 });
    await expect(train({ folder: broken, total: 10 }, { failAfter: 6 })).rejects.toThrow('bad luck');
    expect(openRun(broken).info.state).toBe('failed');
    expect(readMetrics(join(broken, 'metrics.jsonl'))).toHaveLength(6);
    const started: number[] = [];
    await train({ folder: broken, total: 10, resume: true }, { started });
    expect(started).toEqual([4]);
    expect(readFileSync(join(broken, 'metrics.jsonl'))).toEqual(readFileSync(join(whole, 'metrics.jsonl')));
    expect(finalTensor(broken)).toEqual(finalTensor(whole));
  });

  test('that fails before its first checkpoint starts again from the beginning', async () => {
    const folder = runFolder();
    await expect(train({ folder, total: 10 }, { failAfter: 2 })).rejects.toThrow('bad luck');
    await train({ folder, total: 10, resume: true });
    expect(readMetrics(join(folder, 'metrics.jsonl'))).toHaveLength(10);
  });

  test('uses the checkpoint before one that is damaged, and says so', async () => {
    const folder = runFolder();
    await train({ folder, total: 10 });
    truncateSync(join(checkpointFolder(folder), 'step-000000010.safetensors'), 99);
    const before = readFileSync(join(folder, 'metrics.jsonl'));
    const started: number[] = [];
    const shown: string[] = [];
    const stream = { write: (text: string) => shown.push(text) };
    await train({ folder, total: 10, resume: true, quiet: true, stream }, { started });
    expect(started).toEqual([8]);
    // Even when it is to be quiet.
    expect(shown.join('')).toMatch(/^warning: the checkpoint is damaged and was skipped: .*step-000000010.*\n$/);
    expect(readFileSync(join(folder, 'metrics.jsonl'))).toEqual(before);
    expect(latestCheckpoint(checkpointFolder(folder), fail)?.step).toBe(10);
  });

  test('does not count a damaged checkpoint among those that it keeps, and removes it when it is past it', async () => {
    const folder = runFolder();
    await expect(train({ folder, total: 20 }, { failAfter: 13 })).rejects.toThrow('bad luck');
    const damaged = join(checkpointFolder(folder), 'step-000000012.safetensors');
    truncateSync(damaged, 99);
    const odd = { ...config, saving: { everySteps: 5, everySeconds: null, keep: 2 } };
    const stream = { write: () => true };
    await expect(train({ folder, total: 20, config: odd, resume: true, stream }, { failAfter: 10 })).rejects.toThrow(
      'bad luck',
    );
    expect(steps(folder)).toEqual([8, 10, 12]);
    await expect(train({ folder, total: 20, config: odd, resume: true, stream }, { failAfter: 15 })).rejects.toThrow(
      'bad luck',
    );
    expect(steps(folder)).toEqual([10, 15]);
  });

  test('writes nothing more once its folder was taken over, and says so', async () => {
    const folder = runFolder();
    let left: Record<string, string> = {};
    const stealer = new Trainee();
    const steal = async (session: RunSession) => {
      await loop(session, stealer, 6, {});
      const lock = join(folder, 'run.lock');
      const holder = JSON.parse(readFileSync(lock, 'utf8')) as object;
      writeFileSync(lock, JSON.stringify({ ...holder, pid: 7, host: 'elsewhere', token: 'another' }));
      left = contents(folder);
      await loop(session, stealer, 10, {});
    };
    await expect(runSession({ ...base(folder), total: 10 }, stealer, steal)).rejects.toThrow(
      /run\.lock: process 7 on host elsewhere has taken this folder over: this process ends and writes nothing more$/,
    );
    expect(contents(folder)).toEqual(left);
  });

  test('that cannot be opened leaves a finished run finished', async () => {
    const folder = runFolder();
    await train({ folder, total: 10 });
    const before = contents(folder);
    rmSync(join(folder, 'metrics.jsonl'));
    await expect(train({ folder, total: 10, resume: true })).rejects.toThrow(/metrics.jsonl: cannot read it/);
    expect(openRun(folder).info.state).toBe('finished');
    writeFileSync(join(folder, 'metrics.jsonl'), before['metrics.jsonl'], 'latin1');
    const fails = async () => {
      throw new Error('no data');
    };
    await expect(runSession({ ...base(folder), resume: true }, new Trainee(), fails)).rejects.toThrow('no data');
    expect(openRun(folder).info.state).toBe('finished');
    expect(contents(folder)['metrics.jsonl']).toBe(before['metrics.jsonl']);
  });

  test('goes on without its timings, which only inform, and keeps one for each line', async () => {
    const folder = runFolder();
    await expect(train({ folder, total: 10 }, { failAfter: 6 })).rejects.toThrow('bad luck');
    rmSync(join(folder, 'timings.jsonl'));
    await train({ folder, total: 10, resume: true });
    const timings = readMetrics(join(folder, 'timings.jsonl'));
    expect(timings.map(({ step }) => step)).toEqual([undefined, undefined, undefined, undefined, 5, 6, 7, 8, 9, 10]);
    await train({ folder, total: 10, resume: true });
    expect(readMetrics(join(folder, 'timings.jsonl'))).toEqual(timings);
  });

  test('is refused a checkpoint of another configuration, version or kind', async () => {
    const folder = runFolder();
    await train({ folder, total: 10 });
    await expect(train({ folder, total: 10, resume: true, config: { ...config, rate: 0.25 } })).rejects.toThrow(
      /rate was 0.5 and is now 0.25/,
    );
    const file = join(folder, 'config.yaml');
    const yaml = readFileSync(file, 'utf8');
    writeFileSync(file, yaml.replace('rate: 0.5', 'rate: 0.125'));
    await expect(train({ folder, total: 10, resume: true, config: { ...config, rate: 0.125 } })).rejects.toThrow(
      /step-000000010.safetensors: .*rate was 0.5 and is now 0.125/,
    );
    writeFileSync(file, yaml);

    const { tensors, state } = readCheckpoint(join(checkpointFolder(folder), 'step-000000010.safetensors'));
    saveCheckpoint(checkpointFolder(folder), { step: 11, tensors, state: { ...(state as object), version: '99.1.0' } });
    await expect(train({ folder, total: 10, resume: true })).rejects.toThrow(/written by tcts 99.1.0/);
    saveCheckpoint(checkpointFolder(folder), { step: 11, tensors, state: {} });
    await expect(train({ folder, total: 10, resume: true })).rejects.toThrow('not a checkpoint of a training run');
    expect(isRunning(folder)).toBe(false);
  });

  test('keeps the best and stops early, also over a resumption', async () => {
    const settings = { ...config, earlyStopping: { patience: 3, minDelta: 0 } };
    const scores = [1, 5, 2, 3, 4, 9, 9];
    const folder = runFolder();
    const options = { folder, config: settings, total: 7 };
    await expect(train(options, { scores, failAfter: 4 })).rejects.toThrow('bad luck');
    const outcome = await train({ ...options, resume: true }, { scores });
    expect(outcome).toMatchObject({ state: 'finished', step: 5, best: { score: 5, step: 2 } });
    expect(bestCheckpoint(checkpointFolder(folder))).toMatchObject({ step: 2, state: { subject: { steps: 2 } } });
    expect((await train({ ...options, resume: true }, { scores })).step).toBe(5);
  });

  test('saves by the clock without any effect on what is computed', async () => {
    const [whole, often] = [runFolder(), runFolder()];
    await train({ folder: whole, total: 10 });
    await train({ folder: often, total: 10, config: { ...config, saving: { ...config.saving, everySeconds: 1e-9 } } });
    expect(readFileSync(join(often, 'metrics.jsonl'))).toEqual(readFileSync(join(whole, 'metrics.jsonl')));
    expect(finalTensor(often)).toEqual(finalTensor(whole));
    expect(readdirSync(checkpointFolder(often))).toContain('step-000000009.safetensors');
  });

  test('stops at a signal, saves, and says how to continue', async () => {
    const folder = runFolder();
    const shown: string[] = [];
    const stream = { write: (text: string) => shown.push(text) };
    const outcome = await train({ folder, total: 10, quiet: false, stream }, { signalAfter: 6 });
    expect(outcome).toEqual({
      state: 'interrupted',
      step: 6,
      best: null,
      stoppedEarly: false,
      signal: 'SIGINT',
      resumeCommand: `tcts train --resume ${folder}`,
    });
    expect(shown.at(-1)).toBe(
      `stopped after step 6, everything is saved; to continue: tcts train --resume ${folder}\n`,
    );
    expect(openRun(folder).info.state).toBe('interrupted');
    const started: number[] = [];
    await train({ folder, total: 10, resume: true }, { started });
    expect(started).toEqual([6]);
  });

  test('is refused a second time on the same folder', async () => {
    const folder = runFolder();
    await train({ folder, total: 10 });
    await runSession({ ...base(folder), resume: true }, new Trainee(), async () => {
      await expect(train({ folder, total: 10, resume: true })).rejects.toThrow(/process \d+ on host .* is using/);
    });
  });

  test('keeps what restoring had to say', async () => {
    const folder = runFolder();
    await train({ folder, total: 10 });
    const picky: Resumable = {
      capture: () => new Trainee().capture(),
      restore: () => {
        throw new InputError('another model');
      },
    };
    await expect(runSession({ ...base(folder), resume: true }, picky, async () => {})).rejects.toThrow('another model');
    expect(isRunning(folder)).toBe(false);
  });
});

test('a transient session leaves nothing but its records and the best snapshot', async () => {
  const trainee = new Trainee();
  const session = transientSession(trainee, { mode: 'max', patience: 2 });
  await loop(session, trainee, 10, { scores: [1, 5, 2, 3, 4] });
  expect(session.step).toBe(4);
  expect(session.bestSoFar).toEqual({ score: 5, step: 2 });
  expect(session.bestSnapshot?.tensors.get('x')?.data).toEqual(Float64Array.of(1.5));
  expect(session.records).toHaveLength(4);
});

/** x ← x/2 + 1, from 0. */
class Trainee implements Resumable {
  readonly x = new Float64Array(1);
  steps = 0;

  capture() {
    return {
      tensors: new Map([['x', { dtype: 'F64', shape: [1], data: this.x } as const]]),
      state: { steps: this.steps },
    };
  }

  restore({ tensors, state }: Parameters<Resumable['restore']>[0]) {
    this.x.set(tensors.get('x')!.data as Float64Array);
    this.steps = (state as { steps: number }).steps;
  }
}

interface Events {
  scores?: number[];
  failAfter?: number;
  signalAfter?: number;
  /** Gets the step the loop starts from. */
  started?: number[];
}

async function loop(session: RunSession, trainee: Trainee, total: number, events: Events): Promise<void> {
  events.started?.push(session.step);
  for (let step = session.step + 1; step <= total && !session.shouldStop; step++) {
    trainee.x[0] = trainee.x[0] / 2 + 1;
    trainee.steps++;
    session.log(step, { x: trainee.x[0] });
    session.progress(step, { x: trainee.x[0] });
    if (events.scores !== undefined) session.best(step, events.scores[step - 1]);
    if (step === events.signalAfter) process.emit('SIGINT', 'SIGINT');
    await session.maybeSave(step);
    if (step === events.failAfter) throw new Error('bad luck');
  }
}

function base(folder: string): RunSessionOptions {
  return { folder, config, quiet: true };
}

function train(options: Partial<RunSessionOptions> & { folder: string; total: number }, events: Events = {}) {
  const trainee = new Trainee();
  return runSession({ ...base(options.folder), ...options }, trainee, (session) =>
    loop(session, trainee, options.total, events),
  );
}

function runFolder(): string {
  return join(temporaryFolder(), 'run');
}

function finalTensor(folder: string) {
  return latestCheckpoint(checkpointFolder(folder), fail)?.tensors.get('x')?.data;
}

function fail(warning: string): never {
  throw new Error(warning);
}

/** Steps of the regular checkpoints. */
function steps(folder: string): number[] {
  return readdirSync(checkpointFolder(folder))
    .flatMap((name) => /^step-(\d+)/.exec(name)?.[1] ?? [])
    .map(Number);
}

/** Every file of a folder, by its path. */
function contents(folder: string): Record<string, string> {
  const paths = (readdirSync(folder, { recursive: true }) as string[]).filter((path) =>
    statSync(join(folder, path)).isFile(),
  );
  return Object.fromEntries(paths.map((path) => [path, readFileSync(join(folder, path), 'latin1')]));
}
