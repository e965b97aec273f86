import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Random } from '../../src/random.js';
import { sampleRows } from '../../src/schedule/strategies/distribution.js';
import { ActionBuffer } from '../../src/schedule/strategies/learned.js';
import { Standardisation } from '../../src/schedule/strategies/scheduler.js';
import { stored } from './trainings.js';

/** Appends decision number n with the features n, n + ½, … and the task n mod 7. */
function fill(buffer: ActionBuffer, sizes: readonly number[], from = 0): number {
  let n = from;
  for (const size of sizes) {
    const { features, tasks } = buffer.append(size);
    expect([features.length, tasks.length]).toEqual([size * buffer.width, size]);
    for (let i = 0; i < size; i++, n++) {
      for (let j = 0; j < buffer.width; j++) features[i * buffer.width + j] = n + j / 2;
      tasks[i] = n % 7;
    }
  }
  return n;
}

function contents(chunks: Iterable<{ features: Float32Array; tasks: Int32Array }>): {
  features: number[];
  tasks: number[];
} {
  const list = [...chunks];
  return { features: list.flatMap(({ features }) => [...features]), tasks: list.flatMap(({ tasks }) => [...tasks]) };
}

const sizes = fc.array(fc.integer({ min: 1, max: 1500 }), { maxLength: 12 });

test('a buffer gives back all decisions in their order, after a checkpoint as well', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), sizes, sizes, sizes, (width, earlier, before, after) => {
      const buffer = new ActionBuffer(width);
      fill(buffer, earlier);
      buffer.clear();
      expect(buffer.length).toBe(0);
      const half = fill(buffer, before);
      const resumed = new ActionBuffer(width);
      resumed.restore(stored(buffer.capture()));
      const total = fill(buffer, after, half);
      fill(resumed, after, half);

      const numbers = Array.from({ length: total }, (_, n) => n);
      expect(buffer.length).toBe(total);
      expect(contents(buffer.chunks())).toEqual({
        features: numbers.flatMap((n) => Array.from({ length: width }, (_, j) => n + j / 2)),
        tasks: numbers.map((n) => n % 7),
      });
      // Page by page, as the order of summation must not change either.
      expect(resumed.chunks()).toEqual(buffer.chunks());
    }),
    { numRuns: 30 },
  );
});

test('minibatches hold every decision once, in another order', () => {
  fc.assert(
    fc.property(sizes, fc.integer({ min: 1, max: 500 }), (all, size) => {
      const buffer = new ActionBuffer(2);
      const total = fill(buffer, all);
      const batches = [...buffer.minibatches(size, new Random(1))];
      expect(batches.slice(0, -1).every(({ tasks }) => tasks.length === size)).toBe(true);
      const { features, tasks } = contents(batches);
      const numbers = features.filter((_, i) => i % 2 === 0);
      expect(tasks).toEqual(numbers.map((n) => n % 7));
      expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: total }, (_, n) => n));
      if (total > 50) expect(numbers).not.toEqual(numbers.toSorted((a, b) => a - b));
    }),
    { numRuns: 30 },
  );
});

test('an episode of a million decisions takes 4 bytes each besides its features', () => {
  const buffer = new ActionBuffer(7);
  for (let i = 0; i < 15_625; i++) buffer.append(64);
  expect(buffer.length).toBe(1_000_000);
  const bytes = buffer
    .chunks()
    .reduce((sum, { features, tasks }) => sum + features.buffer.byteLength + tasks.buffer.byteLength, 0);
  expect(bytes / 1_000_000 - 7 * 4).toBeLessThan(5);
  expect([...buffer.sampleRows(4096)].length).toBeGreaterThan(4000);
});

test('tasks are drawn as often as their probabilities say, and never with probability 0', () => {
  const row = [0.5, 0, 0.2, 0.3, 0];
  const n = 40_000;
  const tasks = new Int32Array(n);
  sampleRows(
    Float32Array.from({ length: n * 5 }, (_, i) => row[i % 5]),
    new Random(1),
    tasks,
  );
  row.forEach((p, task) => {
    const count = tasks.filter((drawn) => drawn === task).length;
    expect(Math.abs(count - n * p)).toBeLessThanOrEqual(4 * Math.sqrt(n * p * (1 - p)));
  });
  // A row that sums to less than one leaves the rest to the last possible task.
  const short = new Int32Array(1000);
  sampleRows(
    Float32Array.from({ length: 3000 }, (_, i) => [0.2, 0.3, 0][i % 3]),
    new Random(2),
    short,
  );
  expect(new Set(short)).toEqual(new Set([0, 1]));
});

test('features are brought to mean 0 and deviation 1, however far from 0 they are', () => {
  const random = new Random(3);
  const rows = Array.from({ length: 500 }, () => Float32Array.of(1000 + random.normal(), 0.01 * random.normal(), 5));
  const scale = new Standardisation(3);
  expect([...scale.mean, ...scale.inverseStd]).toEqual([0, 0, 0, 1, 1, 1]);
  scale.add(rows.slice(0, 200));
  scale.add(rows.slice(200));
  for (const j of [0, 1]) {
    const z = rows.map((row) => (row[j] - scale.mean[j]) * scale.inverseStd[j]);
    expect(z.reduce((sum, x) => sum + x, 0) / 500).toBeCloseTo(0, 3);
    expect(z.reduce((sum, x) => sum + x * x, 0) / 500).toBeCloseTo(1, 3);
  }
  // One that never changes is only centred.
  expect([scale.mean[2], scale.inverseStd[2]]).toEqual([5, 1]);
});
