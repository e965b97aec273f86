import { Option } from 'commander';
import { parse } from 'yaml';
import { InputError } from '../errors.js';

/** `--columns '{symbol: ticker}'`: names of columns in data other than the run's own. */
export function columnsOption(): Option {
  return new Option(
    '--columns <map>',
    "forecast: columns of --data where they are named otherwise than in the run's data",
  ).argParser((text) => mapOf(text, '--columns'));
}

/** `--neutralise '{group: sector}'`: what forecasts are to say nothing about; `null` for nothing. */
export function neutraliseOption(of: string): Option {
  return new Option('--neutralise <map>', of).argParser((text) =>
    text === 'null' ? null : mapOf(text, '--neutralise'),
  );
}

/** A map in YAML's short form. */
export function mapOf(text: string, key: string): Record<string, never> {
  let value: unknown;
  try {
    value = parse(text);
  } catch {
    value = undefined;
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, never>;
  throw new InputError(`expected a map such as '{key: value}', found ${JSON.stringify(text)}`, { key });
}
