import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { distributionPlot } from '../../src/cli/distribution-plot.js';
import { textTable } from '../../src/cli/text-table.js';
import { temporaryFolder } from '../run/temporary.js';
import { startTcts, tcts } from './train-process.js';

test('the demo compares four strategies and shows what the scheduler chose', { timeout: 120_000 }, async () => {
  const folder = temporaryFolder();
  const started = performance.now();
  const { code, stdout, stderr } = await tcts(folder, 'demo');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(performance.now() - started).toBeLessThan(120_000);

  const loss = (strategy: string) => Number(new RegExp(`^${strategy} +\\S+ +(\\S+) `, 'm').exec(stdout)?.[1]);
  for (const strategy of ['fixed', 'mtl', 'curriculum', 'learned']) {
    expect(loss(strategy)).toBeGreaterThan(0);
    expect(existsSync(join(folder, 'runs/demo-strategies', strategy, 'metrics.jsonl'))).toBe(true);
  }
  expect(loss('learned')).toBeLessThan(loss('mtl'));
  expect(stdout).toMatch(/^clean {3}│.*█│ +\d+ % in the last quarter$/m);
  expect(stdout).toMatch(/\nrun folders: runs\/demo-strategies\n$/);
});

test('the demo does not write over an earlier one, and speaks JSON', { timeout: 120_000 }, async () => {
  const folder = temporaryFolder();
  const [first, second] = [await tcts(folder, 'demo', '--json'), await tcts(folder, 'demo', '--json', '--seed', '2')];
  const [one, two] = [first, second].map(({ stdout }) => JSON.parse(stdout));
  expect([one.folder, two.folder]).toEqual(['runs/demo-strategies', 'runs/demo-strategies-2']);
  expect(one.rows.map(({ strategy }: { strategy: string }) => strategy)).toEqual([
    'fixed',
    'mtl',
    'curriculum',
    'learned',
  ]);
  expect(two.rows[3].test.loss).not.toBe(one.rows[3].test.loss);
});

test('a plot has a row a task and a cell for some episodes', () => {
  const episodes = [0, 0.1, 0.3, 0.6, 0.9, 0.9, 0.9, 0.9].map((share) => ({ distribution: [share, 1 - share] }));
  expect(distributionPlot(['a', 'other'], episodes)).toBe(
    ['a     │ ░▒▓████│  90 % in the last quarter', 'other │██▓▒░░░░│  10 % in the last quarter'].join('\n'),
  );
  // Means of pairs: 0.05, 0.45, 0.9, 0.9.
  expect(distributionPlot(['a', 'b'], episodes, 4).split('\n')[0]).toBe('a │░▒██│  90 % in the last quarter');
});

test('a table has its numbers on the right', () => {
  expect(
    textTable(
      ['name', 'loss'],
      [
        ['fixed', '0.5'],
        ['mtl', '12.25'],
      ],
    ),
  ).toBe(['name    loss', '─────  ─────', 'fixed    0.5', 'mtl    12.25'].join('\n'));
});

test.each([['demo'], ['train', '--help']])(
  'tcts %s ends without a stack trace when nobody reads what it says',
  async (...args) => {
    const { child, ended } = startTcts(temporaryFolder(), ...args);
    child.stdout.destroy();
    expect((await ended).stderr).toBe('');
  },
);

test('the market is another demo', { timeout: 120_000 }, async () => {
  const folder = temporaryFolder();
  const { code, stdout, stderr } = await tcts(folder, 'demo', 'market', '--json');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const { rows } = JSON.parse(stdout) as { rows: { strategy: string; test: { RankIC: number } }[] };
  expect(rows.map(({ strategy }) => strategy)).toEqual(['fixed', 'mtl', 'learned']);
  // The planted signal allows .25 and less for what of it cannot be seen.
  for (const { test: figures } of rows) expect(figures.RankIC).toBeGreaterThan(0.15);
  expect((await tcts(folder, 'demo', 'weather')).stderr).toMatch(
    /there is no demo "weather", expected one of demo, market/,
  );
});
