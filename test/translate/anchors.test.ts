import { expect, test } from 'vitest';
import { anchorsOf, interpolated } from '../../src/translate/problem.js';

test('short waits, the main task and the longest wait are measured', () => {
  expect(anchorsOf(13, 2)).toEqual([0, 1, 2, 3, 7, 12]); // waits 1, 2, 3, 4, 8, 13
  expect(anchorsOf(13, 8)).toEqual([0, 1, 3, 7, 8, 12]);
  expect(anchorsOf(1, 0)).toEqual([0]);
  expect(anchorsOf(2, 1)).toEqual([0, 1]);
});

test('the losses between them lie on straight lines', () => {
  const losses = interpolated(Float32Array.of(8, 4, 2, 10, 10, 0), [0, 2, 6], 7);
  expect([...losses.subarray(0, 7)]).toEqual([8, 6, 4, 3.5, 3, 2.5, 2]);
  expect([...losses.subarray(7)]).toEqual([10, 10, 10, 7.5, 5, 2.5, 0]);
});

test('what is measured of all tasks stays as it is', () => {
  const measured = Float32Array.of(3, 1, 2);
  expect(interpolated(measured, [0, 1, 2], 3)).toEqual(measured);
});
