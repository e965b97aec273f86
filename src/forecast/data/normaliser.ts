import { InputError } from '../../errors.js';
import { Columns } from './columns.js';
import { columnCount, type FeatureSpec } from './features.js';
import type { PricePanel, Samples } from './panel.js';

/** A robust z-score for each column: (x − centre) · factor, clipped to ±clip; a missing value becomes 0. */
export interface Normaliser {
  readonly centre: Float64Array;
  readonly factor: Float64Array;
  readonly clip: number;
}

/** The form a normaliser has in a run folder. */
export interface NormaliserJson {
  readonly kind: 'robust';
  readonly clip: number;
  readonly centre: readonly number[];
  readonly factor: readonly number[];
}

/** The standard deviation of a normal variable is 1.4826 times its median absolute deviation. */
const NORMAL = 1.4826;
const EPSILON = 1e-12;

/**
 * Fits qlib's RobustZScoreNorm on the given samples, which should be those of the training part and no other:
 * centre = median, factor = 1 / ((MAD + 1e−12) · 1.4826), exact, column by column; clip ±3. A column without any value
 * stays as it is, that is 0 everywhere.
 */
export function fitNormaliser(panel: PricePanel, spec: FeatureSpec, samples: Samples, clip = 3): Normaliser {
  const columns = columnCount(spec);
  const centre = new Float64Array(columns);
  const factor = new Float64Array(columns).fill(1);
  const values = new Columns(panel, spec, samples);
  for (let column = 0; column < columns; column++) {
    if (values.read(column) === 0) continue;
    centre[column] = values.median();
    values.deviate(centre[column]);
    factor[column] = 1 / ((values.median() + EPSILON) * NORMAL);
  }
  return { centre, factor, clip };
}

export function normaliserToJson({ centre, factor, clip }: Normaliser): NormaliserJson {
  return { kind: 'robust', clip, centre: [...centre], factor: [...factor] };
}

/** @param file where the JSON was read, for the error */
export function normaliserFromJson(json: unknown, file?: string): Normaliser {
  const { kind, clip, centre, factor } = (json ?? {}) as Partial<NormaliserJson>;
  const numbers = (x: unknown): x is number[] => Array.isArray(x) && x.length > 0 && x.every((n) => Number.isFinite(n));
  const whole =
    kind === 'robust' &&
    typeof clip === 'number' &&
    clip > 0 &&
    numbers(centre) &&
    numbers(factor) &&
    centre.length === factor.length;
  if (!whole) {
    throw new InputError('not a normaliser: expected kind "robust", clip, and as many centres as factors', {
      file,
      key: 'normaliser',
    });
  }
  return { clip, centre: Float64Array.from(centre), factor: Float64Array.from(factor) };
}
