import { describe, expect, test } from 'vitest';
import { SaveSchedule, type SaveScheduleOptions } from '../../src/run/index.js';

describe('saving', () => {
  test('is due at multiples of so many steps', () => {
    expect(saves({ everySteps: 10, everySeconds: null }, steps(35), 0)).toEqual([10, 20, 30]);
  });

  test('is due when a multiple has been passed, if steps are taken several at a time', () => {
    expect(saves({ everySteps: 10, everySeconds: null }, [7, 14, 21, 28, 35], 0)).toEqual([14, 21, 35]);
  });

  test('is due after so many seconds', () => {
    expect(saves({ everySteps: null, everySeconds: 5 }, steps(20), 1)).toEqual([5, 10, 15, 20]);
  });

  test('is due at whichever comes first', () => {
    // By time 4, 8 (then by steps 10), 14, 18 (then 20): a save by steps restarts the clock.
    expect(saves({ everySteps: 10, everySeconds: 4 }, steps(20), 1)).toEqual([4, 8, 10, 14, 18, 20]);
  });

  test('is never due with neither, nor twice at one step', () => {
    expect(saves({ everySteps: null, everySeconds: null }, steps(100), 100)).toEqual([]);
    expect(saves({ everySteps: 1, everySeconds: 1 }, [3, 3, 3], 10)).toEqual([3]);
  });
});

function steps(n: number): number[] {
  return Array.from({ length: n }, (_, i) => i + 1);
}

function saves(options: SaveScheduleOptions, at: number[], secondsPerStep: number): number[] {
  let now = 0;
  const policy = new SaveSchedule(options, 0, () => now);
  return at.filter((step) => {
    now += 1000 * secondsPerStep;
    const due = policy.due(step);
    if (due) policy.saved(step);
    return due;
  });
}
