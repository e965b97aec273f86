import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { createProblem, trainConfigSchema } from '../../src/problems/index.js';
import { Random } from '../../src/random.js';
import { loadConfig } from '../../src/run/index.js';
import { type Branch, planProbe, probeSeed } from '../../src/schedule/index.js';

// Everything random is in the captured state: the order of the data, and dropout in the toy's Transformer.
test.each([
  [
    'market',
    [
      'problem.data.days=560',
      'problem.data.stocks=30',
      'problem.split.test=["2016-11-01","2016-12-31"]',
      'problem.split.validation=["2016-07-01","2016-10-31"]',
    ],
  ],
  ['toy', ['problem.waits=3', 'problem.main=2', 'problem.batch.tokens=256']],
])('branches of %s with the same mix end with the same bits', { timeout: 120_000 }, async (name, set) => {
  const file = fileURLToPath(new URL(`../../configs/${name}.yaml`, import.meta.url));
  const config = loadConfig(trainConfigSchema, file, { set });
  const random = new Random(1);
  const problem = await createProblem(config.problem, { random: random.fork('problem'), threads: 1, workers: 1 });
  try {
    const plan = planProbe(problem, { budget: 36, seed: 1, seeds: 3, checkpoints: 1 });
    const [main, uniform] = plan.arms;
    const arms = [main, uniform, { ...uniform, name: 'uniform again' }, { ...main, name: 'main again' }];
    const branches: Branch[] = [];
    for await (const { branch } of probeSeed(problem, { ...plan, arms, length: 3 }, 1, random.fork('probe'))) {
      if (branch !== undefined) branches.push(branch);
    }
    const [a, b, bAgain, aAgain] = branches.map(({ end }) => end);
    expect([aAgain, bAgain]).toEqual([a, b]);
    expect(b).not.toBe(a);
    expect(a).not.toBe(branches[0].start);
  } finally {
    await problem.close?.();
  }
});
