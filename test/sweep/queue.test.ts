import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { expect, it, onTestFinished, vi } from 'vitest';
import { toolVersion } from '../../src/run/index.js';
import type { Executor, Job, Outcome, runJob } from '../../src/sweep/job.js';
import { queueExecutor } from '../../src/sweep/queue/executor.js';
import { serveQueue, type WorkerOptions } from '../../src/sweep/queue/worker.js';
import { describeWithRedis, type RedisServer, startRedis } from '../redis.js';
import { temporaryFolder } from '../run/temporary.js';

const DONE: Outcome = { state: 'done' };

/** Stands for processes that train: jobs end when they are told to, or after some time. */
class Runner {
  readonly begun: string[] = [];
  readonly running = new Set<string>();
  /** The largest sum of cores at one time. */
  most = 0;
  private cores = 0;
  private readonly milliseconds: number;
  private readonly outcome: (job: Job) => Outcome;

  constructor(milliseconds: number, outcome: (job: Job) => Outcome = () => DONE) {
    this.milliseconds = milliseconds;
    this.outcome = outcome;
  }

  readonly run: typeof runJob = async (job, { signal, onProgress } = {}) => {
    expect(this.running).not.toContain(job.name);
    this.begun.push(job.name);
    this.running.add(job.name);
    this.cores += job.cores;
    this.most = Math.max(this.most, this.cores);
    onProgress?.({ step: 1, steps: 2, best: 0.5 });
    const stopped = await sleep(this.milliseconds, false, { signal }).catch(() => true);
    this.running.delete(job.name);
    this.cores -= job.cores;
    return stopped ? { state: 'stopped' } : this.outcome(job);
  };
}

interface Scene {
  readonly redis: RedisServer;
  readonly runs: string;
  job(name: string, changed?: Partial<Job>): Job;
  executor(note?: (line: string) => void): Promise<Executor>;
  /** A worker in this process; `end` drains it. */
  worker(runner: Runner, options?: Partial<WorkerOptions>): { end(): Promise<void>; ended: Promise<void> };
}

async function scene(options?: Parameters<typeof startRedis>[0]): Promise<Scene> {
  const redis = await startRedis(options);
  const runs = join(temporaryFolder(), 'runs');
  mkdirSync(runs);
  return {
    redis,
    runs,
    job: (name, changed) => ({ name, folder: join(runs, 'grid', name), config: '', after: [], cores: 1, ...changed }),
    async executor(note) {
      const executor = await queueExecutor(redis.url, { runs, lookSeconds: 0.05, note });
      onTestFinished(() => executor.close());
      return executor;
    },
    worker(runner, more) {
      const stop = new AbortController();
      const { signal } = stop;
      const ended = serveQueue(redis.url, { runs, leaseSeconds: 2, cores: 2, run: runner.run, signal, ...more });
      const end = async () => {
        stop.abort();
        await ended;
      };
      ended.catch(() => {});
      onTestFinished(() => end().catch(() => {}));
      return { end, ended };
    },
  };
}

const nothing = () => {};

