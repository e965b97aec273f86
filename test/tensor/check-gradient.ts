import { expect } from 'vitest';
import { Random } from '../../src/random.js';
import {
  type DeviceName,
  f32,
  f64,
  grad,
  lower,
  mul,
  Session,
  sum,
  type Tensor,
  trace,
  type Value,
} from '../../src/tensor/index.js';

/** A random f64 value with entries in ±[0.2, 1.2]: away from the kinks of relu, abs and clip at 0. */
export function randomValue(random: Random, shape: readonly number[]): Value {
  const size = shape.reduce((a, b) => a * b, 1);
  const sign = (): number => (random.uniform() < 0.5 ? -1 : 1);
  return { data: Float64Array.from({ length: size }, () => sign() * (0.2 + random.uniform())), shape };
}

export function positive({ data, shape }: Value): Value {
  return { data: Float64Array.from(data as Float64Array, Math.abs), shape };
}

/**
 * Compares the gradient of Σ c·fn(inputs), with random fixed c, in f64 against central differences. Named dimensions
 * are used for every axis of every input where `named` says so, to check that nothing depends on static sizes.
 */
export async function checkGradient(
  fn: (...inputs: Tensor[]) => Tensor,
  values: readonly Value[],
  { named = [], tolerance = 2e-6, step = 1e-5 }: { named?: string[][]; tolerance?: number; step?: number } = {},
): Promise<void> {
  if (process.env.TEST_DEVICE !== undefined) return compareDevices(fn, values, named);
  const types = Object.fromEntries(
    values.map(({ shape }, i) => [`x${i}`, f64(...shape.map((size, axis) => named[i]?.[axis] || size))]),
  );
  const program = trace(types, (inputs) => ({ out: fn(...Object.values(inputs)) }));
  const feeds = Object.fromEntries(values.map((value, i) => [`x${i}`, value]));
  const session = await Session.create(lower(program));
  const { out } = await session.run(feeds);
  const c = randomValue(new Random('weights'), out.shape);

  const backward = lower(
    trace({ ...types, c: f64(...program.outputs.get('out')!.shape) }, ({ c: weights, ...inputs }) => {
      const tensors: Tensor[] = Object.values(inputs);
      const loss = sum(mul(fn(...tensors), weights));
      const gradients = grad(loss, tensors);
      return Object.fromEntries(gradients.map((gradient, i) => [`d${i}`, gradient]));
    }),
  );
  const gradientSession = await Session.create(backward);
  const gradients = await gradientSession.run({ ...feeds, c });

  const loss = async (): Promise<number> => {
    const { out: now } = await session.run(feeds);
    return (now.data as Float64Array).reduce((total, value, i) => total + value * (c.data[i] as number), 0);
  };
  for (const [i, { data }] of values.entries()) {
    const found = gradients[`d${i}`];
    expect(found.shape).toEqual(values[i].shape);
    for (let at = 0; at < data.length; at++) {
      const original = data[at] as number;
      data[at] = original + step;
      const above = await loss();
      data[at] = original - step;
      const below = await loss();
      data[at] = original;
      const numeric = (above - below) / (2 * step);
      const analytic = found.data[at] as number;
      expect(Math.abs(analytic - numeric), `input ${i}, element ${at}: ${analytic} against ${numeric}`).toBeLessThan(
        tolerance * Math.max(1, Math.abs(numeric)),
      );
    }
  }
  await session.close();
  await gradientSession.close();
}

/** The same operation and gradient in f32, on the CPU and on the device that the environment names. */
async function compareDevices(
  fn: (...inputs: Tensor[]) => Tensor,
  values: readonly Value[],
  named: readonly string[][],
): Promise<void> {
  const types = Object.fromEntries(
    values.map(({ shape }, i) => [`x${i}`, f32(...shape.map((size, axis) => named[i]?.[axis] || size))]),
  );
  const program = trace(types, (inputs) => {
    const tensors: Tensor[] = Object.values(inputs);
    const out = fn(...tensors);
    // Weights that differ: gradients of softmax and norms vanish for those that are equal.
    const gradients = grad(sum(mul(out, mul(out, 0.5))), tensors);
    return { out, ...Object.fromEntries(gradients.map((gradient, i) => [`d${i}`, gradient])) };
  });
  const feeds = Object.fromEntries(
    values.map(({ data, shape }, i) => [`x${i}`, { data: Float32Array.from(data as Float64Array), shape }]),
  );
  const results = [];
  for (const device of ['cpu', process.env.TEST_DEVICE as DeviceName] as const) {
    const session = await Session.create(lower(program, { device }));
    results.push(await session.run(feeds));
    await session.close();
  }
  for (const [name, { data, shape }] of Object.entries(results[0])) {
    expect(results[1][name].shape).toEqual(shape);
    const found = results[1][name].data as Float32Array;
    const largest = (data as Float32Array).reduce((top, value) => Math.max(top, Math.abs(value)), 1);
    for (let i = 0; i < data.length; i++) {
      const [expected, actual] = [data[i] as number, found[i]];
      expect(Math.abs(actual - expected), `${name}, element ${i}: ${actual}, on the CPU ${expected}`).toBeLessThan(
        1e-5 * largest,
      );
    }
  }
}
