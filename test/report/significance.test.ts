import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Random } from '../../src/random.js';
import {
  bleuInterval,
  bleuTest,
  commonDecoding,
  forecastMeasure,
  looksAt,
  rankICTest,
  testComparisons,
  translationOf,
} from '../../src/report/measures.js';
import { SeriesReader } from '../../src/report/reader.js';
import { findRuns } from '../../src/report/runs.js';
import { groupRuns, type Setting } from '../../src/report/settings.js';
import { comparisons } from '../../src/report/view.js';
import { temporaryFolder } from '../run/temporary.js';
import { makeForecast, makeTranslation, REFERENCES } from './run-folders.js';

describe('tests over seeds', () => {
  it('pair the seeds that both have, and correct for the number of comparisons', () => {
    const folder = temporaryFolder();
    const scores = { fixed: [0.1, 0.2, 0.3], mtl: [0.1, 0.2, 0.4], learned: [0.2, 0.4, 0.6, 0.9] };
    for (const [strategy, values] of Object.entries(scores)) {
      for (const [i, value] of values.entries()) {
        makeForecast(join(folder, `${strategy}-${i}`), { strategy, seed: i, daily: [value, value] });
      }
    }
    const [data] = groupRuns(findRuns(folder).runs);
    const tested = testComparisons(comparisons(data, ['fixed', 'mtl']), forecastMeasure('RankIC'), () => Number.NaN);
    // Differences from fixed: .1, .2, .3; mean .2, s = .1, t = .2 / (.1 / √3) = 3.4641; two-sided with 2 degrees of freedom
    // p = 1 − t / √(2 + t²) = 1 − 3.4641 / √14 = .0742. Differences from mtl: .1, .2, .2; mean 1/6, s = .057735, t = 5,
    // p = 1 − 5 / √27 = .0377. Holm: the smaller one twice is .0755, the larger one may not be below it.
    expect(tested.map(({ baseline, seeds }) => [baseline.label, seeds])).toEqual([
      ['GRU', 3],
      ['MTL (3 tasks)', 3],
    ]);
    expect(tested[0].difference).toBeCloseTo(0.2, 12);
    expect(tested[1].tTest).toBeCloseTo(2 * (1 - 5 / Math.sqrt(27)), 9);
    expect(tested[0].tTest).toBeCloseTo(2 * (1 - 5 / Math.sqrt(27)), 9);
    // All three signs alike: 2 · (1/2)³ = .25, twice by Holm.
    expect(tested.map(({ wilcoxon }) => wilcoxon)).toEqual([0.5, 0.5]);
    expect(tested.map(({ items }) => items)).toEqual([Number.NaN, Number.NaN]);
  });
});

describe('tests on validation data', () => {
  it('are corrected for all that was looked at before settings were chosen', () => {
    const folder = temporaryFolder();
    const scores = { fixed: [0.1, 0.2, 0.3], learned: [0.2, 0.4, 0.6] };
    for (const [strategy, values] of Object.entries(scores)) {
      for (const [seed, value] of values.entries()) {
        makeForecast(join(folder, `${strategy},seed=${seed}`), { strategy, seed, daily: [value, value] });
      }
    }
    // The group `learned` chose among 4 configurations by 6 scores.
    const run = (group: string, seed: number) => ({ name: `${group},seed=${seed}`, group, labels: {}, seed });
    const runs = Object.keys(scores).flatMap((group) => [0, 1, 2].map((seed) => run(group, seed)));
    const choices = [{ step: 'learned', for: {}, candidates: [], chosen: {}, looks: { configurations: 4, scores: 6 } }];
    const grid = { file: 'grid.yaml', values: { groups: [{ name: 'fixed' }, { name: 'learned' }] } };
    writeFileSync(join(folder, 'sweep.json'), JSON.stringify({ format: 'tcts sweep 1', grid, runs, choices }));
    const [data] = groupRuns(findRuns(folder).runs);
    const test = (looks?: typeof looksAt) =>
      testComparisons(comparisons(data, ['fixed']), forecastMeasure('RankIC'), () => 0.01, looks)[0];
    // As above: p = 1 − 3.4641 / √14 over the seeds.
    const p = 1 - Math.sqrt(12 / 14);
    expect(test().tTest).toBeCloseTo(p, 9);
    expect(test(looksAt).tTest).toBeCloseTo(6 * p, 9);
    expect(test(looksAt).items).toBeCloseTo(0.06, 12);
    // 6 · 0.25 is more than a probability can be.
    expect(test(looksAt).wilcoxon).toBe(1);
  });
});

