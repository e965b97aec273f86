import {
  add,
  constant,
  type DimLike,
  expandDims,
  gather,
  type Initializer,
  mul,
  type Parameters,
  range,
  type Tensor,
} from '../tensor/index.js';
import { embeddingNormal } from './initializers.js';

export interface EmbeddingOptions {
  /** Id whose row starts at zero. */
  readonly padding?: number;
  /** Multiplied with the looked-up rows, √width in a Transformer. Default 1. */
  readonly scale?: number;
  readonly weight?: Initializer;
}

/** Rows of `weight` [vocabulary, width] for i64 ids. */
export function embedding(
  p: Parameters,
  ids: Tensor,
  vocabulary: number,
  width: number,
  options: EmbeddingOptions = {},
): Tensor {
  const { padding, scale = 1, weight = embeddingNormal(padding) } = options;
  const rows = gather(p.get('weight', [vocabulary, width], weight), ids);
  return scale === 1 ? rows : mul(rows, scale);
}

/**
 * Sinusoidal positions as a constant [positions, width]: columns sin(pos·ω_i), then cos(pos·ω_i), for pos = `first`,
 * `first` + 1, …, with ω_i = 10000^(−i/(width/2 − 1)) in fairseq's form and 10000^(−i/(width/2)) in Marian's.
 */
export function sinusoidalTable(
  positions: number,
  width: number,
  { first = 0, form = 'fairseq', dtype = 'f32' }: SinusoidalOptions = {},
): Tensor {
  if (width % 2 !== 0 || width < 4) throw new RangeError(`sinusoidal positions need an even width ≥ 4, got ${width}`);
  const half = width / 2;
  const steps = form === 'fairseq' ? half - 1 : half;
  const values = new Float64Array(positions * width);
  for (let row = 0; row < positions; row++) {
    for (let i = 0; i < half; i++) {
      const angle = (first + row) * 10000 ** (-i / steps);
      values[row * width + i] = Math.sin(angle);
      values[row * width + half + i] = Math.cos(angle);
    }
  }
  return constant(values, dtype, [positions, width]);
}

export interface SinusoidalOptions {
  /** Position of the first row. Default 0. */
  readonly first?: number;
  /** Default fairseq. */
  readonly form?: 'fairseq' | 'marian';
  readonly dtype?: 'f32' | 'f64';
}

/** Adds the first T rows of a position table to a time-major tensor [T, B, D]. */
export function addPositions(x: Tensor, table: Tensor, steps: DimLike = x.shape[0]): Tensor {
  return add(x, expandDims(gather(table, range(steps)), 1));
}
