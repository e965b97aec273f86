import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { writeReport } from '../../src/report/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { type MadeRun, makeForecastRun, makeOtherRun } from './run-folders.js';

const read = (...path: string[]): string => readFileSync(join(...path), 'utf8');

/** Runs with the seeds 1, 2, …, one for each test loss; validation losses are the same unless given. */
function arm(folder: string, strategy: string, losses: readonly number[], more: Partial<MadeRun> = {}, valid = losses) {
  for (const [i, testLoss] of losses.entries()) {
    const seed = (more.seed ?? 1) + i;
    const name = `${strategy}-${JSON.stringify(more.set ?? {}).replaceAll(/\W+/g, '-')}-${more.episodes}-${seed}`;
    makeOtherRun(join(folder, name), { ...more, strategy, seed, testLoss, performance: -valid[i] });
  }
}

const MIX = { 'strategy.main': 0.5, 'strategy.rest': 'uniform', 'strategy.until': 1 };

/** Rows of the table of the synthetic problem, by the name of the arm. */
async function rowsOf(folder: string): Promise<Record<string, string[]>> {
  const files = await writeReport(folder);
  const lines = read(files.folder, 'tables/scheduling-known-answer.md').trim().split('\n');
  const cells = lines.map((line) =>
    line
      .split('|')
      .map((cell) => cell.trim())
      .slice(1, -1),
  );
  return Object.fromEntries(cells.map(([name, ...rest]) => [name, rest]));
}

