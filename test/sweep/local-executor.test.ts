import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { type Job, localExecutor, type Outcome, type runJob } from '../../src/sweep/index.js';

const job = (name: string, cores: number): Job => ({ name, folder: name, config: '', after: [], cores });

/** Jobs that take some milliseconds and stop when they are asked to. */
function scene(cores: number, milliseconds = 20) {
  const begun: string[] = [];
  let [busy, most] = [0, 0];
  const run: typeof runJob = async ({ name, cores: needed }, { signal } = {}) => {
    begun.push(name);
    busy += needed;
    most = Math.max(most, busy);
    const stopped = await sleep(milliseconds, false, { signal }).catch(() => true);
    busy -= needed;
    if (name === 'bad') return { state: 'failed', reason: 'it is bad' };
    return { state: stopped ? 'stopped' : 'done' };
  };
  const executor = localExecutor({ cores, run });
  return { executor, begun, most: () => most };
}

const states = (outcomes: readonly Outcome[]) => outcomes.map(({ state }) => state);

it('keeps no more cores busy than it may, and begins jobs in their order', async () => {
  const { executor, begun, most } = scene(3);
  const jobs = [job('a', 2), job('b', 2), job('c', 1), job('d', 1), job('e', 3)];
  const outcomes = await Promise.all(jobs.map((one) => executor.submit(one, () => {})));
  expect(states(outcomes)).toEqual(Array(5).fill('done'));
  expect(begun).toEqual(['a', 'b', 'c', 'd', 'e']);
  expect(most()).toBe(3);
});

it('runs a job that needs more cores than there are alone', async () => {
  const { executor, most } = scene(2);
  await Promise.all([job('a', 1), job('large', 5), job('b', 1)].map((one) => executor.submit(one, () => {})));
  expect(most()).toBe(5);
});

it('goes on after a job that fails', async () => {
  const { executor } = scene(1);
  const outcomes = await Promise.all([job('bad', 1), job('good', 1)].map((one) => executor.submit(one, () => {})));
  expect(outcomes).toEqual([{ state: 'failed', reason: 'it is bad' }, { state: 'done' }]);
});

it('says when a job begins', async () => {
  const { executor } = scene(1);
  const steps: number[] = [];
  await executor.submit(job('a', 1), ({ step }) => steps.push(step));
  expect(steps).toEqual([0]);
});

it('stops what is running and gives back what waits when it is closed', async () => {
  const { executor, begun } = scene(1, 60_000);
  const outcomes = [job('a', 1), job('b', 1)].map((one) => executor.submit(one, () => {}));
  await executor.close();
  expect(states(await Promise.all(outcomes))).toEqual(['stopped', 'stopped']);
  expect(begun).toEqual(['a']);
  expect(await executor.submit(job('c', 1), () => {})).toEqual({ state: 'stopped' });
});
