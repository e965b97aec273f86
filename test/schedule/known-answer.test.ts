import { expect, test } from 'vitest';
import { pairedTTest } from '../../src/metrics/index.js';
import { advance, start, strategyConfig } from './trainings.js';

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
const LEARNED = strategyConfig({ name: 'learned', hidden: [32] });
const MTL = strategyConfig({ name: 'mtl' });

test('the scheduler finds the helpful task, and the model gains by it', { timeout: 120_000 }, async () => {
  const extent = { episodes: 800, steps: 2 };
  const losses: { learned: number[]; mtl: number[] } = { learned: [], mtl: [] };
  for (const seed of SEEDS) {
    const learned = await start(LEARNED, seed);
    const helpful = learned.problem.tasks.findIndex(({ name }) => name === 'clean');
    const lastQuarter = (await advance(learned, extent)).slice(600);
    const mass = lastQuarter.reduce((sum, { distribution }) => sum + distribution[helpful], 0) / lastQuarter.length;
    expect(mass, `seed ${seed}`).toBeGreaterThanOrEqual(0.6);
    await learned.strategy.close?.();

    const mtl = await start(MTL, seed);
    await advance(mtl, extent);
    losses.learned.push((await learned.problem.test!()).loss);
    losses.mtl.push((await mtl.problem.test!()).loss);
  }
  const { statistic, p } = pairedTTest(losses.learned, losses.mtl);
  expect(statistic).toBeLessThan(0);
  expect(p).toBeLessThan(0.05);
});

test('the scheduler sees which task helps which sample', { timeout: 120_000 }, async () => {
  const extent = { episodes: 1000, steps: 2 };
  let right = 0;
  for (const seed of SEEDS) {
    const { problem, strategy, course, ...rest } = await start(LEARNED, seed, 'contextual');
    await advance({ problem, strategy, course, ...rest }, extent);
    const [even, odd] = ['even', 'odd'].map((name) => problem.tasks.findIndex((task) => task.name === name));
    const shares = [0, 1].map(() => ({ even: 0, odd: 0 }));
    for (let n = 0; n < 10; n++) {
      const batch = await problem.nextBatch();
      const policy = await strategy.probabilities(batch, course.status(2000));
      batch.kinds.forEach((kind, i) => {
        shares[kind].even += policy[3 * i + even];
        shares[kind].odd += policy[3 * i + odd];
      });
    }
    if (shares[0].even > shares[0].odd && shares[1].odd > shares[1].even) right++;
    await strategy.close?.();
  }
  expect(right).toBeGreaterThanOrEqual(9);
});
