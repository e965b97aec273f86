import { describe, expect, it } from 'vitest';
import { SweepView } from '../../src/cli/sweep-run.js';
import type { RunRecord } from '../../src/sweep/index.js';

/** A stream that remembers, and a clock that is set by hand. */
function scene(isTTY: boolean, options: { quiet?: boolean } = {}) {
  let text = '';
  let time = 0;
  const stream = { isTTY, columns: 60, write: (piece: string) => (text += piece) };
  const view = new SweepView({ total: 3, stream, now: () => time, ...options });
  const run = (name: string, state: RunRecord['state'], reason?: string): RunRecord => ({
    ...{ name, group: 'g', labels: {}, seed: 1, candidate: false, state },
    ...(reason !== undefined && { reason }),
  });
  const taken = () => {
    const piece = text;
    text = '';
    return piece;
  };
  return { view, run, taken, at: (seconds: number) => (time = 1000 * seconds) };
}

describe('where nobody watches', () => {
  it('there is a line when a run begins and when it ends', () => {
    const { view, run, taken, at } = scene(false);
    view.change(run('a', 'waiting'));
    expect(taken()).toBe('');
    view.change(run('a', 'running'), { step: 0, steps: 10 });
    expect(taken()).toBe('started a\n');
    view.change(run('a', 'running'), { step: 5, steps: 10, best: -0.25 });
    expect(taken()).toBe('');
    at(65);
    view.change(run('a', 'done'));
    expect(taken()).toBe('done    a: validation -0.25, 1m05s\n');
    view.change(run('b', 'done'));
    expect(taken()).toBe('done    b: already done\n');
    view.change(run('c', 'failed', 'the disk is full'));
    expect(taken()).toBe('failed  c: the disk is full\n');
  });

  it('there is nothing at all if nothing is wanted', () => {
    const { view, run, taken } = scene(false, { quiet: true });
    view.change(run('a', 'running'), { step: 0, steps: 10 });
    view.change(run('a', 'done'));
    view.note('a word');
    expect(taken()).toBe('');
  });
});

describe('on a terminal', () => {
  it('a table of the runs at work is redrawn in place, with the time that is left by those that are done', () => {
    const { view, run, taken, at } = scene(true);
    view.change(run('first', 'running'), { step: 5, steps: 20, best: -0.5 });
    const table = taken().split('\n');
    expect(table[0]).toMatch(/^run +update +validation +time/);
    expect(table[2]).toMatch(/^first +5 +25 % +-0\.5 +0s/);
    expect(table[3]).toBe('0 of 3 done, 1 running');
    at(10);
    view.change(run('first', 'done'));
    const after = taken();
    // Four lines up, then erased to the end of the screen.
    expect(after.startsWith('\x1b[4A\r\x1b[J')).toBe(true);
    expect(after).toMatch(/done {4}first: validation -0\.5, 10s\n/);
    // One run took 10 seconds, two are left.
    expect(after).toMatch(/1 of 3 done, 0 running, about 20s left\n$/);
    view.clear();
    expect(taken()).toBe('\x1b[3A\r\x1b[J');
  });

  it('no line is longer than the terminal is wide', () => {
    const { view, run, taken } = scene(true);
    view.change(run('x'.repeat(100), 'running'), { step: 5, steps: 20 });
    for (const line of taken().split('\n')) expect(line.length).toBeLessThan(60);
  });
});
