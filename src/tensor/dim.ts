/**
 * A dimension of a shape: a number, or an integer polynomial in named sizes such as `B`, `B*T`, `T+1` that is known
 * only when a program runs. Two dimensions are equal iff their canonical forms are.
 */
export type Dim = number | SymbolicDim;

/** Notations for a dimension: `64`, `'B'`, or a dimension of another shape. */
export type DimLike = Dim | string;

/** Sizes of the named dimensions in one run. */
export type Bindings = ReadonlyMap<string, number>;

/** A size that is known only at run time: a polynomial in named dimensions. */
export class SymbolicDim {
  /** Canonical form, for example `2*B*T+1`. */
  readonly key: string;

  /** Coefficient of each monomial; a monomial is its sorted names joined by `*`, the constant term is `''`. */
  constructor(readonly terms: ReadonlyMap<string, number>) {
    this.key = [...terms]
      .sort(([a], [b]) => (a < b ? 1 : -1))
      .map(([names, coefficient]) =>
        names === '' ? `${coefficient}` : coefficient === 1 ? names : `${coefficient}*${names}`,
      )
      .join('+');
  }

  /** The canonical form. */
  toString(): string {
    return this.key;
  }

  /** The canonical form. */
  toJSON(): string {
    return this.key;
  }
}

/** A number, or a named dimension. */
export function dim(value: DimLike): Dim {
  if (typeof value !== 'string') return value;
  if (!/^[A-Za-z_]\w*$/.test(value)) throw new RangeError(`'${value}' is not a name for a dimension`);
  return new SymbolicDim(new Map([[value, 1]]));
}

export function sameDim(a: Dim, b: Dim): boolean {
  return typeof a === 'number' || typeof b === 'number' ? a === b : a.key === b.key;
}

export function addDims(a: Dim, b: Dim): Dim {
  if (typeof a === 'number' && typeof b === 'number') return a + b;
  const sum = new Map(termsOf(a));
  for (const [names, coefficient] of termsOf(b)) sum.set(names, (sum.get(names) ?? 0) + coefficient);
  return fromTerms(sum);
}

/** a·b */
export function multiplyDims(a: Dim, b: Dim): Dim {
  if (typeof a === 'number' && typeof b === 'number') return a * b;
  const product = new Map<string, number>();
  for (const [namesA, coefficientA] of termsOf(a)) {
    for (const [namesB, coefficientB] of termsOf(b)) {
      const names = [...split(namesA), ...split(namesB)].sort().join('*');
      product.set(names, (product.get(names) ?? 0) + coefficientA * coefficientB);
    }
  }
  return fromTerms(product);
}

/** Number of elements: the product of all dimensions. */
export function sizeOf(shape: readonly Dim[]): Dim {
  return shape.reduce(multiplyDims, 1);
}

/** The dimension `product / divisor`, or undefined when a single term does not divide it exactly. */
export function divideDims(product: Dim, divisor: Dim): Dim | undefined {
  if (sameDim(product, divisor)) return 1;
  const by = [...termsOf(divisor)];
  if (by.length !== 1) return undefined;
  const [divisorNames, divisorCoefficient] = by[0];
  const quotient = new Map<string, number>();
  for (const [names, coefficient] of termsOf(product)) {
    const left = split(names);
    for (const name of split(divisorNames)) {
      const at = left.indexOf(name);
      if (at < 0) return undefined;
      left.splice(at, 1);
    }
    if (coefficient % divisorCoefficient !== 0) return undefined;
    quotient.set(left.join('*'), coefficient / divisorCoefficient);
  }
  return fromTerms(quotient);
}

/** The size once the names have values. */
export function evaluateDim(value: Dim, bindings: Bindings): number {
  if (typeof value === 'number') return value;
  let sum = 0;
  for (const [names, coefficient] of value.terms) {
    let product = coefficient;
    for (const name of split(names)) {
      const size = bindings.get(name);
      if (size === undefined) throw new RangeError(`the size of dimension ${name} is not known`);
      product *= size;
    }
    sum += product;
  }
  return sum;
}

/** The name when the dimension is a bare name, else undefined. */
export function bareName(value: Dim): string | undefined {
  if (typeof value === 'number' || value.terms.size !== 1) return undefined;
  const [[names, coefficient]] = value.terms;
  return coefficient === 1 && !names.includes('*') ? names : undefined;
}

/** All names that occur in the dimension. */
export function namesIn(value: Dim): string[] {
  return [...new Set([...termsOf(value).keys()].flatMap(split))];
}

/** A shape as text: `[B, 2*T, 64]`. */
export function formatShape(shape: readonly Dim[]): string {
  return `[${shape.join(', ')}]`;
}

function split(names: string): string[] {
  return names === '' ? [] : names.split('*');
}

function termsOf(value: Dim): ReadonlyMap<string, number> {
  return typeof value === 'number' ? new Map([['', value]]) : value.terms;
}

function fromTerms(terms: Map<string, number>): Dim {
  for (const [names, coefficient] of terms) if (coefficient === 0) terms.delete(names);
  if (terms.size === 0) return 0;
  const constant = terms.get('');
  return terms.size === 1 && constant !== undefined ? constant : new SymbolicDim(terms);
}