describeWithRedis('a sweep on a queue', () => {
  it('has its jobs run by workers and hears of their progress and outcomes', async () => {
    const { job, executor, worker } = await scene();
    const runner = new Runner(300, ({ name }) => (name === 'b' ? { state: 'failed', reason: 'it diverged' } : DONE));
    worker(runner);
    const sweep = await executor();
    const progress = vi.fn();
    const outcomes = await Promise.all([sweep.submit(job('a'), progress), sweep.submit(job('b'), nothing)]);
    expect(outcomes).toEqual([DONE, { state: 'failed', reason: 'it diverged' }]);
    expect(progress).toHaveBeenCalledWith({ step: 1, steps: 2, best: 0.5 });
    expect(runner.begun.sort()).toEqual(['a', 'b']);
  });

  it('does not run a job twice that two sweeps ask for at the same time', async () => {
    const { job, executor, worker } = await scene();
    const [first, second] = [await executor(), await executor()];
    const both = [first.submit(job('a'), nothing), second.submit(job('a'), nothing)];
    // As a run folder that is finished: then there is nothing to do.
    const trained: string[] = [];
    const runner = new Runner(100);
    const run: typeof runJob = async (job, options) => {
      if (trained.includes(job.name)) return DONE;
      trained.push(job.name);
      return runner.run(job, options);
    };
    worker(runner, { run });
    expect(await Promise.all(both)).toEqual([DONE, DONE]);
    expect(trained).toEqual(['a']);
  });

  it('runs a job again that failed in an earlier sweep', async () => {
    const { job, executor, worker } = await scene();
    let attempts = 0;
    worker(new Runner(10, () => (++attempts === 1 ? { state: 'failed', reason: 'no luck' } : DONE)));
    expect(await (await executor()).submit(job('a'), nothing)).toMatchObject({ state: 'failed' });
    expect(await (await executor()).submit(job('a'), nothing)).toEqual(DONE);
  });

  it('gives up a job at which too many workers were lost', async () => {
    const { redis, job, executor, worker } = await scene();
    const sweep = await executor();
    const outcome = sweep.submit(job('a'), nothing);
    // A worker that takes the job and is never heard of again, after fifty like it.
    const lost = new Worker('runs', null, {
      prefix: 'tcts',
      connection: { host: '127.0.0.1', port: redis.port, maxRetriesPerRequest: null },
      lockDuration: 100,
      autorun: false,
    });
    onTestFinished(() => lost.close(true));
    const taken = await vi.waitFor(
      async () => (await lost.getNextJob('token')) ?? Promise.reject(new Error('none yet')),
    );
    const client = new Redis(redis.url);
    await client.hset(`tcts:runs:${taken.id}`, 'stc', '50');
    client.disconnect();
    const runner = new Runner(10);
    worker(runner);
    expect(await outcome).toEqual({ state: 'failed', reason: '50 workers were lost while at it' });
    expect(runner.begun).toEqual([]);
  });

  it('leaves nothing in Redis that grows', async () => {
    const { redis, job, executor, worker } = await scene();
    worker(new Runner(10));
    const sweep = await executor();
    await Promise.all(['a', 'b', 'c'].map((name) => sweep.submit(job(name), nothing)));
    const queue = new Queue('runs', { prefix: 'tcts', connection: { port: redis.port } });
    onTestFinished(() => queue.close());
    expect(await queue.getJobCountByTypes('wait', 'active', 'completed', 'failed')).toBe(0);
  });

  it('that is stopped takes back what nobody has begun and lets the rest save itself; later it goes on', async () => {
    const { job, executor, worker } = await scene();
    const slow = new Runner(60_000);
    const { end } = worker(slow, { cores: 1 });
    const sweep = await executor();
    const outcomes = Promise.all(['a', 'b'].map((name) => sweep.submit(job(name), nothing)));
    await vi.waitFor(() => expect(slow.begun).toEqual(['a']), 5000);
    await sweep.close();
    expect(await outcomes).toEqual([{ state: 'stopped' }, { state: 'stopped' }]);
    expect(slow).toMatchObject({ begun: ['a'], running: new Set() });
    await end();
    worker(new Runner(10));
    const again = await executor();
    expect(await Promise.all(['a', 'b'].map((name) => again.submit(job(name), nothing)))).toEqual([DONE, DONE]);
  });

  it('says when no worker is listening', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const { job, executor, worker } = await scene();
    const note = vi.fn();
    const sweep = await executor(note);
    const outcome = sweep.submit(job('a'), nothing);
    await sleep(300);
    expect(note).not.toHaveBeenCalled();
    vi.advanceTimersByTime(11_000);
    await vi.waitFor(() =>
      expect(note).toHaveBeenCalledWith(expect.stringMatching(/^no worker is listening: .*--queue/)),
    );
    vi.useRealTimers();
    worker(new Runner(10));
    expect(await outcome).toEqual(DONE);
  });

  it('goes on when Redis comes back without its memory, without running again what is done', async () => {
    const { redis, job, executor, worker } = await scene({ persistent: false });
    const note = vi.fn();
    const sweep = await executor(note);
    const runner = new Runner(1000);
    worker(runner, { cores: 1 });
    const outcomes = ['a', 'b', 'c'].map((name) => sweep.submit(job(name), nothing));
    await outcomes[0];
    await redis.kill();
    await redis.start();
    expect(await Promise.all(outcomes)).toEqual([DONE, DONE, DONE]);
    expect(runner.begun.filter((name) => name === 'a')).toEqual(['a']);
    expect(note.mock.calls.flat()).toEqual([
      expect.stringMatching(/^Redis at redis:\S+ is not working/),
      expect.stringMatching(/^Redis at redis:\S+ is back$/),
    ]);
  });
});

