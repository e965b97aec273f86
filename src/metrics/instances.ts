import { InputError, type Where } from '../errors.js';
import type { LatencyInstance } from './latency.js';
import { LATENCY_UNITS, type LatencyUnit, outputLength, referenceLength } from './tokenizers.js';

/** What the delays of a line belong to: words, characters, or tokens of any kind, which are not compared with a text. */
export type InstanceCount = LatencyUnit | 'token';

/**
 * Reads one line of an instances file: a JSON object with
 *
 * - `delays`: for each output token the source tokens read before it,
 * - `source_length`,
 * - `reference_length`, or `reference` (SimulEval's `instances.log`), which is counted as SimulEval does. Either may be
 *   null: there is no reference,
 * - `prediction`, if it is there: as many words or characters as there are delays,
 * - `elapsed`, if it is there: when each output token was written, the time of computing included. SimulEval writes only
 *   zeros for text, which has no clock: that counts as nothing recorded.
 *
 * @param count default what the line says under `latency_unit`, else words
 */
export function parseInstance(line: string, where: Where = {}, count?: InstanceCount): LatencyInstance {
  const record = parseObject(line, where);
  const counted = count ?? readUnit(record.latency_unit, where);
  const delays = readTimes(record.delays, 'delays', where);
  if (counted !== 'token') requireCounted(record, delays.length, counted, where);
  return {
    delays,
    sourceLength: readLength(record.source_length, 'source_length', where),
    referenceLength: readReferenceLength(record, counted === 'char' ? 'char' : 'word', where),
    elapsed: readElapsed(record.elapsed, delays.length, where),
  };
}

function readUnit(value: unknown, where: Where): LatencyUnit {
  if (value === undefined) return 'word';
  const unit = LATENCY_UNITS.find((name) => name === value);
  if (unit !== undefined) return unit;
  throw new InputError(`expected word or char, found ${describe(value)}`, { ...where, key: 'latency_unit' });
}

/** Delays of characters, read as those of words, would give figures that mean nothing. */
function requireCounted(
  { prediction, durations }: Record<string, unknown>,
  found: number,
  unit: LatencyUnit,
  where: Where,
): void {
  // The prediction of speech is the path of a file.
  if (typeof prediction !== 'string' || prediction === '' || durations !== undefined) return;
  if (outputLength(prediction, unit) === found) return;
  const [words, characters] = LATENCY_UNITS.map((one) => outputLength(prediction, one));
  const other = unit === 'word' ? 'char' : 'word';
  const hint = outputLength(prediction, other) === found ? `: choose --unit ${other}` : '';
  throw new InputError(
    `expected a delay for each ${unit === 'word' ? 'word' : 'character'}, found ${found} for a prediction of ` +
      `${words} words and ${characters} characters${hint}`,
    { ...where, key: 'delays' },
  );
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

function readElapsed(value: unknown, delays: number, where: Where): number[] | undefined {
  if (value === undefined || value === null) return undefined;
  const elapsed = readTimes(value, 'elapsed', where);
  if (elapsed.every((time) => time === 0)) return undefined;
  if (elapsed.length === delays) return elapsed;
  throw new InputError(`expected a time for each of the ${delays} delays, found ${elapsed.length}`, {
    ...where,
    key: 'elapsed',
  });
}

function readTimes(value: unknown, key: string, where: Where): number[] {
  if (!Array.isArray(value)) {
    throw new InputError(`expected an array of numbers, found ${describe(value)}`, { ...where, key });
  }
  for (let i = 0; i < value.length; i++) {
    if (typeof value[i] !== 'number' || !(value[i] >= 0 && value[i] <= MOST)) {
      throw new InputError(`expected numbers from 0 to ${MOST}, found ${describe(value[i])}`, {
        ...where,
        key: `${key}[${i}]`,
      });
    }
  }
  return value;
}

function readReferenceLength(record: Record<string, unknown>, unit: LatencyUnit, where: Where): number | undefined {
  const length = record.reference_length;
  if (length !== undefined && length !== null) return readLength(length, 'reference_length', where);
  const reference = record.reference;
  if (typeof reference === 'string') {
    // A reference of no character is measured as SimulEval measures one of no word.
    return Math.max(1, referenceLength(reference, unit));
  }
  if (reference !== undefined && reference !== null) {
    throw new InputError(`expected text, found ${describe(reference)}`, { ...where, key: 'reference' });
  }
  return undefined;
}

function readLength(value: unknown, key: string, where: Where): number {
  if (typeof value === 'number' && value >= LEAST && value <= MOST) return value;
  throw new InputError(`expected a number from ${LEAST} to ${MOST}, found ${describe(value)}`, { ...where, key });
}

// Lengths are words, characters or milliseconds. Beyond these bounds sums and quotients of them leave the numbers.
const [LEAST, MOST] = [0.001, 1e12];

function describe(value: unknown): string {
  // JSON has no infinity, but 1e999 is read as one.
  if (typeof value === 'number') return String(value);
  return value === undefined ? 'nothing' : excerpt(JSON.stringify(value));
}

function excerpt(text: string): string {
  return text === '' ? 'an empty line' : text.length > 40 ? `${text.slice(0, 40)} …` : text;
}
