import { InputError, type Where } from '../errors.js';
import { LATENCY_UNITS, type LatencyUnit, outputLength, referenceLength } from './tokenizers.js';

/**
 * What the lengths mean.
 *
 * - `simuleval`: the tool of that name (≥ 1.1): words, no end-of-sentence counted, AL and AP against the reference
 *   length, LAAL against the longer of output and reference, DAL against the output length.
 * - `stacl`: the scripts of the wait-k authors (Ma et al. 2019): every measure against the length of the output,
 *   usually counted in subwords. LAAL then equals AL.
 */
export type LatencyConvention = 'simuleval' | 'stacl';

/** All conventions. */
export const LATENCY_CONVENTIONS: readonly LatencyConvention[] = ['simuleval', 'stacl'];

/** What the latency of one simultaneous translation depends on. */
export interface LatencyInstance {
  /** Source tokens read before each output token was written. */
  readonly delays: ArrayLike<number>;
  /** Tokens of the source, without an end-of-sentence. */
  readonly sourceLength: number;
  /** Tokens of the reference; absent if there is none, and the output length stands in (as in SimulEval). */
  readonly referenceLength?: number;
  /** When each output token was written, in the unit of the delays, with computation time: a delay and more. */
  readonly elapsed?: ArrayLike<number>;
}

/** The latencies of one simultaneous translation, or their means. */
export interface Latency {
  readonly AL: number;
  readonly LAAL: number;
  readonly AP: number;
  readonly DAL: number;
  /** Null if nothing was written before the end of the source. */
  readonly YAAL: number | null;
  readonly ATD: number;
}

/** How the latency of a corpus is measured. */
export interface LatencyOptions {
  /** Measure `elapsed` instead of `delays`, which every instance with an output must have. Default false. */
  readonly computationAware?: boolean;
}

/** Latencies averaged over a corpus, and how many instances they come from. */
export interface CorpusLatency extends Latency {
  /** Instances that YAAL is a mean over: those that wrote something before the end of their source. */
  readonly simultaneous: number;
  /** Instances that count. */
  readonly counted: number;
  /** Instances without any output: they have no delays and do not count, as in SimulEval. */
  readonly skipped: number;
}

/** The index of the first impossible delay, below the one before it or beyond the source; undefined if none. */
export function oddDelay({ delays, sourceLength }: LatencyInstance): number | undefined {
  const place = Array.from(delays).findIndex((delay, i) => delay > sourceLength || (i > 0 && delay < delays[i - 1]));
  return place < 0 ? undefined : place;
}

/** The latency of one translation; undefined if nothing was written. */
export function instanceLatency(
  instance: LatencyInstance,
  convention: LatencyConvention = 'simuleval',
  { computationAware = false }: LatencyOptions = {},
): Latency | undefined {
  const { delays, sourceLength, elapsed } = instance;
  if (delays.length === 0) return undefined;
  if (computationAware && elapsed === undefined) {
    throw new InputError('an instance has no elapsed times, which computation-aware latency needs');
  }
  const times = computationAware && elapsed !== undefined ? elapsed : delays;
  const reference = convention === 'simuleval' ? (instance.referenceLength ?? delays.length) : delays.length;
  const longer = Math.max(delays.length, reference);
  return {
    AL: averageLagging(times, sourceLength, reference),
    LAAL: averageLagging(times, sourceLength, longer),
    AP: averageProportion(times, sourceLength, reference),
    DAL: differentiableAverageLagging(times, sourceLength),
    YAAL: yetAnotherAverageLagging(times, sourceLength, longer),
    ATD: averageTokenDelay(delays, computationAware ? elapsed : undefined),
  };
}

/** The mean over the instances that have an output; of YAAL, over those that have one. */
export function corpusLatency(
  instances: readonly LatencyInstance[],
  convention: LatencyConvention = 'simuleval',
  options: LatencyOptions = {},
): CorpusLatency {
  const found = instances.flatMap((instance) => instanceLatency(instance, convention, options) ?? []);
  if (found.length === 0) throw new InputError('latency is undefined: no instance has an output');
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const over = (name: 'AL' | 'LAAL' | 'AP' | 'DAL' | 'ATD'): number => mean(found.map((latency) => latency[name]));
  const simultaneous = found.flatMap(({ YAAL }) => YAAL ?? []);
  return {
    AL: over('AL'),
    LAAL: over('LAAL'),
    AP: over('AP'),
    DAL: over('DAL'),
    YAAL: simultaneous.length === 0 ? null : mean(simultaneous),
    ATD: over('ATD'),
    simultaneous: simultaneous.length,
    counted: found.length,
    skipped: instances.length - found.length,
  };
}

