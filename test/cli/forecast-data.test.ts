import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { syntheticMarket, valueAt } from '../../src/forecast/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { tcts } from './train-process.js';

const CONFIG = `problem:
  kind: forecast
  data: {format: csv, path: prices}
  split:
    train: ['2015-01-20', '2015-04-30']
    validation: ['2015-05-01', '2015-06-15']
    test: ['2015-06-16', '2015-12-31']
  features: {window: 6}
  model: {name: linear}
  batch: {size: 100}
strategy: {name: fixed}
training: {episodes: 1, steps: 2}
threads: 1
`;

test('a folder as vendors give it is read, and what was done about it is said even with --quiet', {
  timeout: 60_000,
}, async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'messy.yaml'), CONFIG);
  mkdirSync(join(folder, 'prices'));
  const panel = syntheticMarket({ stocks: 6, days: 160, strength: 0.6 });
  panel.symbols.forEach((symbol, stock) => {
    const rows = panel.calendar.map((date, day) => {
      const [month, dom] = [date.slice(5, 7), date.slice(8, 10)];
      const cells = panel.fields.map((field) => valueAt(panel, day, stock, field));
      return `${dom}/${month}/${date.slice(0, 4)},${symbol},${cells.map((x) => (Number.isNaN(x) ? 'N/A' : x)).join(',')}`;
    });
    const text = `date,Name,${panel.fields.join(',')}\n${[...rows.reverse(), rows[5]].join('\n')}\n`;
    const gzipped = stock === 0;
    writeFileSync(join(folder, 'prices', `${stock}.csv${gzipped ? '.gz' : ''}`), gzipped ? gzipSync(text) : text);
  });
  writeFileSync(join(folder, 'prices', 'empty.csv'), '');

  const refused = await tcts(folder, 'train', 'messy.yaml', '--quiet');
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/0\.csv\.gz:2: "\d\d\/\d\d\/2015" is not a date, .*dateOrder: dmy/);

  const { code, stderr } = await tcts(folder, 'train', 'messy.yaml', '--quiet', '--set', 'problem.data.dateOrder=dmy');
  expect(code, stderr).toBe(0);
  const lines = stderr.trim().split('\n');
  expect(lines).toHaveLength(4);
  expect(lines[0]).toMatch(/data: \d+ × row before an earlier date of its stock: sorted \(first: S0 on /);
  expect(lines[1]).toMatch(/data: 1 × file of the folder without any row left out \(first: .*empty\.csv\)/);
  expect(lines[2]).toMatch(/data: 6 × duplicate row with the same values dropped/);
  expect(lines[3]).toMatch(
    /data: 1 × end of a part of the split .* \(first: test is until 2015-12-31, the data ends on/,
  );
});

test('a market of one stock is refused, or noted where its returns are not ranked', { timeout: 60_000 }, async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'one.yaml'), CONFIG);
  const lone = ['--quiet', '--set', 'problem.data={format: synthetic, stocks: 1, days: 160}'];
  const refused = await tcts(folder, 'train', 'one.yaml', ...lone);
  expect({ code: refused.code, lines: refused.stderr.trim().split('\n').length }).toEqual({ code: 1, lines: 1 });
  expect(refused.stderr).toMatch(/problem\.data: the market has one stock a day, .*transform: raw/);
  const raw = [...lone, '--set', 'problem.labels.transform=raw'];
  const unmeasured = await tcts(folder, 'train', 'one.yaml', ...raw);
  expect(unmeasured.code).toBe(1);
  expect(unmeasured.stderr).toMatch(/problem\.validation\.measure: no day has two stocks, .*expected loss\n/);
  const noted = await tcts(folder, 'train', 'one.yaml', ...raw, '--set', 'problem.validation.measure=loss');
  expect(noted.code, noted.stderr).toBe(0);
  expect(noted.stderr).toMatch(/data: \d+ × day of the training part with a single stock: no rank, no correlation/);
});
