import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { Lease } from '../../src/sweep/queue/worker.js';

/** Time that the machine has been asleep, in seconds: only the clock that counts from its start has seen it. */
let asleep = 0;
const { uptime } = os;

beforeEach(() => {
  asleep = 0;
  os.uptime = () => performance.now() / 1000 + asleep;
  syncBuiltinESMExports();
  onTestFinished(() => {
    os.uptime = uptime;
    syncBuiltinESMExports();
  });
});
beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance', 'Date'] }));
afterEach(() => void vi.useRealTimers());

const states = ({ lost, expired }: Lease) => [lost.aborted, expired.aborted];

describe('a lease of 10 seconds', () => {
  it('lasts as long as Redis renews it', async () => {
    const renew = vi.fn(async () => true);
    const lease = new Lease(10_000, renew);
    await vi.advanceTimersByTimeAsync(100_000);
    expect(states(lease)).toEqual([false, false]);
    // Often enough that some renewals may fail.
    expect(renew.mock.calls.length).toBeGreaterThan(50);
    lease.release();
  });

  it('asks to save when Redis has been silent for half of it, and ends well before it is over', async () => {
    const lease = new Lease(10_000, () => new Promise(() => {}));
    await vi.advanceTimersByTimeAsync(4900);
    expect(states(lease)).toEqual([false, false]);
    await vi.advanceTimersByTimeAsync(1200);
    expect(states(lease)).toEqual([true, false]);
    await vi.advanceTimersByTimeAsync(3000);
    expect(states(lease)).toEqual([true, true]);
    lease.release();
  });

  it('counts a renewal from when it was sent, not from when the answer came', async () => {
    let answer: (ours: boolean) => void = () => {};
    const lease = new Lease(10_000, () => new Promise((resolve) => (answer = resolve)));
    // Sent after one second, answered after nearly five: the next one is due at six, not at ten.
    await vi.advanceTimersByTimeAsync(4900);
    answer(true);
    await vi.advanceTimersByTimeAsync(1000);
    expect(states(lease)).toEqual([false, false]);
    await vi.advanceTimersByTimeAsync(1200);
    expect(states(lease)).toEqual([true, false]);
    lease.release();
  });

  it('is lost at once when Redis says that the job is not ours', async () => {
    const lease = new Lease(10_000, async () => false);
    await vi.advanceTimersByTimeAsync(1100);
    expect(states(lease)).toEqual([true, false]);
    lease.release();
  });

  it('survives a connection that breaks and comes back', async () => {
    let calls = 0;
    const lease = new Lease(10_000, async () => {
      if (++calls % 3 !== 0) throw new Error('Connection is closed.');
      return true;
    });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(states(lease)).toEqual([false, false]);
    lease.release();
  });

  it('is over when the machine was asleep for longer, although the process has not seen the time pass', async () => {
    const lease = new Lease(10_000, () => new Promise(() => {}));
    await vi.advanceTimersByTimeAsync(2000);
    asleep = 60;
    await vi.advanceTimersByTimeAsync(1100);
    expect(states(lease)).toEqual([true, true]);
    lease.release();
  });

  it('does not mind a wall clock that jumps', async () => {
    const lease = new Lease(10_000, async () => true);
    await vi.advanceTimersByTimeAsync(2000);
    vi.setSystemTime(Date.now() + 86_400_000);
    await vi.advanceTimersByTimeAsync(2000);
    vi.setSystemTime(Date.now() - 2 * 86_400_000);
    await vi.advanceTimersByTimeAsync(2000);
    expect(states(lease)).toEqual([false, false]);
    lease.release();
  });
});
