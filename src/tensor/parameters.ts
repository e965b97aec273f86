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

/** Low-rank adapters of linear layers (Hu et al. 2022): W + α/r·B·A. */
export interface Adapters {
  /** r, rows of A and columns of B. */
  readonly rank: number;
  readonly alpha: number;
  /** Names of the layers that have one, such as `q_proj`. */
  readonly layers: readonly string[];
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
    private readonly adapters?: Adapters,
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
    return new Parameters(`${this.prefix}${name}.`, this.dtype, this.declared, this.adapters);
  }

  /** The same parameters, with adapters for some of the linear layers. */
  adapted(adapters: Adapters): Parameters {
    return new Parameters(this.prefix, this.dtype, this.declared, adapters);
  }

  /** The adapters, if the layer whose parameters these are has one. */
  get adapter(): Adapters | undefined {
    const layer = this.prefix.split('.').at(-2) ?? '';
    return this.adapters?.layers.includes(layer) ? this.adapters : undefined;
  }

  /** Everything declared so far, in the order of first use. */
  list(): Parameter[] {
    return [...this.declared.values()];
  }
}
