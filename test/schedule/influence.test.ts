import { expect, test } from 'vitest';
import { Random } from '../../src/random.js';
import { drawProbabilities, Influence } from '../../src/schedule/strategies/influence.js';
import { Measurements, meanOf, slopesOf } from '../../src/schedule/strategies/measurements.js';
import { Evidence, Relevance } from '../../src/schedule/strategies/relevance.js';
import { advance, start, strategyConfig } from './trainings.js';

const f32 = (...values: number[]) => Float32Array.from(values);

/** Probability that the policy gives to the right task of each sample, after this many updates. */
async function rightShare(
  problem: 'knownAnswer' | 'contextual',
  seed: number,
  updates: number,
  strategy: { name: string; shuffle?: boolean } = { name: 'influence' },
) {
  const subject = await start(strategyConfig(strategy), seed, problem);
  await advance(subject, { episodes: updates / 10, steps: 10 });
  const K = subject.problem.tasks.length;
  const shares: number[] = [];
  for (let n = 0; n < 10; n++) {
    const batch = await subject.problem.nextBatch();
    const policy = await subject.strategy.probabilities(batch, subject.course.status(updates));
    const rightOf = (kind: number) => (problem === 'knownAnswer' ? 0 : 1 + kind);
    batch.kinds.forEach((kind, i) => {
      shares.push(policy[i * K + rightOf(kind)]);
    });
  }
  const { loss } = await subject.problem.test!();
  await subject.strategy.close?.();
  return { share: meanOf(shares), loss };
}

// `learned` needs 1,600 and 2,000 updates for these (known-answer.test.ts).
test('finds the helpful task within 160 updates', { timeout: 60_000 }, async () => {
  for (const seed of [31, 32, 33]) {
    const { share, loss } = await rightShare('knownAnswer', seed, 160);
    expect(share, `seed ${seed}`).toBeGreaterThan(0.7);
    // Labels of evaluation data have the noise 0.3: no model is below ½ · 0.3² = 0.045.
    expect(loss, `seed ${seed}`).toBeLessThan(0.07);
  }
});

test('finds the helpful task of each kind of sample by its features', { timeout: 60_000 }, async () => {
  for (const seed of [31, 32, 33]) {
    expect((await rightShare('contextual', seed, 200)).share, `seed ${seed}`).toBeGreaterThan(0.75);
  }
});

test('without evidence, as by the features of other samples, it trains like mtl to the last bit', async () => {
  for (const seed of [31, 32, 33]) {
    const { loss } = await rightShare('contextual', seed, 200, { name: 'influence', shuffle: true });
    expect(loss, `seed ${seed}`).toBe((await rightShare('contextual', seed, 200, { name: 'mtl' })).loss);
  }
});

test('slopes are those of the root of the loss', () => {
  const { slopes, losses, typical } = slopesOf({ ahead: f32(9, 4, Number.NaN), behind: f32(4, 4, 1) }, 3);
  expect([...slopes]).toEqual([1, 0, Number.NaN]);
  expect([...losses]).toEqual([6.5, 4, Number.NaN]);
  // The lower of two that are known.
  expect([...typical]).toEqual([4]);
});

test('credit is direction over the best mean direction, less half of what a loss exceeds twice the usual one', () => {
  const measurements = new Measurements(1, 2, 8);
  // Task 1 always pulls the right way, task 2 as often the wrong way, with four times the loss.
  const slopes = { slopes: f32(1, 2, 1, -2), losses: f32(1, 4, 1, 4), typical: f32(1, 1) };
  for (let n = 0; n < 4; n++) measurements.add(f32(0, 0), slopes);
  const credit = measurements.credit([0.5, 0.5]);
  // d̂ = 1/√2 for task 1, ±1/√2 with mean 0 for task 2; the mean loss under the policy is 2.5, so that 4 is not unusual.
  expect(credit.unit).toBeCloseTo(Math.SQRT1_2, 6);
  expect(credit.means[0]).toBeCloseTo(1, 6);
  expect(credit.means[1]).toBeCloseTo(0, 6);
  // A policy that takes task 1 alone has the mean loss 1: four times that is two more than twice.
  expect(measurements.credit([1, 0]).means[1]).toBeCloseTo(-(4 - 2) / 2, 6);
});

