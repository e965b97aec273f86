import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { acquireLock, type LockHolder } from '../../src/run/index.js';
import { attemptsAt, beginAttempt, type SharedFolder, sharedFolder } from '../../src/sweep/queue/shared-folder.js';
import { temporaryFolder } from '../run/temporary.js';

interface Place {
  readonly shared: SharedFolder;
  readonly folder: string;
}

function place(): Place {
  const shared = sharedFolder(temporaryFolder());
  const folder = join(shared.path, 'run');
  mkdirSync(folder);
  mkdirSync(shared.attempts, { recursive: true });
  return { shared, folder };
}

/** Begins with job `j`; waits for `leaseSeconds` at most, as that is what the worker before it had. */
async function begin({ shared, folder }: Place, { leaseSeconds = 0.6, signal = new AbortController().signal } = {}) {
  const began = performance.now();
  const attempt = await beginAttempt(shared, 'j', { token: 't', leaseSeconds, folder, signal });
  onTestFinished(() => attempt?.end());
  return { attempt, waited: performance.now() - began };
}

const jobLock = ({ shared }: Place) => join(shared.attempts, 'j.lock');
const runLock = ({ folder }: Place) => join(folder, 'run.lock');

/** The lock of a process on a machine that is not this one. */
function lockFrom(host: string, path: string): void {
  writeFileSync(path, JSON.stringify({ pid: 1, host, started: null, boot: null, space: null, token: host }));
}

describe('a worker that begins with a job', () => {
  it('does so at once where nobody was before, and records begin and end', async () => {
    const here = place();
    const { attempt, waited } = await begin(here);
    expect(waited).toBeLessThan(200);
    expect(attemptsAt(here.shared, 'j')).toEqual([
      { host: hostname(), pid: process.pid, token: 't', leaseSeconds: 0.6, began: expect.any(String) },
    ]);
    attempt!.end({ state: 'failed', reason: 'the disk is full' });
    expect(attemptsAt(here.shared, 'j')[0]).toMatchObject({
      ended: expect.any(String),
      outcome: { state: 'failed', reason: 'the disk is full' },
    });
    expect(existsSync(jobLock(here))).toBe(false);
    (await begin(here)).attempt!.end({ state: 'done' });
    expect(attemptsAt(here.shared, 'j').map(({ outcome }) => outcome?.state)).toEqual(['failed', 'done']);
  });

  it('waits out the lease of a worker elsewhere, then takes its locks', async () => {
    const here = place();
    lockFrom('elsewhere', jobLock(here));
    lockFrom('elsewhere', runLock(here));
    const { attempt, waited } = await begin(here);
    expect(attempt).toBeDefined();
    expect(waited).toBeGreaterThan(600);
    expect(existsSync(runLock(here))).toBe(false);
  });

  it('takes the lock of a worker in another container of this host, which it cannot see either', async () => {
    const here = place();
    const own = acquireLock(jobLock(here));
    const holder = JSON.parse(readFileSync(jobLock(here), 'utf8')) as LockHolder;
    own.release();
    writeFileSync(jobLock(here), JSON.stringify({ ...holder, space: 'pid:[1]' }));
    const { attempt, waited } = await begin(here);
    expect(attempt).toBeDefined();
    expect(waited).toBeGreaterThan(600);
  });

  it('waits for as long as the worker before it was given, whatever its own lease', async () => {
    const here = place();
    const before = { host: 'elsewhere', pid: 1, token: 's', leaseSeconds: 1.2, began: '2026-01-01T00:00:00.000Z' };
    writeFileSync(join(here.shared.attempts, 'j.json'), JSON.stringify([before]));
    lockFrom('elsewhere', jobLock(here));
    const { waited } = await begin(here, { leaseSeconds: 0.1 });
    expect(waited).toBeGreaterThan(1200);
  });

  it('leaves the lock of a training alone that was started elsewhere without the queue', async () => {
    const here = place();
    lockFrom('a', jobLock(here));
    lockFrom('b', runLock(here));
    expect((await begin(here)).attempt).toBeDefined();
    expect(existsSync(runLock(here))).toBe(true);
  });

  it('waits for what a dead worker of this machine has left running', async () => {
    const here = place();
    const training = acquireLock(runLock(here));
    setTimeout(() => training.release(), 300);
    const { waited } = await begin(here, { leaseSeconds: 30 });
    expect(waited).toBeGreaterThan(290);
    expect(waited).toBeLessThan(5000);
  });

  it('and loses it to another leaves the record to that one', async () => {
    const here = place();
    const { attempt } = await begin(here);
    lockFrom('elsewhere', jobLock(here));
    const history = join(here.shared.attempts, 'j.json');
    writeFileSync(history, '[]');
    attempt!.end({ state: 'failed', reason: 'its run was taken over' });
    expect(readFileSync(history, 'utf8')).toBe('[]');
    expect(existsSync(jobLock(here))).toBe(true);
  });

  it('never takes a job from a worker of this machine that lives', async () => {
    const here = place();
    const first = await begin(here, { leaseSeconds: 0.2 });
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 1000);
    const second = await begin(here, { leaseSeconds: 0.2, signal: stop.signal });
    expect(second.attempt).toBeUndefined();
    first.attempt!.end({ state: 'done' });
    expect(attemptsAt(here.shared, 'j')).toHaveLength(1);
  });
});
