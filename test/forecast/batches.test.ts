import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BatchPlan, BatchSampler, chunks, dayChunks, samplesBetween } from '../../src/forecast/data/panel.js';
import { syntheticMarket } from '../../src/forecast/formats/synthetic.js';
import { Random } from '../../src/random.js';

const panel = syntheticMarket({ stocks: 7, days: 12, seed: 5 });
const samples = samplesBetween(panel, 0, 11);

const plan = fc.oneof(
  fc.integer({ min: 1, max: 100 }).map((size): BatchPlan => ({ size })),
  fc.integer({ min: 1, max: 14 }).map((days): BatchPlan => ({ days })),
);

describe('batches', () => {
  it('go through all samples once an epoch, in another order each time', () => {
    fc.assert(
      fc.property(plan, fc.integer(), (chosen, seed) => {
        const batches = new BatchSampler(samples, chosen, new Random(seed));
        const epochs = [0, 1].map((epoch) => {
          const seen: number[] = [];
          for (let i = 0; i < batches.batchesPerEpoch; i++) {
            expect(batches.epoch).toBe(epoch);
            seen.push(...batches.next());
          }
          return seen;
        });
        expect(batches.epoch).toBe(2);
        for (const seen of epochs) expect([...seen].sort((a, b) => a - b)).toEqual([...samples.day.keys()]);
        expect(epochs[0]).not.toEqual(epochs[1]);
      }),
      { numRuns: 30 },
    );
  });

  it('of days hold every sample of each of their days', () => {
    const batches = new BatchSampler(samples, { days: 2 }, new Random(1));
    for (let i = 0; i < 6; i++) {
      const days = [...batches.next()].map((position) => samples.day[position]!);
      const distinct = [...new Set(days)];
      expect(distinct.length).toBe(2);
      expect(days.length).toBe([...samples.day].filter((d) => distinct.includes(d)).length);
    }
  });

  it('continue from a saved state as if never stopped', () => {
    fc.assert(
      fc.property(plan, fc.integer({ min: 0, max: 40 }), (chosen, steps) => {
        const batches = new BatchSampler(samples, chosen, new Random('stop'));
        for (let i = 0; i < steps; i++) batches.next();
        const state = JSON.parse(JSON.stringify(batches.state()));
        const resumed = new BatchSampler(samples, chosen, new Random('other'), state);
        expect(resumed.epoch).toBe(batches.epoch);
        for (let i = 0; i < 30; i++) expect(resumed.next()).toEqual(batches.next());
      }),
      { numRuns: 30 },
    );
  });

  it('refuse what cannot be a plan or a state', () => {
    expect(() => new BatchSampler(samples, { size: 0 }, new Random(1))).toThrow(
      /batch\.size: 0 is not a positive whole number/,
    );
    const state = { ...new BatchSampler(samples, { size: 5 }, new Random(1)).state(), taken: 1000 };
    expect(() => new BatchSampler(samples, { size: 5 }, new Random(1), state)).toThrow(
      /the saved position 1000 lies outside/,
    );
  });
});

describe('chunks for evaluation', () => {
  it('are all samples in order, by number or by day', () => {
    const all = [...samples.day.keys()];
    expect(
      [...chunks(samples, 10)]
        .map((c) => c.length)
        .slice(0, -1)
        .every((n) => n === 10),
    ).toBe(true);
    expect([...chunks(samples, 10)].flatMap((c) => [...c])).toEqual(all);
    const days = [...dayChunks(samples)];
    expect(days.length).toBe(12);
    expect(days.flatMap((c) => [...c])).toEqual(all);
    for (const positions of days) expect(new Set([...positions].map((p) => samples.day[p])).size).toBe(1);
  });
});