test('a loss far beyond the mean counts as nine times the mean', () => {
  const measurements = new Measurements(1, 2, 8);
  for (let n = 0; n < 4; n++) measurements.add(f32(0), { slopes: f32(1, 1), losses: f32(1, 1000), typical: f32(1) });
  expect(measurements.credit([1, 0]).means[1]).toBeCloseTo(1 - (9 - 2) / 2, 6);
});

test('a sample that is hard for all tasks is no reason to avoid one of them', () => {
  const measurements = new Measurements(1, 3, 8);
  // Hard for all tasks, and easy with one corrupted label: losses 8 and 8, medians 8 and 1, under a policy of mean loss 1.
  const rows = slopesOf({ ahead: f32(8, 8, 8, 1, 1, 8), behind: f32(8, 8, 8, 1, 1, 8) }, 3);
  for (let n = 0; n < 4; n++) measurements.add(f32(0, 0), rows);
  const { credits } = measurements.last({ ...measurements.credit([1, 0, 0]), loss: 1 });
  expect([...credits]).toEqual([0, 0, 0, 0, 0, -(8 - 2) / 2]);
});

test('evidence is a likelihood ratio against a bound that grows with the looks', () => {
  // 5 estimates 3, 4, 5, 4, 4: mean 4, squares 2, products of neighbours 0, r = 0 + 1/5: error² = 2/4/5 · 1.2/.8 = .15,
  // t² = 106.7, z² = 4 ln(1 + 26.67) = 13.28. The bound for one effect is 2 ln 1000 + ln 6 = 15.61.
  const evidence = new Evidence(1);
  for (const value of [3, 4, 5, 4, 4]) evidence.add(f32(value));
  expect(evidence.weights[0]).toBe(0);
  // A sixth, 4: r = 1/6, error² = 2/5/6 · (7/6)/(5/6) = .0933, t² = 171.4, z² = 5 ln(1 + 34.29) = 17.81 against
  // 2 ln 1000 + ln 7 = 15.76.
  evidence.add(f32(4));
  expect(evidence.weights[0]).toBeCloseTo(1 / (1 + Math.exp((15.7614 - 17.8178) / 2)), 3);
  // What was certain once remains so.
  for (let n = 0; n < 20; n++) evidence.add(f32(n % 2 === 0 ? 50 : -50));
  expect(evidence.weights[0]).toBeGreaterThan(0.7);

  const copy = new Evidence(1);
  copy.restore(evidence.capture());
  for (const of of [evidence, copy]) for (let n = 0; n < 40; n++) of.add(f32(4 + (n % 3)));
  expect(copy.weights).toEqual(evidence.weights);
  expect(evidence.weights[0]).toBeGreaterThan(0.7);
});

test('noise never becomes evidence, although it is looked at after every measurement', () => {
  const random = new Random(8);
  let passed = 0;
  for (let sequence = 0; sequence < 40; sequence++) {
    const evidence = new Evidence(12);
    // Neighbours resemble each other, as measurements along a smoothed gradient do.
    const state = new Float32Array(12);
    for (let n = 0; n < 150; n++) {
      for (let effect = 0; effect < 12; effect++) state[effect] = 0.4 * state[effect] + random.normal();
      evidence.add(state.slice());
    }
    if (evidence.weights.some((weight) => weight > 0)) passed++;
  }
  // 40 sequences at α = .001 make 0.04 on average.
  expect(passed).toBe(0);
});

test('an unknown label makes a task neither better nor worse', () => {
  const measurements = new Measurements(1, 3, 8);
  for (let n = 0; n < 4; n++) {
    measurements.add(f32(0), { slopes: f32(1, Number.NaN, -1), losses: f32(1, Number.NaN, 1), typical: f32(1) });
  }
  const credit = measurements.credit([0.4, 0.2, 0.4]);
  const { credits } = measurements.draw(5, credit, new Random(1));
  for (let row = 0; row < 5; row++) {
    expect(credits[row * 3 + 1]).toBeCloseTo((credits[row * 3] + credits[row * 3 + 2]) / 2, 5);
  }
});

test('tasks less than 1/e as likely as the best are not drawn, but for what keeps them in training', () => {
  // e⁻¹ = .368: of .6 that is .22.
  expect(drawProbabilities([[0.6, 0.25, 0.15]], 0)[0]).toEqual([0.6 / 0.85, 0.25 / 0.85, 0]);
  // The shares of one row are the row itself: every task suits it alike.
  const [row] = drawProbabilities([[0.6, 0.25, 0.15]], 0.3);
  expect(row[2]).toBeCloseTo(0.3 / 3, 12);
  expect(row[0] + row[1] + row[2]).toBeCloseTo(1, 12);
});

