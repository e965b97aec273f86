import fc from 'fast-check';
import { expect, it } from 'vitest';
import { neutralised } from '../../src/metrics/index.js';

const forecasts = [1, 3, 2, 6];
const close = (found: Float64Array, expected: readonly number[]) => {
  expect(found.length).toBe(expected.length);
  for (const [i, x] of expected.entries()) {
    if (Number.isNaN(x)) expect(found[i]).toBeNaN();
    else expect(found[i]).toBeCloseTo(x, 12);
  }
};

it('takes the mean of each group out', () => {
  // Means 2 and 4.
  close(neutralised(forecasts, { groups: ['a', 'a', 'b', 'b'] }), [-1, 1, -2, 2]);
  // A stock that is alone in its group says nothing; those without a group are one.
  close(neutralised(forecasts, { groups: [7, Number.NaN, 8, Number.NaN] }), [0, -1.5, 0, 1.5]);
});

it('takes what the beta explains out', () => {
  // f̃ = −2, 0, −1, 3 and β̃ = −.75, .25, −.75, 1.25: b = 6 ∕ 2.75 = 24 ∕ 11.
  close(neutralised(forecasts, { betas: [1, 2, 1, 3] }), [-4 / 11, -6 / 11, 7 / 11, 3 / 11]);
  // Equal betas explain nothing but the mean.
  close(neutralised(forecasts, { betas: [0.1, 0.1, 0.1, 0.1] }), [-2, 0, -1, 3]);
});

it('takes both out at once', () => {
  // f̃ = −1, 1, −2, 2 and β̃ = −.5, .5, −.5, .5: b = 3.
  close(neutralised(forecasts, { groups: ['a', 'a', 'b', 'b'], betas: [1, 2, 1, 2] }), [0.5, -0.5, -0.5, 0.5]);
});

it('leaves unknown forecasts unknown, and takes an unknown beta for the mean', () => {
  const unknown = Number.NaN;
  close(neutralised([1, unknown, 3], { groups: ['a', 'a', 'a'] }), [-1, unknown, 1]);
  // β̃ = −1, 1 of the first two; f̃ = −1, 0, 1: b = 1 ∕ 2.
  close(neutralised([1, 2, 3], { betas: [1, 3, unknown] }), [-0.5, -0.5, 1]);
});

it('leaves sums of zero in each group, and nothing along the betas', () => {
  const row = fc.tuple(
    fc.integer({ min: -99, max: 99 }),
    fc.integer({ min: 0, max: 3 }),
    fc.integer({ min: -9, max: 9 }),
  );
  fc.assert(
    fc.property(fc.array(row, { minLength: 2, maxLength: 30 }), (rows) => {
      const [f, groups, betas] = [0, 1, 2].map((column) => rows.map((cells) => cells[column]!));
      const found = neutralised(f!, { groups, betas });
      const sum = (of: (i: number) => number) => rows.reduce((total, _, i) => total + of(i), 0);
      for (let g = 0; g < 4; g++) expect(sum((i) => (groups![i] === g ? found[i]! : 0))).toBeCloseTo(0, 8);
      expect(sum((i) => found[i]! * betas![i]!)).toBeCloseTo(0, 6);
    }),
  );
});
