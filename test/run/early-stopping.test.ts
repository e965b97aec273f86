import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EarlyStopping, type EarlyStoppingOptions } from '../../src/run/index.js';

describe('early stopping', () => {
  test('stops after as many scores without improvement as it has patience', () => {
    // The best is 3 at step 3; 2 and 3 are the two that do not improve on it.
    expect(stopsAt({ mode: 'max', patience: 2 }, [1, 2, 3, 2, 3, 9])).toBe(5);
    expect(stopsAt({ mode: 'min', patience: 2 }, [3, 2, 1, 2, 1, 0])).toBe(5);
  });

  test('never stops without patience', () => {
    expect(stopsAt({ mode: 'max', patience: null }, new Array(1000).fill(0))).toBeUndefined();
    expect(stopsAt({ mode: 'max' }, new Array(1000).fill(0))).toBeUndefined();
  });

  test('a creeping improvement counts once it has summed up to more than the smallest change', () => {
    // Against the mark 0: 0.06 and 0.1 are not more than 0.1, 0.12 is, and becomes the mark.
    expect(stopsAt({ mode: 'max', patience: 3, minDelta: 0.1 }, [0, 0.06, 0.1, 0.12, 0.15, 0.18, 0.2])).toBe(7);
  });

  test('the best score is the best, even by less than the smallest change', () => {
    const stopping = new EarlyStopping({ mode: 'max', patience: 5, minDelta: 1 });
    expect([1, 1.5, 1.5, 1.2].map((score, i) => stopping.update(i + 1, score))).toEqual([true, true, false, false]);
    expect(stopping.best).toEqual({ score: 1.5, step: 2 });
  });

  test('NaN is no improvement, wherever it comes', () => {
    expect(stopsAt({ mode: 'min', patience: 2 }, [Number.NaN, Number.NaN])).toBe(2);
    const stopping = new EarlyStopping({ mode: 'min' });
    expect([Number.NaN, 1, Number.NaN].map((score, i) => stopping.update(i, score))).toEqual([false, true, false]);
    expect(stopping.best?.score).toBe(1);
  });

  test('goes on from a saved state as if nothing had happened', () => {
    const options = fc.record({
      mode: fc.constantFrom('min' as const, 'max' as const),
      patience: fc.integer({ min: 1, max: 4 }),
      minDelta: fc.constantFrom(0, 0.5),
    });
    const scores = fc.array(fc.oneof(fc.integer({ min: 0, max: 5 }), fc.constant(Number.NaN)), { minLength: 1 });
    fc.assert(
      fc.property(options, scores, fc.nat(), (settings, given, where) => {
        const whole = new EarlyStopping(settings);
        let parts = new EarlyStopping(settings);
        given.forEach((score, i) => {
          if (i === where % given.length) parts = new EarlyStopping(settings, structuredClone(parts.state));
          expect(parts.update(i, score)).toBe(whole.update(i, score));
          expect(parts.stop).toBe(whole.stop);
        });
        expect(parts.state).toEqual(whole.state);
      }),
    );
  });
});

function stopsAt(options: EarlyStoppingOptions, scores: number[]): number | undefined {
  const stopping = new EarlyStopping(options);
  const at = scores.findIndex((score, i) => {
    stopping.update(i + 1, score);
    return stopping.stop;
  });
  return at < 0 ? undefined : at + 1;
}