test('a task is kept in training on the samples that it suits', () => {
  const [, spoilt] = drawProbabilities(
    [
      [0.5, 0.5],
      [0.01, 0.99],
    ],
    0.1,
  );
  // (.01/.255)^.9 = .0543, (.99/.745)^.9 = 1.2917: of the tenth, .0543/1.346 = .0403.
  expect(spoilt[0]).toBeCloseTo(0.1 * 0.0403, 4);
});

test('with γ = 1 every task is drawn alike, to the last bit', () => {
  const rows = drawProbabilities(
    [
      [0.7, 0.2, 0.1],
      [0.1, 0.3, 0.6],
    ],
    1,
  );
  for (const row of rows) expect(row).toEqual([1 / 3, 1 / 3, 1 / 3]);
});

test('features count as far as they tell which task is better, the others not at all', () => {
  const random = new Random(5);
  const [F, K, n] = [50, 2, 64];
  const relevance = new Relevance(F, K);
  const scale = { mean: new Float32Array(F), inverseStd: new Float32Array(F).fill(2) };
  const told = () => relevance.weigh(scale).inverseStd;
  for (let measurement = 0; measurement < 40; measurement++) {
    const features = Float32Array.from({ length: n * F }, () => random.normal() / 2);
    // Task 1 is better where feature 7 is large, under noise of 16 times its variance. z = 2x has the covariance ¼ with the
    // advantage, with an error of √2 ∕ √(40·64) = .028: t ≈ 8.9, z² = 39 ln(1 + 80/39) = 44 against the bound
    // 2 ln(100 ∕ .001) + ln 41 = 26.7.
    const credits = Float32Array.from({ length: n * K }, (_, at) => {
      const signal = at % K === 0 ? features[Math.floor(at / K) * F + 7] : 0;
      return signal + 2 * random.normal();
    });
    relevance.add(features, credits, scale);
    if (measurement < 4) expect(relevance.strongest).toBe(0);
  }
  expect(told()[7]).toBeGreaterThan(1.9);
  expect(relevance.strongest).toBeGreaterThan(0.95);
  expect(told().filter((weight) => weight > 0)).toHaveLength(1);

  const copy = new Relevance(F, K);
  copy.restore(relevance.capture());
  expect(copy.weigh(scale).inverseStd).toEqual(told());
});

test('samples are not picked by their labels unless asked to', async () => {
  const { problem } = await start(strategyConfig({ name: 'influence' }), 1, 'contextual');
  const groups = [
    { name: 'x', width: 2 },
    { name: 'labels', width: 3, outcome: true },
    { name: 'loss', width: 1, costly: true },
  ];
  const seen: string[][] = [];
  const spy = Object.assign(Object.create(problem) as typeof problem, {
    features: groups,
    writeFeatures: async (_batch: unknown, _status: unknown, asked: readonly string[]) => void seen.push([...asked]),
  });
  for (const without of [null, []]) {
    const strategy = await Influence.create(spy, new Random(1), { without });
    await strategy.probabilities(await problem.nextBatch(), {
      update: 1,
      updates: 1,
      performance: 0,
      meanPerformance: 0,
    });
    await strategy.close();
  }
  expect(seen).toEqual([['x'], ['x', 'labels', 'loss']]);
});

test('what samples with one policy are drawn from does not depend on whether it is said once', () => {
  const [one, other] = [
    [0.5, 0.3, 0.2],
    [0.1, 0.1, 0.8],
  ];
  const copied = drawProbabilities([[...one], [...one], [...other], [...one]], 0.1);
  expect(drawProbabilities([one, one, other, one], 0.1)).toEqual(copied);
  expect(copied[0]).not.toEqual(copied[2]);
});

test('measurements that come from a checkpoint give the same credits', () => {
  const [measured, restored] = [new Measurements(1, 2, 3), new Measurements(1, 2, 3)];
  const random = new Random(6);
  // One more than are kept.
  for (let n = 0; n < 4; n++) {
    const values = Array.from({ length: 4 }, () => f32(...[1, 2, 3, 4].map(() => random.uniform())));
    values[n % 2][2] = Number.NaN;
    measured.add(values[2].subarray(0, 2), slopesOf({ ahead: values[0], behind: values[1] }, 2));
  }
  restored.restore(measured.capture());
  expect(restored.credit([0.3, 0.7])).toEqual(measured.credit([0.3, 0.7]));
});
