import { firstCsvRows } from '../../csv.js';
import { parseDay, parseMoment } from '../data/calendar.js';
import { csv, csvFiles } from './csv.js';
import { recognisedFormat } from './index.js';
import { ADJUSTED } from './rows.js';

/** The keys under `problem.data` that read a user's prices. */
export interface PriceSource {
  readonly format: string;
  readonly path: string;
  readonly columns?: Readonly<Record<string, string | null>>;
  readonly delimiter?: string;
  readonly intraday?: true;
}

/** What else vendors call our columns. */
const SYNONYMS: readonly (readonly [ours: string, theirs: RegExp])[] = [
  ['date', /^(day|datetime|time|timestamp)$/i],
  ['symbol', /^(ticker|instrument|code|stock)$/i],
  ['volume', /^vol$/i],
  ['adjusted', ADJUSTED],
];

/** Finds out from its first rows how a file or folder is read; undefined if it does not hold prices. */
export async function describePrices(path: string): Promise<PriceSource | undefined> {
  const format = recognisedFormat(path);
  if (format !== undefined && format !== csv) return { format: format.schema.shape.format.value, path };
  const { delimiter, rows } = await firstRows(path);
  const [names, ...first] = rows;
  const has = (column: string) => names.some((name) => name.toLowerCase() === column);
  if (!has('close')) return undefined;
  const renamed = SYNONYMS.flatMap(([ours, theirs]) => {
    const name = has(ours) ? undefined : names.find((name) => theirs.test(name));
    return name === undefined ? [] : [[ours, name]];
  });
  const columns: Record<string, string | null> = Object.fromEntries(renamed);
  if (!has('volume')) columns.volume ??= null;
  const date = names.findIndex((name) => name.toLowerCase() === (columns.date ?? 'date').toLowerCase());
  const isMoment = (cell: string) =>
    parseDay(cell) === undefined && parseMoment(cell, { dateOrder: 'ymd', intraday: true }) !== undefined;
  return {
    format: 'csv',
    path,
    ...(delimiter !== ',' && { delimiter }),
    ...(Object.keys(columns).length > 0 && { columns }),
    ...(first.some((row) => isMoment(row[date] ?? '')) && { intraday: true }),
  };
}

/** Those of the first file that has any, enough of them to see a bar that is not at midnight, and what separates their cells. */
async function firstRows(path: string): Promise<{ delimiter: string; rows: string[][] }> {
  for (const file of csvFiles(path)) {
    const heads = await Promise.all(
      [',', ';', '\t'].map(async (one) => [one, await firstCsvRows(file, one, 1)] as const),
    );
    const cells = ([, [head = []]]: (typeof heads)[number]) => head.length;
    const [delimiter] = heads.reduce((best, one) => (cells(one) > cells(best) ? one : best));
    const rows = await firstCsvRows(file, delimiter, 100);
    if (rows.length > 1) return { delimiter, rows: rows.map((row) => row.map((cell) => cell.trim())) };
  }
  return { delimiter: ',', rows: [[]] };
}
