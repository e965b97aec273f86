import { expect, it } from 'vitest';
import { type FeatureSpec, gatherFeatures, prepareWindows } from '../../src/forecast/data/features.js';
import { fitNormaliser } from '../../src/forecast/data/normaliser.js';
import { type PricePanel, samplesBetween } from '../../src/forecast/data/panel.js';
import { syntheticMarket } from '../../src/forecast/formats/synthetic.js';

const SPECS: readonly FeatureSpec[] = [
  { kind: 'ohlcv', window: 10 },
  { kind: 'ohlcv', window: 7, columns: ['volume'] },
  // The market has no vwap.
  { kind: 'alpha360', window: 5 },
];

it.each(['time-major', 'flat'] as const)('windows are the same from the copy that is kept by stock (%s)', (layout) => {
  const market = syntheticMarket({ stocks: 7, days: 40 });
  // Prices that are missing, and windows that begin before the data do.
  for (let i = 0; i < market.values.length; i += 97) market.values[i] = Number.NaN;
  for (const spec of SPECS) {
    const samples = samplesBetween(market, 2, 39);
    const normaliser = fitNormaliser(market, spec, samples);
    const { length: columns } = normaliser.centre;
    // More samples than the copy makes windows of at a time.
    for (const count of [1, 260, 7000]) {
      const positions = Int32Array.from({ length: count }, (_, i) => (i * 37) % samples.length);
      const windows = (panel: PricePanel, given?: typeof normaliser) => {
        const out = new Float32Array(count * columns).fill(123);
        gatherFeatures(panel, spec, samples, positions, out, layout, given);
        return out;
      };
      const before = [windows(market), windows(market, normaliser)];
      const prepared = { ...market };
      prepareWindows(prepared);
      expect([windows(prepared), windows(prepared, normaliser)]).toEqual(before);
      expect(before[0].some(Number.isFinite)).toBe(true);
      expect(before[1].some((value) => value !== 0)).toBe(true);
      expect(before[1].includes(123)).toBe(false);
    }
  }
});
