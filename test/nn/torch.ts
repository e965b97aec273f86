import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { traceModel } from '../../src/optim/index.js';
import {
  add,
  grad,
  lower,
  mul,
  type Parameters,
  Session,
  sum,
  type Tensor,
  type TensorType,
  type Value,
} from '../../src/tensor/index.js';

/** A tensor as the reference files store it. */
export interface Stored {
  readonly shape: readonly number[];
  readonly data: readonly number[];
}

/** Reads one of the files that `test/vectors/make_torch.py` makes. */
export function readVectors<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`../vectors/${name}.json`, import.meta.url), 'utf8')) as T;
}

export interface TorchCase {
  /** Given to the model under these names; gradients are taken with respect to all floating-point ones. */
  readonly inputs: Readonly<Record<string, Stored>>;
  /** i64 inputs. */
  readonly integers?: Readonly<Record<string, Stored>>;
  readonly parameters?: Readonly<Record<string, Stored>>;
  readonly outputs: Readonly<Record<string, Stored>>;
  /** The loss is Σ weight·output over these outputs. */
  readonly weights: Readonly<Record<string, Stored>>;
  readonly loss?: number;
  readonly gradients: Readonly<Record<string, Stored>>;
}

type TestModel = (p: Parameters, inputs: Record<string, Tensor>) => Record<string, Tensor>;

/** Outputs to 1e-9 and gradients to 1e-8 in f64; both to 1e-5 of the largest value in f32. */
export async function expectTorch(model: TestModel, reference: TorchCase): Promise<void> {
  await compare(model, reference, 'f64', 1e-9, 1e-8);
  await compare(model, reference, 'f32', 1e-5, 1e-5);
}

async function compare(
  model: TestModel,
  { inputs, integers = {}, parameters = {}, outputs, weights, loss, gradients }: TorchCase,
  dtype: 'f32' | 'f64',
  outputTolerance: number,
  gradientTolerance: number,
): Promise<void> {
  const floats = { ...inputs, ...Object.fromEntries(Object.entries(weights).map(([k, v]) => [`weight of ${k}`, v])) };
  const types: Record<string, TensorType> = {
    ...mapValues(floats, ({ shape }) => ({ shape, dtype })),
    ...mapValues(integers, ({ shape }) => ({ shape, dtype: 'i64' as const })),
  };
  const given: Record<string, Tensor> = {};
  const { program } = traceModel(
    (p, tensors: Record<string, Tensor>) => {
      Object.assign(given, tensors);
      return model(p, tensors);
    },
    types,
    (results, declared) => {
      const total = Object.keys(weights)
        .map((name) => sum(mul(results[name], given[`weight of ${name}`])))
        .reduce(add);
      const names = [...Object.keys(inputs), ...declared.map(({ name }) => name)];
      const wanted = [...Object.keys(inputs).map((name) => given[name]), ...declared.map(({ tensor }) => tensor)];
      const found = grad(total, wanted);
      return {
        ...results,
        loss: total,
        ...Object.fromEntries(names.map((name, i) => [`gradient of ${name}`, found[i]])),
      };
    },
    dtype,
  );
  const session = await Session.create(lower(program));
  const results = await session.run({
    ...mapValues({ ...floats, ...parameters }, (stored) => floatValue(stored, dtype)),
    ...mapValues(integers, ({ data, shape }) => ({ data: BigInt64Array.from(data, BigInt), shape })),
  });
  await session.close();
  for (const [name, expected] of Object.entries(outputs)) {
    expectClose(results[name], expected, outputTolerance, dtype, name);
  }
  if (loss !== undefined) {
    expectClose(results.loss, { shape: [], data: [loss] }, outputTolerance, dtype, 'loss');
  }
  const whenVanishing = Math.max(...Object.values(gradients).map(largestOf));
  for (const [name, expected] of Object.entries(gradients)) {
    const what = `gradient of ${name}`;
    expectClose(results[what], expected, gradientTolerance, dtype, what, whenVanishing);
  }
}

/** Absolute differences in f64; in f32 relative to the largest expected value, of all gradients where one vanishes. */
export function expectClose(
  found: Value,
  expected: Stored,
  tolerance: number,
  dtype: 'f32' | 'f64',
  what: string,
  whenVanishing = 1,
): void {
  expect(found.shape, what).toEqual(expected.shape);
  const largest = largestOf(expected);
  const scale = dtype === 'f64' ? 1 : largest < 1e-12 ? whenVanishing : largest;
  const worst = expected.data.reduce((max, value, i) => Math.max(max, Math.abs(value - (found.data[i] as number))), 0);
  expect(worst / scale, `${what} in ${dtype}`).toBeLessThanOrEqual(tolerance);
}

const largestOf = ({ data }: Stored): number => data.reduce((max, value) => Math.max(max, Math.abs(value)), 0);

function floatValue({ data, shape }: Stored, dtype: 'f32' | 'f64'): Value {
  return { data: dtype === 'f64' ? Float64Array.from(data) : Float32Array.from(data), shape };
}

export function mapValues<A, B>(record: Readonly<Record<string, A>>, fn: (value: A) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, fn(value)]));
}

/** The parameters of `torch.nn.Transformer*Layer` or `MultiheadAttention` under our names. */
export function renamed(
  parameters: Readonly<Record<string, Stored>>,
  names: Readonly<Record<string, string>>,
): Record<string, Stored> {
  return Object.fromEntries(
    Object.entries(parameters).flatMap(([torchName, stored]) => {
      return split(torchName, stored).map(([name, part]): [string, Stored] => {
        const prefix = Object.keys(names).find((key) => name.startsWith(`${key}.`));
        return [prefix === undefined ? name : names[prefix] + name.slice(prefix.length), part];
      });
    }),
  );
}

/** `in_proj_weight` holds the rows of the three projections one after the other. */
function split(name: string, { shape, data }: Stored): [string, Stored][] {
  const found = /^(.*\.)?in_proj_(weight|bias)$/.exec(name);
  if (found === null) return [[name, { shape, data }]];
  const [, prefix = '', kind] = found;
  const size = data.length / 3;
  return ['q_proj', 'k_proj', 'v_proj'].map((projection, i) => [
    `${prefix}${projection}.${kind}`,
    { shape: [shape[0] / 3, ...shape.slice(1)], data: data.slice(i * size, (i + 1) * size) },
  ]);
}
