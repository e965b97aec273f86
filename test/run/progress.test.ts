import { describe, expect, test } from 'vitest';
import { formatDuration, Progress, type ProgressOptions } from '../../src/run/index.js';

describe('on a terminal', () => {
  test('the bar is redrawn in place, ten times a second at most', () => {
    const { progress, writes, clock } = setUp({ isTTY: true, columns: 200 }, { total: 1000 });
    for (let step = 1; step <= 1000; step++) {
      clock.time += 1;
      progress.update(step, { loss: 1 / step });
    }
    // One second: at 1 ms, 101 ms, …, 901 ms.
    expect(writes).toHaveLength(10);
    for (const text of writes) expect(text.startsWith('\r\x1b[K')).toBe(true);
    expect(writes.join('')).not.toContain('\n');
  });

  test('shows step, fields, speed and time left', () => {
    const { progress, writes, clock } = setUp({ isTTY: true, columns: 200 }, { total: 1000 });
    clock.time += 2000;
    progress.update(500, { loss: 0.123456, tasks: '3:0.41 5:0.22' });
    // 500 steps in 2 s, and as many to go; half of 20 columns.
    expect(writes[0]).toBe(
      '\r\x1b[K██████████░░░░░░░░░░ step 500/1000 (50 %)  loss 0.1235  tasks 3:0.41 5:0.22  250 steps/s  2s left',
    );
  });

  test('is never wider than the terminal, and follows its size', () => {
    const stream = { isTTY: true, columns: 40 };
    const { progress, writes, clock } = setUp(stream, { total: 10 });
    progress.update(1, { text: 'long '.repeat(50) });
    stream.columns = 60;
    clock.time += 1000;
    progress.update(2, { text: 'long '.repeat(50) });
    const widths = writes.map((text) => [...text.slice('\r\x1b[K'.length)].length);
    expect(Math.max(...widths)).toBeLessThanOrEqual(59);
    expect(widths[0]).toBeLessThanOrEqual(39);
  });

  test('leaves out whole fields where there is no room, and keeps the time left', () => {
    const { progress, writes, clock } = setUp({ isTTY: true, columns: 80 }, { total: 1000 });
    clock.time += 2000;
    progress.update(500, { loss: 0.123456, 'validation loss': 0.00002888, tasks: '3:0.41 5:0.22' });
    expect(writes[0]).toBe('\r\x1b[K██████████░░░░░░░░░░ step 500/1000 (50 %)  loss 0.1235  2s left');
  });

  test('a note stands above the bar, and the bar is cleared at the end', () => {
    const { progress, writes } = setUp({ isTTY: true, columns: 200 }, { total: 10 });
    progress.update(1);
    progress.note('hello');
    expect(writes.slice(1, 3)).toEqual(['\r\x1b[K', 'hello\n']);
    expect(writes[3]).toMatch(/step 1\/10/);
    progress.clear();
    progress.clear();
    expect(writes.slice(4)).toEqual(['\r\x1b[K']);
  });
});

describe('elsewhere', () => {
  test('there is a line every so many seconds, without control characters', () => {
    const { progress, writes, clock } = setUp({}, { total: 100, intervalSeconds: 5 });
    for (let step = 1; step <= 100; step++) {
      clock.time += 100;
      progress.update(step, { loss: 2 });
    }
    expect(writes).toEqual([
      'step 50/100 (50 %), loss 2, 10 steps/s, 5s left\n',
      'step 100/100 (100 %), loss 2, 10 steps/s, 0s left\n',
    ]);
  });

  test('the total may be unknown', () => {
    const { progress, writes, clock } = setUp({}, { intervalSeconds: 1 });
    clock.time += 1000;
    progress.update(4);
    expect(writes).toEqual(['step 4, 4 steps/s\n']);
  });

  test('a resumed run is as fast as its own steps', () => {
    const { progress, writes, clock } = setUp({}, { total: 1000, step: 900, intervalSeconds: 1 });
    clock.time += 1000;
    progress.update(910);
    expect(writes).toEqual(['step 910/1000 (91 %), 10 steps/s, 9s left\n']);
  });

  test('the time left follows a change of speed smoothly', () => {
    const { progress, writes, clock } = setUp({}, { total: 10_000, intervalSeconds: 1 });
    for (let i = 1; i <= 100; i++) {
      clock.time += 1000;
      progress.update(10 * i);
    }
    clock.time += 1000;
    progress.update(1100);
    // A hundred steps in one second after ten each: the speed rises, by far not to 100.
    const speed = Number(/([\d.]+) steps\/s/.exec(writes.at(-1)!)![1]);
    expect(speed).toBeGreaterThan(10);
    expect(speed).toBeLessThan(20);
  });
});

test('when quiet, nothing is written and fields are not even made', () => {
  const { progress, writes, clock } = setUp({ isTTY: true }, { quiet: true });
  clock.time += 1e9;
  progress.update(1, () => {
    throw new Error('not to be called');
  });
  progress.note('hello');
  progress.clear();
  expect(writes).toEqual([]);
});

test.each([
  [0.4, '0s'],
  [59.4, '59s'],
  [59.6, '1m00s'],
  [185, '3m05s'],
  [3599.6, '1h00m'],
  [100_000, '27h46m'],
])('%d seconds are shown as %s', (seconds, text) => {
  expect(formatDuration(seconds)).toBe(text);
});

function setUp(stream: { isTTY?: boolean; columns?: number }, options: ProgressOptions) {
  const writes: string[] = [];
  const clock = { time: 0 };
  const target = Object.assign(stream, { write: (text: string) => writes.push(text) });
  return { writes, clock, progress: new Progress({ ...options, stream: target, now: () => clock.time }) };
}
