import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { trainConfigSchema } from '../../src/problems/index.js';
import { loadConfig } from '../../src/run/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { startTctsBy, tcts } from './train-process.js';

const short = ['--quiet', '--set', 'training.episodes=1', '--set', 'training.steps=1'];

test('a shipped configuration is found by its name, a run by its own', { timeout: 60_000 }, async () => {
  const folder = temporaryFolder();
  expect(await tcts(folder, 'train', 'demo', ...short)).toMatchObject({ code: 0, stderr: '' });
  const again = await tcts(folder, 'train', '--resume', 'demo', '--quiet');
  expect(again).toMatchObject({ code: 0, stderr: '' });
  expect(again.stdout).toContain('run folder: runs/demo\n');
  expect((await tcts(folder, 'report', 'demo')).stdout).toContain('report: runs/demo/report/index.html');
  // A file of that name comes first.
  writeFileSync(join(folder, 'demo'), 'problem: {kind: contextual}\nstrategy: {name: mtl}\nname: other\n');
  expect((await tcts(folder, 'train', 'demo', ...short)).stdout).toContain('run folder: runs/other\n');
});

test.each([
  [['train', 'tyo'], 'tcts: the configuration file tyo cannot be read: does not exist; did you mean toy?\n'],
  [['train', 'confgs/toy.yaml'], 'confgs/toy.yaml cannot be read: does not exist; did you mean configs/toy.yaml?\n'],
  [['train', 'configs/tyo.yaml'], 'configs/tyo.yaml cannot be read: does not exist; did you mean configs/toy.yaml?\n'],
  [['train', 'nothing-like-it'], 'does not exist; the shipped ones are csi300-trees, csi300, demo, '],
  [['probe', 'markt'], 'did you mean market?\n'],
  [['sweep', 'stock-smoek'], 'did you mean stock-smoke?\n'],
  [['evaluate', 'runs/frist'], 'tcts: runs/frist: there is no such run; did you mean runs/first?\n'],
  [['translate', 'frist'], 'tcts: frist: there is no such run; did you mean runs/first?\n'],
  [
    ['score', 'bleu', 'hpy.txt', 'hyp.txt'],
    'tcts: hpy.txt: cannot read it: no such file or folder; did you mean hyp.txt?',
  ],
])('tcts %j asks whether something like it is meant', async (args, message) => {
  const folder = temporaryFolder();
  for (const name of ['configs', 'runs/first']) mkdirSync(join(folder, name), { recursive: true });
  for (const name of ['configs/toy.yaml', 'runs/first/run.json', 'hyp.txt']) writeFileSync(join(folder, name), '{}');
  const { code, stderr } = await tcts(folder, ...args);
  expect(code).toBe(1);
  expect(stderr).toContain(message);
});

test('what to do next is said as a shell finds the tool: by itself, or by npx where npm alone knows it', async () => {
  const folder = temporaryFolder();
  const next = async (path: string, name: string): Promise<string> => {
    const train = ['train', 'demo', ...short, '--set', `name=${name}`];
    const { ended } = startTctsBy(['env', `PATH=${path}${delimiter}/nowhere`], folder, ...train);
    return /^next: .*$/m.exec((await ended).stdout)?.[0] ?? '';
  };
  for (const place of ['bin', 'node_modules/.bin']) {
    mkdirSync(join(folder, place), { recursive: true });
    writeFileSync(join(folder, place, 'tcts'), '#!/bin/sh\n');
    chmodSync(join(folder, place, 'tcts'), 0o755);
  }
  expect(await next(join(folder, 'bin'), 'one')).toMatch(/^next: tcts report runs\/one$/);
  expect(await next(join(folder, 'node_modules/.bin'), 'two')).toMatch(/^next: npx tcts report runs\/two$/);
});

test('a mistake in the use of a command is the last thing that is said', async () => {
  const { code, stderr } = await tcts(temporaryFolder(), 'train', 'demo', '--stpes', '3');
  expect(code).toBe(1);
  expect(stderr).toContain('Usage: tcts train');
  expect(stderr).toMatch(/\nerror: unknown option '--stpes'\n(\(Did you mean .*\)\n)?$/);
});

