import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { distributionPlot } from '../../src/cli/demo.js';
import { textTable } from '../../src/text-table.js';
import { temporaryFolder } from '../run/temporary.js';
import { startTcts, tcts } from './train-process.js';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

/**
 * What the demo has printed without what differs from machine to machine, and its figures apart. Processors of another kind
 * round otherwise, and a training that has rounded once otherwise ends a little elsewhere.
 */
function transcript(output: string): { text: string; figures: number[] } {
  // Where the tool is on the path of the shell, npx is not needed to call it.
  const timeless = output
    .replaceAll(/ +\d+\.\d$/gm, '')
    .replace(/trained in \d+ s/, 'trained')
    .replaceAll('npx tcts', 'tcts');
  const figures = (timeless.match(/\d+\.\d+/g) ?? []).map(Number);
  const text = timeless
    .replaceAll(/(WRITE|→|wrong:) [a-z ]+/g, '$1')
    .replaceAll(/│.*│/g, '│')
    .replaceAll(/\d+(\.\d+)?/g, '#')
    .replaceAll(/ +/g, ' ');
  return { text, figures };
}

test('the demo schedules, translates, forecasts and reports', { timeout: 240_000 }, async () => {
  const folder = temporaryFolder();
  const { code, stdout, stderr } = await tcts(folder, 'demo');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);

  // The README shows what a run prints.
  const printed = transcript(stdout);
  const [, shown = ''] = /```text\n(1 of 3 [\s\S]*?)```/.exec(readme) ?? [];
  expect(transcript(shown).text).toBe(printed.text);
  for (const [i, figure] of transcript(shown).figures.entries()) {
    expect(Math.abs(printed.figures[i] - figure)).toBeLessThanOrEqual(0.03 + 0.25 * Math.abs(figure));
  }

  // 1: the scheduler finds the clean task.
  const loss = (strategy: string) => Number(new RegExp(`^${strategy} +\\S+ +(\\S+) `, 'm').exec(stdout)?.[1]);
  for (const strategy of ['fixed', 'mtl', 'curriculum', 'learned']) {
    expect(loss(strategy)).toBeGreaterThan(0);
    expect(existsSync(join(folder, 'runs/demo-strategies/known-answer', strategy, 'metrics.jsonl'))).toBe(true);
  }
  expect(loss('learned')).toBeLessThan(loss('mtl'));
  expect(stdout).toMatch(/^winner: learned \(test loss /m);
  expect(stdout).toMatch(/^clean {3}│.*█│ +\d+ % in the last quarter$/m);
  expect(stdout).toMatch(/^It found the clean task/m);

  // 2: a sentence that wait-5 gets right and wait-1 does not, and what that is worth.
  const [, early] = /\n {2}wait-1\n([\s\S]*?)\n {2}wait-5\n/.exec(stdout) ?? [];
  // Under wait-1 a word is written for each that is read.
  expect(early).toMatch(/^( {2}READ \S+ +WRITE \S+\n)+/);
  expect(early).toMatch(/\(wrong: \w+/);
  expect(stdout).toMatch(/ {2}wait-5\n( {2}READ \S+\n){4} {2}READ \S+ +WRITE \S+\n/);
  expect(stdout).toMatch(/ {2}→ .* \(right\)\n/);
  const [waitOne, waitFive] = [1, 5].map((k) =>
    (new RegExp(`^wait-${k} +(\\S+) +(\\S+)$`, 'm').exec(stdout) ?? []).map(Number),
  );
  expect(waitFive[1]).toBeGreaterThan(waitOne[1] + 10);
  expect([waitOne[2], waitFive[2]].map(Math.round)).toEqual([1, 5]);

  // 3: the scheduled forecaster is ahead, as over ten seeds (docs/results/scheduling.csv), with an interval that says so.
  const forecasts = ['fixed', 'mtl', 'influence'].map((strategy) =>
    (new RegExp(`^${strategy} \\(.*\\) +(\\S+) +(\\S+) `, 'm').exec(stdout) ?? []).slice(1).map(Number),
  );
  const [fixed, mtl, influence] = forecasts.map(([rankIC, testLoss]) => ({ rankIC, testLoss }));
  expect(influence.rankIC).toBeGreaterThan(Math.max(fixed.rankIC, mtl.rankIC) + 0.03);
  // The planted signal allows no more.
  expect(influence.rankIC).toBeLessThan(0.25);
  expect(influence.testLoss).toBeLessThan(Math.min(fixed.testLoss, mtl.testLoss) - 0.01);
  expect(stdout).toMatch(/^RankIC of influence − (fixed|mtl): 0\.\d{4} \(95 % interval 0\.\d{4} to 0\.\d{4}\)/m);
  expect(stdout.replaceAll(/\s+/g, ' ')).toContain('scheduling helps, with this seed');

  // 4: a report, and commands that work as they are printed.
  expect(stdout).toMatch(
    /\nreport: runs\/demo-strategies\/report\/index\.html\nrun folders: runs\/demo-strategies\nnext: /,
  );
  const commands = stdout.slice(stdout.indexOf('\nnext: ')).match(/tcts .*/g) ?? [];
  expect(commands).toHaveLength(4);
  const evaluate = commands.find((command) => command.startsWith('tcts evaluate')) ?? '';
  expect(await tcts(folder, ...evaluate.split(' ').slice(1))).toMatchObject({ code: 0, stderr: '' });
  // What the README says next.
  expect(await tcts(folder, 'train', 'demo', '--quiet', '--set', 'training.episodes=2')).toMatchObject({ code: 0 });
});

test('one part of the demo does not write over an earlier one, and speaks JSON', { timeout: 120_000 }, async () => {
  const folder = temporaryFolder();
  const demo = (...more: string[]) => tcts(folder, 'demo', 'known-answer', '--json', ...more);
  const [one, two] = [await demo(), await demo('--seed', '2')].map(({ stdout }) => JSON.parse(stdout));
  expect([one.folder, two.folder]).toEqual(['runs/demo-strategies', 'runs/demo-strategies-2']);
  expect(one['known-answer'].rows.map(({ strategy }: { strategy: string }) => strategy)).toEqual([
    'fixed',
    'mtl',
    'curriculum',
    'learned',
  ]);
  expect(two['known-answer'].rows[3].test.loss).not.toBe(one['known-answer'].rows[3].test.loss);
  expect((await tcts(folder, 'demo', 'weather')).stderr).toMatch(
    /there is no demo "weather", expected one of known-answer, translation, market/,
  );
  expect((await tcts(folder, 'demo', 'markte')).stderr).toContain('did you mean market?');
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