describe('the section on scheduling', () => {
  it('compares every strategy with the better of fixed and mtl, paired by seeds', async () => {
    const folder = temporaryFolder();
    arm(folder, 'fixed', [0.3, 0.34, 0.32]);
    arm(folder, 'mtl', [0.5, 0.52, 0.57]);
    arm(folder, 'static', [0.36, 0.3, 0.35], { set: MIX }, [0.3, 0.4, 0.35]);
    arm(folder, 'static', [0.31, 0.33, 0.36], { set: { ...MIX, 'strategy.rest': 'near' } }, [0.35, 0.38, 0.36]);
    arm(folder, 'influence', [0.2, 0.26, 0.2], { pace: 1.5 });
    arm(folder, 'oracle', [0.1, 0.16, 0.1]);
    const rows = await rowsOf(folder);
    expect(Object.keys(rows).slice(2)).toEqual([
      ...['fixed', 'mtl', 'static', 'static (near)', 'best static', 'influence', 'oracle'],
    ]);
    expect(rows.Strategy.slice(2, 5)).toEqual(['Against fixed', 'p (Holm)', "Of the oracle's gain"]);
    expect(rows.fixed).toEqual(['3', '0.3200 ± 0.0200', '', '', '', '0.3200 ± 0.0200', '1.00 ×']);
    // With two degrees of freedom p = 1 − |t| ∕ √(t² + 2), and t = 4.302653 at 95 %. Differences −.10, −.08, −.12: mean
    // −.10, deviation .02; half the interval 4.302653 × .02 ∕ √3 = .0497; t = −8.6603, p = .01307. Half of the oracle's .20.
    // Of six p-values it is the third: 4 × .01307.
    expect(rows.influence).toEqual([
      '3',
      '0.2200 ± 0.0346',
      '−0.1000 ± 0.0497',
      '0.052',
      '50 %',
      '0.2200 ± 0.0346',
      '1.50 ×',
    ]);
    // −.20, −.18, −.22: t = −17.3205, p = .003317, times 6.
    expect(rows.oracle.slice(2, 5)).toEqual(['−0.2000 ± 0.0497', '0.020', '100 %']);
    // .20, .18, .25: mean .21, deviation .036056; t = 10.0881, p = .009684, times 5.
    expect(rows.mtl.slice(2, 5)).toEqual(['+0.2100 ± 0.0896', '0.048', '−105 %']);
    // By validation .30 of the first mix, .38 of the second, .35 of the first: test losses .36, .33, .35. Differences .06,
    // −.01, .03: mean .02667, deviation .035119; t = 1.3152, p = .3190, times 3; the gain is −.02667 of .20.
    expect(rows['best static']).toEqual([
      '3',
      '0.3467 ± 0.0153',
      '+0.0267 ± 0.0872',
      '0.957',
      '−13 %',
      '0.3433 ± 0.0404',
      '1.00 ×',
    ]);
    // .06, −.04, .03 and .01, −.01, .04: p = .630 and .456, raised to that of the one before them.
    expect(rows.static.slice(1, 4)).toEqual(['0.3367 ± 0.0321', '+0.0167 ± 0.1275', '0.957']);
    expect(rows['static (near)'].slice(1, 4)).toEqual(['0.3333 ± 0.0252', '+0.0133 ± 0.0625', '0.957']);

    const forest = read(folder, 'report/figures/scheduling-known-answer-forest.csv').trim().split('\n').slice(1);
    expect(forest).toHaveLength(6);
    const influence = forest
      .find((line) => line.startsWith('influence,'))!
      .split(',')
      .slice(1)
      .map(Number);
    // −.1 ± .049683, 4 × .013072
    for (const [i, value] of [3, -0.1, -0.149683, -0.050317, 0.05229].entries())
      expect(influence[i]).toBeCloseTo(value, 5);
    const markdown = read(folder, 'report/report.md');
    expect(markdown.indexOf('## Scheduling')).toBeGreaterThan(markdown.indexOf('## Results'));
    expect(markdown).toContain('corrected for 6 comparisons');
  });

  it('says where seeds are too few instead of an interval, and does not count these comparisons', async () => {
    const folder = temporaryFolder();
    arm(folder, 'fixed', [0.3, 0.34]);
    arm(folder, 'mtl', [0.2, 0.21]);
    arm(folder, 'aligned', [0.25]);
    arm(folder, 'bandit', [0.1], { seed: 9 });
    const rows = await rowsOf(folder);
    // Against mtl, which is better here. Nobody knows the answer.
    expect(rows.aligned.slice(0, 5)).toEqual(['1', '0.2500', '+0.0500 (one seed, no interval)', '–', '–']);
    expect(rows.bandit.slice(0, 4)).toEqual(['0', '0.1000', 'no seed in common', '–']);
    // .10, .13: mean .115, deviation .021213, t = 12.7062 at 95 % with one degree of freedom: ± .1906; of Cauchy's
    // distribution p = 1 − 2 ∕ π · atan(7.6667) = .0826, and there is nothing to correct for.
    expect(rows.fixed.slice(2, 4)).toEqual(['+0.1150 ± 0.1906', '0.083']);
    const markdown = read(folder, 'report/report.md');
    expect(markdown).not.toContain('NaN');
    expect(markdown).toContain('Strategies with one seed have no interval.');
    expect(read(folder, 'report/figures/scheduling-known-answer-forest.svg')).not.toContain('NaN');
  });

  it('has no forest plot where no two seeds are paired', async () => {
    const folder = temporaryFolder();
    for (const strategy of ['fixed', 'mtl', 'learned']) arm(folder, strategy, [0.3]);
    await writeReport(folder);
    expect(read(folder, 'report/report.md')).toContain(
      'known-answer: no forest plot, as no strategy has two seeds in common with mtl.',
    );
    expect(existsSync(join(folder, 'report/figures/scheduling-known-answer-forest.svg'))).toBe(false);
  });

  it('says so where fixed and mtl have no seed in common, and is not there without both', async () => {
    const folder = temporaryFolder();
    arm(folder, 'fixed', [0.3]);
    arm(folder, 'learned', [0.3]);
    await writeReport(folder);
    expect(read(folder, 'report/report.md')).not.toContain('## Scheduling');
    arm(folder, 'mtl', [0.3], { seed: 2 });
    await writeReport(folder);
    expect(read(folder, 'report/report.md')).toContain('known-answer: fixed and mtl have no seed in common');
  });

  it('keeps problems apart, and takes a shorter training without fixed and mtl of its own as an arm', async () => {
    const folder = temporaryFolder();
    for (const main of [1, 2]) {
      for (const strategy of ['fixed', 'mtl', 'influence']) {
        for (const seed of [1, 2]) {
          const performance = -main - seed / 10 - (strategy === 'mtl' ? 0.3 : 0);
          makeForecastRun(join(folder, `${strategy}-${main}-${seed}`), { strategy, seed, main, performance });
        }
      }
    }
    for (const seed of [1, 2]) {
      makeForecastRun(join(folder, `short-${seed}`), { strategy: 'influence', seed, main: 2, episodes: 2 });
    }
    const { folder: report } = await writeReport(folder);
    const names = (task: number) =>
      [...read(report, `tables/scheduling-csi300-task-${task}.md`).matchAll(/^\| (.*?) \|/gm)].map(([, name]) => name);
    expect(names(1)).toEqual(['Strategy', '---', 'fixed', 'mtl', 'influence']);
    expect(names(2)).toEqual(['Strategy', '---', 'fixed', 'mtl', 'influence', 'influence (2 episodes)']);
    // Equal losses, seed by seed: a difference of 0 without spread, which no test can tell from anything.
    expect(read(report, 'tables/scheduling-csi300-task-1.md')).toContain(
      '| influence | 2 | 1.1500 ± 0.0707 | 0.0000 ± 0.0000 | – |',
    );
  });
});