describe('the block bootstrap of RankIC', () => {
  it('is of the daily differences, averaged over the seeds', () => {
    const folder = temporaryFolder();
    const random = new Random(3);
    const market = Array.from({ length: 200 }, () => 0.1 * random.normal());
    for (const [strategy, gain] of [
      ['fixed', 0],
      ['learned', 0.05],
    ] as const) {
      for (const seed of [1, 2]) {
        const daily = market.map((value) => value + gain + 0.001 * random.normal());
        makeForecast(join(folder, `${strategy}-${seed}`), { strategy, seed, daily });
      }
    }
    const [data] = groupRuns(findRuns(folder).runs);
    const [pair] = comparisons(data, ['fixed']);
    const { mean, p, days, blockLength } = rankICTest(pair, new SeriesReader())!;
    // Whatever the market does is in both: what is left is .05, with noise of .001 a day.
    expect(mean).toBeCloseTo(0.05, 3);
    expect(p).toBeLessThan(0.001);
    expect({ days, blockLength }).toEqual({ days: 200, blockLength: 6 });
  });
});

describe('the paired bootstrap of BLEU', () => {
  const spoiled = REFERENCES.map((line) => line.split(' ').reverse().join(' '));
  const many = (lines: readonly string[]) => Array.from({ length: 40 }, (_, i) => lines[i % lines.length]);

  function translated(outputs: Record<string, readonly string[]>) {
    const folder = temporaryFolder();
    for (const [strategy, lines] of Object.entries(outputs)) {
      for (const seed of [1, 2]) {
        const waits = [{ k: 3, outputs: many(lines), bleu: 0 }];
        makeTranslation(join(folder, `${strategy}-${seed}`), { strategy, seed, waits });
      }
    }
    const [data] = groupRuns(findRuns(folder).runs);
    const decoding = commonDecoding(data)!;
    return (strategy: string) => {
      const { runs } = data.settings.find((setting: Setting) => setting.strategy === strategy)!;
      return runs.map((run) => ({ run, figures: translationOf(run, decoding, 3)! }));
    };
  }

  it('sees that perfect translations are better than words in the wrong order', () => {
    const of = translated({ fixed: spoiled, learned: REFERENCES });
    expect(bleuTest(of('learned'), of('fixed'), new SeriesReader())).toBeLessThan(0.01);
  });

  it('gives an interval that is exact where every sentence is the same', () => {
    const of = translated({ fixed: spoiled, learned: REFERENCES });
    // Perfect translations have BLEU 100 in whatever sample.
    for (const end of bleuInterval(of('learned'), new SeriesReader())) expect(end).toBeCloseTo(100, 9);
    const [low, high] = bleuInterval(of('fixed'), new SeriesReader());
    expect(low).toBeLessThan(high);
    expect(high).toBeLessThan(100);
  });

  it('is about the mean of the seeds, however different they are in length', () => {
    const folder = temporaryFolder();
    // One seed is right; the other says everything three times. Counted as one corpus they would score far below 60.
    const seeds = [REFERENCES, REFERENCES.map((line) => `${line} ${line} ${line}`)];
    for (const [seed, outputs] of seeds.entries()) {
      makeTranslation(join(folder, `s${seed}`), { strategy: 'fixed', seed, waits: [{ k: 1, outputs, bleu: 0 }] });
    }
    const all = findRuns(folder).runs.map((run) => ({ run, figures: run.evaluations.translations[0] }));
    const [, second] = all;
    const alone = bleuInterval([second], new SeriesReader());
    const both = bleuInterval(all, new SeriesReader());
    // Every resample of the first seed scores 100.
    for (const end of [0, 1]) expect(both[end]).toBeCloseTo((100 + alone[end]) / 2, 9);
  });
});