/**
 * Average lagging (Ma et al. 2019, STACL, eq. 8): how many tokens the output is behind an ideal translator that starts
 * at once and keeps the rate γ = |y|/|x|.
 *
 *     AL = 1/τ Σ_{i=1..τ} [g_i − (i−1)/γ],  τ = the first i with g_i ≥ |x| (all, if there is none)
 *
 * With the longer of output and reference as |y| it is LAAL (Polák et al. 2022; Papi et al. 2022). A first delay beyond
 * the source is returned unchanged, as in SimulEval.
 */
export function averageLagging(delays: ArrayLike<number>, sourceLength: number, targetLength: number): number {
  if (delays[0] > sourceLength) return delays[0];
  const gamma = targetLength / sourceLength;
  let sum = 0;
  let tau = 0;
  while (tau < delays.length) {
    const delay = delays[tau];
    sum += delay - tau / gamma;
    tau++;
    if (delay >= sourceLength) break;
  }
  return sum / tau;
}

/**
 * Average proportion (Cho & Esipova 2016): the mean share of the source that was read,
 *
 *     AP = Σ_i g_i / (|x| · |y|).
 *
 * With the reference length as |y| it can exceed 1.
 */
export function averageProportion(delays: ArrayLike<number>, sourceLength: number, targetLength: number): number {
  let sum = 0;
  for (let i = 0; i < delays.length; i++) sum += delays[i];
  return sum / (sourceLength * targetLength);
}

/**
 * Differentiable average lagging (Cherry & Foster 2019; Arivazhagan et al. 2019), always against the output length:
 *
 *     DAL = 1/|y| Σ_i [g'_i − (i−1)/γ],  g'_1 = g_1,  g'_i = max(g_i, g'_{i−1} + 1/γ),  γ = |y|/|x|.
 */
export function differentiableAverageLagging(delays: ArrayLike<number>, sourceLength: number): number {
  const gamma = delays.length / sourceLength;
  let last = delays[0];
  let sum = last;
  for (let i = 1; i < delays.length; i++) {
    last = Math.max(delays[i], last + 1 / gamma);
    sum += last - i / gamma;
  }
  return sum / delays.length;
}

/**
 * YAAL (Polák et al. 2025, "Better Late Than Never"; IWSLT 2026): LAAL over what was written before the end of the source
 * alone, so that a system gains nothing by writing the rest at once,
 *
 *     YAAL = 1/τ Σ_{i=1..τ} [g_i − (i−1)/γ],  τ = the last i before the first g_i ≥ |x|,  γ = max(|y|, |reference|)/|x|.
 *
 * Null if even the first token came after the end of the source: such an instance is left out of the mean.
 */
export function yetAnotherAverageLagging(
  delays: ArrayLike<number>,
  sourceLength: number,
  targetLength: number,
): number | null {
  const gamma = targetLength / sourceLength;
  let sum = 0;
  let tau = 0;
  for (; tau < delays.length && delays[tau] < sourceLength; tau++) sum += delays[tau] - tau / gamma;
  return tau === 0 ? null : sum / tau;
}

/**
 * Average token delay (Kano et al. 2023) as SimulEval computes it for text, where every token lasts 1:
 *
 *     ATD = 1/|y| Σ_t [end(y_t) − end(x_s)],  end(y_t) = max(g_t, end(y_t−1)) + 1,  end(x_s) = s,
 *     s = min(t − max(0, Y_c−1 − X_c−1), X_c)
 *
 * where tokens with one delay in a row are a chunk c, and X_c, Y_c are the tokens of the source and the output up to its
 * end. With `elapsed`, computation time since the token before is added to end(y_t).
 */
export function averageTokenDelay(delays: ArrayLike<number>, elapsed?: ArrayLike<number>): number {
  const computed = (i: number): number => (elapsed === undefined || i < 0 ? 0 : elapsed[i] - delays[i]);
  let sum = 0;
  let end = 0;
  let ahead = 0; // max(0, Y − X) before the chunk of this token
  for (let i = 0; i < delays.length; i++) {
    if (i > 0 && delays[i] !== delays[i - 1]) ahead = Math.max(0, i - delays[i - 1]);
    end = Math.max(delays[i], end) + 1 + computed(i) - computed(i - 1);
    sum += end - Math.min(i + 1 - ahead, delays[i]);
  }
  return sum / delays.length;
}

/** The unit of a line's delays: words, characters, or tokens of any kind, which are not compared with a text. */
export type InstanceCount = LatencyUnit | 'token';

/**
 * Reads one line of an instances file: a JSON object with
 *
 * - `delays`: for each output token the source tokens read before it,
 * - `source_length`,
 * - `reference_length`, or `reference` (SimulEval's `instances.log`), which is counted as SimulEval does. Either may be
 *   null: there is no reference,
 * - `prediction`, if present: as many words or characters as there are delays,
 * - `elapsed`, if present: when each output token was written, computation time included. SimulEval writes only
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

/** Delays of characters, read as those of words, would give meaningless figures. */
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
