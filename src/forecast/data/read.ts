import { existsSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { InputError } from '../../errors.js';
import { fileError } from '../../files.js';
import { readCsv } from './csv.js';
import { readParquet } from './parquet.js';
import { readQlib } from './qlib.js';
import type { DataSource, Reading } from './source.js';

/** Reads daily prices in any of the known formats into a clean panel. */
export async function readPanel(source: DataSource): Promise<Reading> {
  switch (source.format ?? formatOf(source.path)) {
    case 'qlib':
      return readQlib(source);
    case 'csv':
      return await readCsv(source);
    case 'parquet':
      return await readParquet(source);
  }
}

function formatOf(path: string): 'qlib' | 'csv' | 'parquet' {
  let folder: boolean;
  try {
    folder = statSync(path).isDirectory();
  } catch (error) {
    throw fileError(error, 'read', path);
  }
  if (folder) return existsSync(join(path, 'calendars')) ? 'qlib' : 'csv';
  const extension = extname(path).toLowerCase();
  if (extension === '.csv') return 'csv';
  if (extension === '.parquet' || extension === '.pq') return 'parquet';
  throw new InputError('the name tells no format: expected *.csv, *.parquet, a folder, or the key format', {
    file: path,
  });
}
