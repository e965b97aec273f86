import { expect, it } from 'vitest';
import { openForecastData } from '../../src/forecast/data/dataset.js';
import { createForecast } from '../../src/forecast/problem.js';
import { TreesProblem } from '../../src/forecast/trees/problem.js';
import { Random } from '../../src/random.js';
import { copySnapshot } from '../../src/schedule/index.js';
import { smallConfig } from './small-market.js';

const TREES = {
  data: { format: 'synthetic', stocks: 40, days: 160, strength: 0.6 },
  model: { name: 'trees', rounds: 60, numLeaves: 8, learningRate: 0.1, lambdaL1: 0, lambdaL2: 1 },
};

async function treesProblem(seed = 1) {
  const config = smallConfig(TREES) as never;
  return new TreesProblem(config, await openForecastData(config), new Random(seed), 1);
}

async function grow(problem: TreesProblem, task: number): Promise<number> {
  const batch = problem.nextBatch();
  const size = problem.sizeOf(batch);
  return problem.train(batch, { tasks: new Int32Array(size).fill(task), weights: new Float32Array(size).fill(1) });
}

it('an update grows an ensemble that forecasts the main task', async () => {
  const problem = await treesProblem();
  const before = await problem.validate();
  const loss = await grow(problem, problem.main);
  // Rank labels spread like N(0, 1): without any knowledge the loss is about 1.
  expect(loss).toBeLessThan(0.95);
  expect(await problem.validate()).toBeGreaterThan(before);
  expect((await problem.test()).RankIC).toBeGreaterThan(0.2);
});

it('a restored problem has the same trees', async () => {
  const [one, other] = [await treesProblem(), await treesProblem(2)];
  await grow(one, 0);
  const saved = copySnapshot(one.capture());
  other.restore({ tensors: saved.tensors, state: JSON.parse(JSON.stringify(saved.state)) });
  expect(await other.test()).toEqual(await one.test());
});

it('the labels are those of the chosen tasks', async () => {
  const [main, sibling] = [await treesProblem(), await treesProblem()];
  await grow(main, 0);
  await grow(sibling, 2);
  const [direct, detour] = [await main.test(), await sibling.test()];
  expect(detour.RankIC).not.toBe(direct.RankIC);
  // Day 3 has the same best forecast up to scale, so that even its trees rank the stocks of day 1.
  expect(detour.RankIC).toBeGreaterThan(0.1);
});

it('the model of a configuration decides the kind of problem', async () => {
  const context = { random: new Random(1), threads: 1, workers: 1 };
  const trees = await createForecast(smallConfig(TREES), context);
  expect(trees).toBeInstanceOf(TreesProblem);
  expect(trees.features).toEqual([{ name: 'labels', width: 3 }]);
});
