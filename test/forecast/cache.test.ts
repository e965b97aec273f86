import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, it } from 'vitest';
import { CACHE_FILE, cacheKey, readCache, writeCache } from '../../src/forecast/formats/cache.js';
import { readPanel } from '../../src/forecast/formats/index.js';
import type { Reading } from '../../src/forecast/index.js';

const home = mkdtempSync(join(tmpdir(), 'tcts-cache-'));
afterAll(() => rmSync(home, { recursive: true }));

const prices = join(home, 'prices');
const file = join(home, CACHE_FILE);

/** Two stocks on three days and an index; B jumps by half on the last day, which `maxMove` does not believe. */
function writePrices(close = 15): void {
  mkdirSync(prices, { recursive: true });
  const head = 'date,open,high,low,close,volume\n';
  const rows = (closes: readonly number[]) =>
    head + closes.map((c, i) => `2020-01-0${i + 1},${c},${c},${c},${c},${i === 1 ? '' : 100}\n`).join('');
  writeFileSync(join(prices, 'A.csv'), rows([10, 11, 12]));
  writeFileSync(join(prices, 'B.csv'), rows([10, 10, close]));
  writeFileSync(join(prices, 'I.csv'), rows([1, 2, 3]));
}

const source = { format: 'csv', path: prices, index: 'I', maxMove: 0.3 };
const files = ['A', 'B', 'I'].map((name) => join(prices, `${name}.csv`));
const keyOf = (options: object = source) => cacheKey(options, files);

async function kept(): Promise<{ reading: Reading; key: string }> {
  const key = keyOf();
  const reading = await readPanel(source);
  writeCache(file, key, reading);
  return { reading, key };
}

beforeEach(() => {
  rmSync(file, { force: true });
  writePrices();
});

it('gives back what was read, bit for bit, with its notes', async () => {
  const { reading, key } = await kept();
  const found = readCache(file, key);
  expect(reading.cleaned.values).not.toEqual(reading.panel.values);
  expect(found?.panel).toEqual(reading.panel);
  expect(found?.cleaned).toEqual(reading.cleaned);
  expect(found?.notes.list()).toEqual(reading.notes.list());
  expect(reading.notes.list().length).toBeGreaterThan(0);
});

it('is of no use once a file has another size or time, or the options are others', async () => {
  const { key } = await kept();
  expect(readCache(file, key)).toBeDefined();
  expect(readCache(file, keyOf({ ...source, maxMove: 0.2 }))).toBeUndefined();
  const { atime, mtime } = statSync(files[0]!);
  utimesSync(files[0]!, atime, new Date(mtime.getTime() + 1000));
  expect(keyOf()).not.toBe(key);
  utimesSync(files[0]!, atime, mtime);
  writePrices(15.5);
  expect(keyOf()).not.toBe(key);
  expect(() => cacheKey(source, [join(prices, 'none.csv')])).toThrow(/none.csv: cannot read it: no such file/);
});

it('is of no use if a single byte of it is another, or its end is missing', async () => {
  const { key } = await kept();
  const whole = readFileSync(file);
  for (let at = 0; at < whole.length; at += at < 80 ? 1 : 7) {
    if (at >= 20 && at < 24) continue; // unused
    const damaged = Buffer.from(whole);
    damaged[at] ^= 1;
    writeFileSync(file, damaged);
    expect(readCache(file, key), `byte ${at}`).toBeUndefined();
  }
  for (const length of [0, 10, 60, whole.length - 1]) {
    writeFileSync(file, whole);
    truncateSync(file, length);
    expect(readCache(file, key)).toBeUndefined();
  }
});