test('tcts init writes a configuration that can be trained', { timeout: 120_000 }, async () => {
  const folder = temporaryFolder();
  const days: string[] = [];
  for (let day = Date.parse('2020-01-01'); days.length < 200; day += 864e5)
    days.push(new Date(day).toISOString().slice(0, 10));
  const prices = days.flatMap((day, t) =>
    ['A', 'B', 'C'].map((name, i) => {
      const close = 10 + Math.sin(t + i);
      return `${day},${name},${close},${close + 1},${close - 1},${close},${1000 + t}`;
    }),
  );
  writeFileSync(join(folder, 'prices.csv'), ['date,Ticker,open,high,low,close,volume', ...prices, ''].join('\n'));
  const dayAfter = (t: number) => new Date(Date.parse('2020-01-01') + t * 864e5).toISOString().slice(0, 10);
  const load = Array.from({ length: 1000 }, (_, t) => `${dayAfter(t)},${t % 7},${Math.cos(t)}`);
  writeFileSync(join(folder, 'load.csv'), ['date,weekday,load', ...load, ''].join('\n'));

  const init = (file: string, data: string, main: string) =>
    tcts(folder, 'init', file, '--data', data, '--main', main, '--minutes', '0.01');
  for (const [file, data, main] of [
    ['words.yaml', 'verb-final', '2'],
    ['stocks.yaml', 'prices.csv', '1'],
    ['load.yaml', 'load.csv', '2'],
  ]) {
    const written = await init(file, data, main);
    expect({ file, ...written }).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(new RegExp(`^next: (npx )?tcts train ${file}$`, 'm')),
    });
    const text = readFileSync(join(folder, file), 'utf8');
    expect(text.split('\n').filter((line) => line.includes('#')).length).toBeGreaterThan(4);
    expect(loadConfig(trainConfigSchema, join(folder, file)).problem).toMatchObject({ main: Number(main) });
  }
  // The first 60 % of the days for training, after a window; the vendor's name of a column.
  expect(parse(readFileSync(join(folder, 'stocks.yaml'), 'utf8')).problem).toMatchObject({
    data: { format: 'csv', path: 'prices.csv', columns: { symbol: 'Ticker' } },
    split: { train: [days[10], days[119]], validation: [days[120], days[159]], test: [days[160], days[199]] },
  });
  expect(await tcts(folder, 'train', 'stocks.yaml', ...short)).toMatchObject({ code: 0 });

  const again = await init('words.yaml', 'verb-final', '2');
  expect(again).toMatchObject({ code: 1, stderr: 'tcts: words.yaml: it already exists: choose another name\n' });
  const missing = await tcts(folder, 'init', 'other.yaml', '--main', '3');
  expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining('give --data, --minutes') });
});

test('tcts init reads a folder of vendor files, and bars within a day, as they come', { timeout: 60_000 }, async () => {
  const folder = temporaryFolder();
  const dayAfter = (t: number) => new Date(Date.parse('2020-01-01') + t * 864e5).toISOString().slice(0, 10);
  const close = (t: number, i: number) => 10 + Math.sin(t + i);
  mkdirSync(join(folder, 'yahoo'));
  for (const [i, name] of ['A', 'B', 'C'].entries()) {
    const rows = Array.from({ length: 120 }, (_, t) => `${dayAfter(t)},11,12,9,${close(t, i)},${close(t, i) / 2},500`);
    const text = ['Date,Open,High,Low,Close,Adj Close,Volume', ...rows, ''].join('\n');
    writeFileSync(join(folder, 'yahoo', `${name}.csv.gz`), gzipSync(text));
  }
  // Five bars on each of 40 days.
  const bars = Array.from({ length: 200 }, (_, t) => {
    const time = `${dayAfter(Math.floor(t / 5))}T${10 + (t % 5)}:30`;
    return ['A', 'B', 'C'].map((name, i) => `${time},${name},${close(t, i)},12,9,${close(t + 1, i)},500`);
  });
  writeFileSync(join(folder, 'bars.csv'), ['time,symbol,open,high,low,close,volume', ...bars.flat(), ''].join('\n'));

  for (const data of ['yahoo', 'bars.csv']) {
    const file = `${data.replace('.csv', '')}.yaml`;
    const written = await tcts(folder, 'init', file, '--data', data, '--main', '1', '--minutes', '0.01');
    expect({ data, ...written }).toMatchObject({ code: 0 });
    const name = ['--set', `name=${data}`];
    expect(await tcts(folder, 'train', file, ...short, ...name)).toMatchObject({ code: 0, stderr: '' });
  }
  const problem = (file: string) => parse(readFileSync(join(folder, file), 'utf8')).problem;
  expect(problem('yahoo.yaml').data).toEqual({ format: 'csv', path: 'yahoo', columns: { adjusted: 'Adj Close' } });
  // Days, not bars: the window of 10 bars is two days, 60 and 80 % of 40 days are 24 and 32.
  expect(problem('bars.yaml')).toMatchObject({
    data: { format: 'csv', path: 'bars.csv', columns: { date: 'time' }, intraday: true },
    split: {
      train: [dayAfter(2), dayAfter(23)],
      validation: [dayAfter(24), dayAfter(31)],
      test: [dayAfter(32), dayAfter(39)],
    },
  });
});
