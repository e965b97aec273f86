import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { planOf } from '../../src/cli/sweep-run.js';
import { loadGrid } from '../../src/sweep/index.js';

const file = fileURLToPath(new URL('../../configs/sweeps/translation-full.yaml', import.meta.url));

it('the full grid of translation has the main table with five seeds, and four points for every policy with three', () => {
  const { groups, waitKStar } = planOf(loadGrid(file), { data: 'DIR' });
  const runsOf = (name: string) => {
    const { settings, seeds } = groups.find((group) => group.name === name)!;
    return settings.map(({ variants: [{ run }] }) => ({ ...run(seeds[0]), seeds: seeds.length }));
  };
  const table = ['wait', 'scheduled', 'all-waits'].flatMap(runsOf);
  const cells = table.map(({ config, seeds }) => `${config.strategy.name} ${config.problem.main} × ${seeds}`);
  const methods = ['curriculum', 'fixed', 'influence', 'learned'];
  const each = methods.flatMap((name) => [1, 3, 5, 7, 9].map((k) => `${name} ${k} × 5`));
  expect(cells.sort()).toEqual([...each, 'mtl 5 × 5']);
  // One model of all waits for every row: decoded with each, and not with parameters that are the best for one.
  const [{ job }] = runsOf('all-waits');
  expect(job.after[0].join(' ')).toContain('--checkpoint latest --k 1,3,5,7,9');
  expect(waitKStar).toMatchObject({ among: 'wait', for: [1, 3, 5, 7, 9] });
  for (const { config } of table) {
    // 29,000 pairs are 225 batches of 2,048 tokens: 12 epochs, at whose end the learning rate is 0.
    expect(config.training.episodes * config.training.steps).toBe(12 * 225);
    expect(config.problem).toMatchObject({ learning: { schedule: 'cosine' } });
  }
  const without = runsOf('ablation').map(({ config }) => (config.strategy as { without?: string[] }).without);
  expect(without.flat().sort()).toEqual(['lengths', 'step', 'training', 'validation']);
  expect(runsOf('strategies').map(({ config }) => config.problem.main)).toEqual(new Array(8).fill(3));

  // A curve has a point for each value of a policy's setting, or for each model that was trained.
  const points = new Map<string, number>();
  const add = (name: string, count: number) => points.set(name, (points.get(name) ?? 0) + count);
  const policies = ['all-waits', 'sentences', 'all-waits-further', 'monotonic', 'itst', 'hmt'];
  for (const { name, seeds } of groups.filter((group) => policies.includes(group.name))) {
    expect(seeds).toEqual(name === 'all-waits' ? [1, 2, 3, 4, 5] : [1, 2, 3]);
    for (const { config, job } of runsOf(name)) {
      const specs = job.after.flatMap((verb) => verb.filter((_, i) => verb[i - 1] === '--policy'));
      for (const spec of specs) add(`${name} ${spec.split(':')[0]}`, spec.split(',').length);
      const { attention } = config.problem as { attention?: string };
      if (specs.length === 0 && attention !== undefined) add(attention, 1);
    }
  }
  expect(Object.fromEntries(points)).toEqual({
    ...{ 'all-waits adaptive': 6, 'all-waits alignatt': 5, 'all-waits edatt': 4 },
    ...{ 'sentences wait-k': 1, 'sentences alignatt': 5, 'sentences edatt': 4 },
    ...{ 'sentences wait-if-diff': 4, 'sentences wait-if-worse': 4 },
    ...{ 'all-waits-further adaptive': 6, 'all-waits-further alignatt': 5, 'all-waits-further edatt': 4 },
    ...{ milk: 4, 'mma-il': 4, 'mma-h': 4, 'itst itst': 6, hmt: 4 },
  });
  // No setting twice: a report would take its seeds for so many more.
  const all = groups.flatMap(({ name }) => runsOf(name)).map(({ config }) => JSON.stringify({ ...config, name: '' }));
  expect(new Set(all).size).toBe(all.length);
  expect(groups.slice(-2).map(({ name, seeds }) => [name, seeds.length])).toEqual([
    ['en-vi', 1],
    ['europarl', 1],
  ]);
});
