import { expect, it } from 'vitest';
import { networkRows, weightMatrix } from '../../src/forecast/network.js';

// Two samples, three tasks; the first sample on task 0 (the main one), the second on task 2.
const shares = Float32Array.of(1, 0, 0, 0, 0, 1);

it('a chosen task replaces the main one, or is added to it, or counts twice among all', () => {
  const weights = Float32Array.of(1, 3); // of a total of 4
  const replace = weightMatrix(shares, weights, 0, { chosen: 'replace', auxiliaryWeight: 0.5 });
  expect([...replace]).toEqual([0.25, 0, 0, 0, 0, 0.75]);
  const add = weightMatrix(shares, weights, 0, { chosen: 'add', auxiliaryWeight: 0.5 });
  expect([...add]).toEqual([0.25, 0, 0, 0.75, 0, 0.375]);
  const all = weightMatrix(shares, weights, 0, { chosen: 'all', auxiliaryWeight: 0.5 });
  expect([...all]).toEqual([0.5, 0.125, 0.125, 0.75, 0.375, 0.75]);
});

it('a network that is told the task gets a row for each pair that counts', () => {
  const labels = Float32Array.of(0.1, 0.2, 0.3, 0.4, 0.5, 0.6);
  const matrix = Float32Array.of(0.5, 0, 0, 0.5, 0, 0.25);
  const { rows, tasks, labels: own, weights } = networkRows({ sharing: 'embedding' }, labels, matrix, 3);
  expect({ rows: [...rows!], tasks: [...tasks] }).toEqual({ rows: [0, 1, 1], tasks: [0, 0, 2] });
  expect(own).toEqual({ data: Float32Array.of(0.1, 0.4, 0.6), shape: [3, 1] });
  expect(weights).toEqual({ data: Float32Array.of(0.5, 0.5, 0.25), shape: [3, 1] });
});

it.each(['heads', 'shared', 'embedding'] as const)('an unknown label counts nothing (%s)', (sharing) => {
  const labels = Float32Array.of(Number.NaN, 0.5);
  const { labels: own, weights } = networkRows({ sharing }, labels, Float32Array.of(1, 1), 2);
  expect([...(own.data as Float32Array)].every(Number.isFinite)).toBe(true);
  expect((weights.data as Float32Array).reduce((sum, weight) => sum + weight, 0)).toBe(1);
});
