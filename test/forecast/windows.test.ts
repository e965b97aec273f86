import { expect, it } from 'vitest';
import { gather, prepareWindows, samplesBetween } from '../../src/forecast/data/index.js';
import { syntheticMarket } from '../../src/forecast/formats/synthetic.js';

it.each(['time-major', 'flat'] as const)('windows are the same from the copy that is kept by stock (%s)', (layout) => {
  const panel = syntheticMarket({ stocks: 7, days: 40 });
  const samples = samplesBetween(panel, 5, 39);
  const spec = { kind: 'ohlcv', window: 10 } as const;
  const positions = Int32Array.from({ length: samples.length }, (_, i) => samples.length - 1 - i);
  const windows = () => {
    const out = new Float32Array(positions.length * 50);
    gather(panel, spec, samples, positions, out, layout);
    return out;
  };
  const before = windows();
  prepareWindows(panel);
  expect(windows()).toEqual(before);
  expect(before.some(Number.isFinite)).toBe(true);
});
