import { InputError, type Where } from '../errors.js';
import type { LatencyInstance } from './latency.js';

/**
 * Reads one line of an instances file: a JSON object with
 *
 * - `delays`: for each output token the source tokens read before it,
 * - `source_length`,
 * - `reference_length`, or `reference` (SimulEval's `instances.log`), whose words are counted as SimulEval does:
 *   split at every single space, so that an empty reference counts 1. Either may be null: there is no reference.
 */
export function parseInstance(line: string, where: Where = {}): LatencyInstance {
  const record = parseObject(line, where);
  return {
    delays: readDelays(record.delays, where),
    sourceLength: readLength(record.source_length, 'source_length', where),
    referenceLength: readReferenceLength(record, where),
  };
}

function parseObject(line: string, where: Where): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new InputError(`expected a JSON object, found ${excerpt(line)}`, where);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InputError(`expected a JSON object, found ${excerpt(line)}`, where);
  }
  return value as Record<string, unknown>;
}

function readDelays(value: unknown, where: Where): number[] {
  if (!Array.isArray(value)) {
    throw new InputError(`expected an array of numbers, found ${describe(value)}`, { ...where, key: 'delays' });
  }
  for (let i = 0; i < value.length; i++) {
    if (typeof value[i] !== 'number' || !(value[i] >= 0)) {
      throw new InputError(`expected numbers from 0 on, found ${describe(value[i])}`, {
        ...where,
        key: `delays[${i}]`,
      });
    }
  }
  return value;
}

function readReferenceLength(record: Record<string, unknown>, where: Where): number | undefined {
  const length = record.reference_length;
  if (length !== undefined && length !== null) return readLength(length, 'reference_length', where);
  const reference = record.reference;
  if (typeof reference === 'string') return reference.split(' ').length;
  if (reference !== undefined && reference !== null) {
    throw new InputError(`expected text, found ${describe(reference)}`, { ...where, key: 'reference' });
  }
  return undefined;
}

function readLength(value: unknown, key: string, where: Where): number {
  if (typeof value === 'number' && value > 0) return value;
  throw new InputError(`expected a number above 0, found ${describe(value)}`, { ...where, key });
}

function describe(value: unknown): string {
  return value === undefined ? 'nothing' : excerpt(JSON.stringify(value));
}

function excerpt(text: string): string {
  return text === '' ? 'an empty line' : text.length > 40 ? `${text.slice(0, 40)} …` : text;
}
