import type { Random } from '../random.js';

import { sameShape, type Tensor, TraceError } from './tensor.js';
import { input } from './trace.js';

/** Fills a new parameter with its first values. */
export type Initializer = (values: Float32Array | Float64Array, shape: readonly number[], random: Random) => void;

export interface Parameter {
  readonly name: string;
  readonly shape: readonly number[];
  readonly initialize: Initializer;
  readonly tensor: Tensor;
}

/**
 * The named parameters of a model, declared where they are used while the model is traced:
 * `p.get('weight', [out, in], xavierUniform())`. `p.under('encoder')` prefixes names with `encoder.`; asking twice for
 * a name gives the same tensor, which is how layers share one.
 */
export class Parameters {
  private constructor(
    private readonly prefix: string,
    readonly dtype: 'f32' | 'f64',
    private readonly declared: Map<string, Parameter>,
  ) {}

  static root(dtype: 'f32' | 'f64' = 'f32'): Parameters {
    return new Parameters('', dtype, new Map());
  }

  get(name: string, shape: readonly number[], initialize: Initializer): Tensor {
    const full = this.prefix + name;
    const known = this.declared.get(full);
    if (known === undefined) {
      const tensor = input(full, { shape, dtype: this.dtype });
      this.declared.set(full, { name: full, shape, initialize, tensor });
      return tensor;
    }
    if (!sameShape(known.shape, shape)) {
      const found = `[${known.shape.join(', ')}] and [${shape.join(', ')}]`;
      throw new TraceError('parameter', `${full} is used with the shapes ${found}`, known.tensor.node.site);
    }
    return known.tensor;
  }

  under(name: string | number): Parameters {
    return new Parameters(`${this.prefix}${name}.`, this.dtype, this.declared);
  }

  /** Everything declared so far, in the order of first use. */
  list(): Parameter[] {
    return [...this.declared.values()];
  }
}
