import { expect, test } from 'vitest';
import { type RewardOptions, RewardSignal } from '../../src/schedule/index.js';

const PLAIN: RewardOptions = { reward: 'difference', skipFirst: false, baseline: null, normalise: null };

/** The advantages of a course of performances R₀, R₁, …. */
function advantages(performances: number[], options: Partial<RewardOptions>): (number | undefined)[] {
  const signal = new RewardSignal({ ...PLAIN, ...options });
  return performances.slice(1).map((performance, i) => signal.advantage(performance, performances[i]));
}

test('the reward is the gain in performance, or the performance itself', () => {
  expect(advantages([-8, -4, -3, -3.5], {})).toEqual([4, 1, -0.5]);
  expect(advantages([-8, -4, -3, -3.5], { reward: 'performance' })).toEqual([-4, -3, -3.5]);
});

test('the first episode can be passed over', () => {
  expect(advantages([-8, -4, -3, -3.5], { skipFirst: true })).toEqual([undefined, 1, -0.5]);
});

test('a baseline is the moving average of the rewards before', () => {
  // Rewards 4, 1, −0.5, 2 with decay ½. Averages before each: none; 4; (½·4 + 1)/1.5 = 2; (¼·4 + ½·1 − 0.5)/1.75 = 4/7.
  const found = advantages([0, 4, 5, 4.5, 6.5], { baseline: 0.5 });
  expect(found[0]).toBeUndefined();
  expect(found[1]).toBeCloseTo(-3, 12);
  expect(found[2]).toBeCloseTo(-2.5, 12);
  expect(found[3]).toBeCloseTo(2 - 4 / 7, 12);
});

test('normalised rewards are divided by the root of their moving mean square', () => {
  // Rewards 4, 1, −2 with decay ½: roots of 16; (8 + 1)/1.5 = 6; (4 + 0.5 + 4)/1.75 = 34/7.
  const found = advantages([0, 4, 5, 3], { normalise: 0.5 });
  expect(found[0]).toBe(1);
  expect(found[1]).toBeCloseTo(1 / Math.sqrt(6), 12);
  expect(found[2]).toBeCloseTo(-2 / Math.sqrt(34 / 7), 12);
  // The unit of the performance does not matter, and no change at all is no signal.
  const scaled = advantages(
    [0, 4, 5, 3].map((r) => 1000 * r),
    { normalise: 0.5 },
  );
  scaled.forEach((advantage, i) => {
    expect(advantage).toBeCloseTo(found[i]!, 12);
  });
  expect(advantages([2, 2, 2], { normalise: 0.5 })).toEqual([0, 0]);
});

test('its state can be saved', () => {
  const options = { ...PLAIN, skipFirst: true, baseline: 0.9, normalise: 0.9 };
  const [one, two] = [new RewardSignal(options), new RewardSignal(options)];
  for (const r of [1, 2, 2.5]) one.advantage(r, r - 0.3);
  two.load(JSON.parse(JSON.stringify(one.state())));
  expect(two.advantage(4, 2.5)).toBe(one.advantage(4, 2.5));
});
