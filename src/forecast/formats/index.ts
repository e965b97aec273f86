import { statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { InputError } from '../../errors.js';
import { fileError } from '../../files.js';
import { dataDigest, dataName, type EvaluatedData, wholeRun } from '../../run/index.js';
import { type FeatureSpec, factorsOf, withFeatures } from '../data/features.js';
import { FIELDS, type PricePanel } from '../data/panel.js';
import { CACHE_FILE, cacheKey, readCache, writeCache } from './cache.js';
import { csv } from './csv.js';
import {
  type DataFormat,
  extraColumns,
  type FormatSchema,
  fillSource,
  type Reading,
  type ReadOptions,
} from './format.js';
import { parquet } from './parquet.js';
import { qlib } from './qlib.js';
import { synthetic } from './synthetic.js';

/**
 * Every data format, in the order shown to users and in which a path is recognised. Add your own
 * at the end, before the first configuration is read.
 */
export const formats: DataFormat[] = [qlib, csv, parquet, synthetic];

/** The `data` of a configuration: the format, and the keys that its schema knows. */
export interface DataConfig {
  readonly format: string;
  readonly [key: string]: unknown;
}

export function dataSchema(): z.ZodType<DataConfig> {
  const schemas = formats.map(({ schema }) => schema) as [FormatSchema, ...FormatSchema[]];
  return z.discriminatedUnion('format', schemas).describe('Daily prices.');
}

/** Reads daily prices in any known format; without `format` the path determines it. */
export async function readPanel(
  source: { readonly format?: string; readonly path?: string; readonly [key: string]: unknown },
  options: ReadOptions = {},
): Promise<Reading> {
  const format = source.format === undefined ? formatOf(source.path ?? '') : formatNamed(source.format);
  return await format.read(fillSource(format, source), options);
}

/** A reading of a configuration's own data, and how to cache it. */
export interface OwnReading extends Reading {
  /** Caches the data in the run folder, for formats that take long to read. */
  keep(run: string): void;
}

/** Reads the data of a configuration, or uses the run folder's cache if it is still valid. */
async function readOwn(config: DataConfig, options: ReadOptions, run: string | undefined): Promise<OwnReading> {
  const format = formatNamed(config.format);
  const source = fillSource(format, config);
  const files = format.files?.(source);
  if (files === undefined) return { ...(await format.read(source, options)), keep: () => {} };
  const key = cacheKey({ ...source, ...options }, files);
  // Runs that consist of others cache once what they all read.
  const fileOf = (folder: string): string => join(wholeRun(folder), CACHE_FILE);
  const kept = run === undefined ? undefined : readCache(fileOf(run), key);
  if (kept !== undefined) return { ...kept, keep: () => {} };
  const reading = await format.read(source, options);
  return { ...reading, keep: (folder) => writeCache(fileOf(folder), key, reading) };
}

/** Data instead of that of a configuration. */
export interface OtherData {
  /** Prices in any known format. Default: the configuration's own. */
  readonly data?: string;
  /** Names of columns that differ from the configuration. */
  readonly columns?: Readonly<Record<string, string | null>>;
}

/**
 * The prices that a configuration names, or others; `cleaned` has what the features of the model need. The mapping of
 * columns and similar keys apply to the others too, if their format has them; they may begin and end on other days:
 * the run's dates are those of its own data.
 *
 * @param run folder of the run whose own data they are, with the cache
 * @param group column with groups of stocks
 */
export async function openPanel(
  config: DataConfig,
  features: FeatureSpec,
  other: OtherData = {},
  { run, group }: { readonly run?: string; readonly group?: string } = {},
): Promise<OwnReading> {
  if (other.data === undefined && other.columns !== undefined) {
    throw new InputError('expected --data, which has these columns', { key: '--columns' });
  }
  const options = { factors: factorsOf(features), group };
  const reading =
    other.data === undefined ? await readOwn(config, options, run) : await readOther(config, other, options);
  if (run !== undefined) reading.keep(run);
  const absent = factorsOf(features).find((factor) => !reading.panel.fields.includes(factor));
  if (absent !== undefined) {
    throw new InputError(`the data has no column ${JSON.stringify(absent)}`, { key: 'problem.features.columns' });
  }
  return { ...reading, cleaned: withFeatures(reading.cleaned, features) };
}

async function readOther(config: DataConfig, { data: path, columns = {} }: OtherData, options: ReadOptions) {
  const { format: _, start: _start, end: _end, ...rest } = config;
  const extra = extraColumns(options);
  const given = Object.entries(columns);
  const ours = given.filter(([name]) => !extra.includes(name));
  const named = given.flatMap(([name, other]) => (extra.includes(name) && other !== null ? [[name, other]] : []));
  const mapped = { ...(rest.columns as object | undefined), ...Object.fromEntries(ours) };
  const reading = await readPanel(
    { ...rest, columns: Object.keys(mapped).length === 0 ? undefined : mapped, path },
    { ...options, named: Object.fromEntries(named), indexIsOptional: true },
  );
  return { ...reading, keep: () => {} };
}

/** The name of generated prices. */
export function madeUpData({ format }: { readonly format?: unknown }): string | undefined {
  return formats.find(({ schema }) => schema.shape.format.value === format)?.madeUp;
}

function formatNamed(name: string): DataFormat {
  const format = formats.find(({ schema }) => schema.shape.format.value === name);
  if (format !== undefined) return format;
  const known = formats.map(({ schema }) => schema.shape.format.value).join(', ');
  throw new InputError(`expected one of ${known}, found ${JSON.stringify(name)}`, { key: 'format' });
}

/** The format that recognises the path; undefined if none does. */
export function recognisedFormat(path: string): DataFormat | undefined {
  let isFolder: boolean;
  try {
    isFolder = statSync(path).isDirectory();
  } catch (error) {
    throw fileError(error, 'read', path);
  }
  return formats.find(({ recognises }) => recognises?.(path, isFolder));
}

function formatOf(path: string): DataFormat {
  const format = recognisedFormat(path);
  if (format !== undefined) return format;
  throw new InputError('the name does not show the format: expected *.csv, *.parquet, a folder, or the key format', {
    file: path,
  });
}

/**
 * Which data the figures belong to: prices, members and index, regardless of a model's factors and groups.
 *
 * @param path data other than the configuration's
 */
export function evaluatedPrices(config: DataConfig, panel: PricePanel, path: string | undefined): EvaluatedData {
  const { calendar, symbols, members, index } = panel;
  const { fields, values } = pricesOf(panel);
  const bytes = ({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array =>
    new Uint8Array(buffer, byteOffset, byteLength);
  const names = [calendar, symbols, fields, [index?.symbol ?? '']].map((list) => list.join('\n'));
  const digest = dataDigest([...names, bytes(values), members, ...(index === undefined ? [] : [bytes(index.close)])]);
  return { name: path ?? dataName(config, madeUpData), digest, own: path === undefined };
}

/** A panel without its columns of factors and groups, which follow the prices. */
function pricesOf({ fields, values }: PricePanel): { fields: readonly string[]; values: Float32Array } {
  const prices = fields.filter((field) => field === 'vwap' || (FIELDS as readonly string[]).includes(field));
  const [all, kept] = [fields.length, prices.length];
  if (kept === all) return { fields, values };
  const rows = values.length / all;
  const own = new Float32Array(rows * kept);
  for (let row = 0; row < rows; row++) own.set(values.subarray(row * all, row * all + kept), row * kept);
  return { fields: prices, values: own };
}
