import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll } from 'vitest';
import { formatDay, parseDay } from '../../src/forecast/data/calendar.js';
import { FIELDS, type PricePanel } from '../../src/forecast/data/panel.js';

/** A folder that is gone when the tests of this file have run. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tcts-forecast-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Writes files into a folder, `{ 'a/b.txt': content }`, and gives the folder. */
export function writeFiles(folder: string, files: Record<string, string | Uint8Array>): string {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return folder;
}

/** `count` consecutive dates from 2020-01-01 on. */
export function dates(count: number, start = '2020-01-01'): string[] {
  return Array.from({ length: count }, (_, i) => formatDay(parseDay(start)! + i));
}

/** A panel of closes [stock][day]; open = high = low = close, volume 100 where there is a close. */
export function panelOfCloses(closes: Record<string, readonly number[]>, index?: readonly number[]): PricePanel {
  const symbols = Object.keys(closes);
  const days = closes[symbols[0]!]!.length;
  const values = new Float32Array(days * symbols.length * FIELDS.length);
  symbols.forEach((symbol, s) => {
    closes[symbol]!.forEach((close, day) => {
      values.set(
        [close, close, close, close, Number.isNaN(close) ? close : 100],
        (day * symbols.length + s) * FIELDS.length,
      );
    });
  });
  return {
    calendar: dates(days),
    symbols,
    fields: FIELDS,
    values,
    members: new Uint8Array(days * symbols.length).fill(1),
    ...(index === undefined ? {} : { index: { symbol: 'INDEX', close: Float32Array.from(index) } }),
  };
}

/** The content of a qlib series file. */
export function series(start: number, values: readonly number[]): Uint8Array {
  return new Uint8Array(Float32Array.from([start, ...values]).buffer);
}

/** The files of one stock in a qlib folder: all prices are `close`, the volume is 100 times it. */
export function stockFiles(code: string, start: number, close: readonly number[]): Record<string, Uint8Array> {
  return Object.fromEntries(
    FIELDS.map((field) => [
      `features/${code}/${field}.day.bin`,
      series(start, field === 'volume' ? close.map((x) => 100 * x) : close),
    ]),
  );
}