describeWithRedis('a worker', () => {
  it('lends its cores to jobs, and to one that asks for more than there are when it is alone', async () => {
    const { job, executor, worker } = await scene();
    const runner = new Runner(200);
    const sweep = await executor();
    const sizes = [1, 1, 2, 1, 5, 1, 2];
    const outcomes = sizes.map((cores, i) => sweep.submit(job(`job${i}`, { cores }), nothing));
    worker(runner, { cores: 2 });
    await Promise.all(outcomes);
    // Five at once is the job that needs them; beside it there was none, or there would have been six.
    expect(runner.most).toBe(5);
    expect(runner.begun).toHaveLength(sizes.length);
  });

  it('runs as many jobs at a time as it is told, whatever the cores', async () => {
    const { job, executor, worker } = await scene();
    const runner = new Runner(200);
    const sweep = await executor();
    const outcomes = ['a', 'b', 'c'].map((name) => sweep.submit(job(name), nothing));
    worker(runner, { cores: 8, concurrency: 1 });
    await Promise.all(outcomes);
    expect(runner.most).toBe(1);
  });

  it('that is drained lets its jobs save themselves and gives them back to others', async () => {
    const { job, executor, worker } = await scene();
    const [slow, quick] = [new Runner(60_000), new Runner(10)];
    const sweep = await executor();
    const outcome = sweep.submit(job('a'), nothing);
    const { end } = worker(slow);
    await vi.waitFor(() => expect(slow.running.size).toBe(1), 5000);
    await end();
    expect(slow.running.size).toBe(0);
    worker(quick);
    expect(await outcome).toEqual(DONE);
    expect(quick.begun).toEqual(['a']);
  });

  it('of another version refuses, and leaves the job to others', async () => {
    const { redis, job, executor, worker } = await scene();
    const sweep = await executor();
    const outcome = sweep.submit(job('a'), nothing);
    const queue = new Queue('runs', { prefix: 'tcts', connection: { port: redis.port } });
    onTestFinished(() => queue.close());
    const [queued] = await vi.waitFor(async () => {
      const waiting = await queue.getWaiting();
      expect(waiting).toHaveLength(1);
      return waiting;
    });
    await queued.updateData({ ...queued.data, version: '99.1.0' });
    const runner = new Runner(10);
    await expect(worker(runner).ended).rejects.toThrow(
      `the sweep in this queue was started by tcts 99.1.0, but this worker is tcts ${toolVersion}: install the same version`,
    );
    expect(runner.begun).toEqual([]);
    await queued.updateData({ ...queued.data, version: toolVersion });
    worker(runner);
    expect(await outcome).toEqual(DONE);
  });

  it('whose folder is not the shared one refuses, and leaves the job to others', async () => {
    const { job, executor, worker } = await scene();
    const sweep = await executor();
    const outcome = sweep.submit(job('a'), nothing);
    const runner = new Runner(10);
    const elsewhere = temporaryFolder();
    await expect(worker(runner, { runs: elsewhere }).ended).rejects.toThrow(
      `${elsewhere}: this is not the shared folder of the sweep (no sweep has ever used it)`,
    );
    expect(runner.begun).toEqual([]);
    worker(runner);
    expect(await outcome).toEqual(DONE);
  });

  it('that cannot write to the shared folder stops and leaves the job to others', async () => {
    const { runs, job, executor, worker } = await scene();
    const sweep = await executor();
    const outcome = sweep.submit(job('a'), nothing);
    // The folder fails while the job is at work.
    const attempts = join(runs, '.queue/attempts');
    const breaking = new Runner(10, () => {
      rmSync(attempts, { recursive: true });
      return DONE;
    });
    await expect(worker(breaking).ended).rejects.toThrow('cannot write it: no such file or folder');
    expect(existsSync(attempts)).toBe(false);
    worker(new Runner(10));
    expect(await outcome).toEqual(DONE);
  });

  it('ends when it is asked to while Redis is away', async () => {
    const { redis, job, executor, worker } = await scene();
    const sweep = await executor();
    const outcome = sweep.submit(job('a'), nothing);
    const runner = new Runner(60_000);
    const { end } = worker(runner);
    await vi.waitFor(() => expect(runner.running.size).toBe(1), 5000);
    await redis.kill();
    await end();
    expect(runner.running.size).toBe(0);
    await redis.start();
    worker(new Runner(10));
    expect(await outcome).toEqual(DONE);
  });

  it('saves what it is at when Redis stays away for longer than its lease', async () => {
    const { redis, job, executor, worker } = await scene();
    const sweep = await executor();
    const outcome = sweep.submit(job('a'), nothing);
    const runner = new Runner(4000);
    worker(runner);
    await vi.waitFor(() => expect(runner.running.size).toBe(1), 5000);
    await redis.kill();
    await vi.waitFor(() => expect(runner.running.size).toBe(0), 3000);
    await redis.start();
    expect(await outcome).toEqual(DONE);
    expect(runner.begun).toEqual(['a', 'a']);
  });
});

describeWithRedis('the way to Redis', () => {
  const refusal = async (url: string) => {
    const runs = temporaryFolder();
    const attempt = serveQueue(url, { runs, signal: new AbortController().signal });
    return attempt.then(() => 'no refusal').catch((error: Error) => error.message);
  };

  it('needs the right password, which no message repeats', async () => {
    const { port } = await startRedis({ args: ['--requirepass', 'sesame'] });
    const at = (login: string) => `redis://${login}127.0.0.1:${port}`;
    expect(await refusal(at(':wrong@'))).toBe(`redis://***@127.0.0.1:${port}: Redis refuses this user and password`);
    expect(await refusal(at(''))).toMatch(/^redis:\/\/127.0.0.1:\d+: Redis asks for a password/);
    const executor = await queueExecutor(at('default:sesame@'), { runs: temporaryFolder() });
    await executor.close();
  });

  it('ends in a sentence where there is none', async () => {
    expect(await refusal('redis://127.0.0.1:1')).toBe(
      'redis://127.0.0.1:1: cannot connect to Redis: the connection is refused: no server seems to be running there',
    );
    expect(await refusal('redis://nowhere.invalid')).toMatch(/: cannot connect to Redis: (there is no host|the name)/);
  });
});
