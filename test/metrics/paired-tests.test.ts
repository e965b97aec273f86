import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bleuMetric, bleuStatistics } from '../../src/metrics/bleu.js';
import { chrfMetric } from '../../src/metrics/chrf.js';
import { approximateRandomisation, Pcg64, pairedBootstrap, resampleScores } from '../../src/metrics/paired-tests.js';
import { measureSegments, type SegmentMetric, type SegmentStatistics } from '../../src/metrics/segments.js';
import { terMetric } from '../../src/metrics/ter.js';
import type { TokenizerName } from '../../src/metrics/tokenizers.js';
import { Random } from '../../src/random.js';
import { describeWithShared, readShared, readSharedJson } from '../shared.js';
import { corpus, ourSignature } from './corpora.js';

interface Result {
  score: number;
  p_value: number | null;
  mean: number;
  ci: number;
}

interface Case {
  id: string;
  n: number;
  tok: TokenizerName;
  names: string[];
  systems?: string[][];
  systems_from_corpora?: string[];
  refs?: string[][];
  refs_from_corpus?: string;
  paired_bs_1000: Record<'BLEU' | 'chrF2', { signature: string; results: Result[] }>;
  paired_ar_2000: Record<'BLEU', { signature: string; results: Result[] }>;
  bleu_segment_stats: number[][][];
  resample_indices: { base64?: string; same_as?: string };
  resample_bleu_first20: number[][];
}

describeWithShared('paired tests agree with sacreBLEU', () => {
  const cases = () => readSharedJson<Case[]>('vectors/bleu/paired_bs.json');

  const texts = (test: Case) => ({
    systems: test.systems ?? test.systems_from_corpora!.map((id) => corpus(id).hyp),
    references: test.refs ?? corpus(test.refs_from_corpus!).refs,
  });

  const matrix = (test: Case) => {
    const holder = test.resample_indices.same_as;
    const owner = holder === undefined ? test : cases().find((other) => other.id === holder)!;
    return Buffer.from(owner.resample_indices.base64!, 'base64');
  };

  const replay = (indices: Uint8Array) => {
    let next = 0;
    return () => indices[next++];
  };

  const measured = (test: Case, metric: SegmentMetric): SegmentStatistics[] => {
    const { systems, references } = texts(test);
    return systems.map((system) => measureSegments(metric, system, references));
  };

  it('in the statistics of every segment', () => {
    for (const test of cases()) {
      const metric = bleuMetric({ tokenize: test.tok });
      for (const [s, statistics] of measured(test, metric).entries()) {
        expect(Array.from(statistics.values), `${test.id} ${test.names[s]}`).toEqual(test.bleu_segment_stats[s].flat());
      }
    }
  });

  it('in the score of each resample, given the drawn segments', () => {
    for (const test of cases()) {
      const metric = bleuMetric({ tokenize: test.tok });
      const scores = resampleScores(metric, measured(test, metric), 20, replay(matrix(test)));
      for (const [s, expected] of test.resample_bleu_first20.entries()) {
        for (const [i, score] of expected.entries()) expect(scores[s][i], test.names[s]).toBeCloseTo(score, 9);
      }
    }
  });

  it('in the p-value, mean and interval of the paired bootstrap', () => {
    let comparisons = 0;
    for (const test of cases()) {
      for (const metric of [bleuMetric({ tokenize: test.tok }), chrfMetric()]) {
        const expected = test.paired_bs_1000[metric.name as 'BLEU' | 'chrF2'];
        const [baseline, ...systems] = measured(test, metric);
        const ours = pairedBootstrap(metric, baseline, systems, 1000, replay(matrix(test)));
        // sacreBLEU divides the resampled counts of chrF in single precision.
        const digits = metric.name === 'BLEU' ? 9 : 4;
        for (const [s, result] of [ours.baseline, ...ours.systems].entries()) {
          const label = `${test.id} ${metric.name} ${test.names[s]}`;
          expect(result.score, label).toBeCloseTo(expected.results[s].score, 9);
          expect(result.mean, label).toBeCloseTo(expected.results[s].mean, digits);
          expect(result.ci, label).toBeCloseTo(expected.results[s].ci, digits);
        }
        for (const [s, { p }] of ours.systems.entries()) {
          expect(p, `${test.id} ${metric.name} ${test.names[s + 1]}`).toBeCloseTo(expected.results[s + 1].p_value!, 12);
          comparisons++;
        }
        const signature = metric.signature(1, { kind: 'bootstrap', samples: 1000, seed: 12345 });
        expect(signature).toBe(ourSignature(expected.signature));
      }
    }
    expect(comparisons).toBe(2 * 12);
  });

  it('in the resamples that its seed draws', () => {
    for (const test of cases()) {
      const random = new Pcg64(12345);
      const indices = matrix(test);
      expect(indices.equals(Uint8Array.from(indices, () => random.int(test.n)))).toBe(true);
    }
  });

  it('in the p-value of approximate randomisation, from the same seed', () => {
    for (const test of cases()) {
      const metric = bleuMetric({ tokenize: test.tok });
      const expected = test.paired_ar_2000.BLEU;
      const [baseline, ...systems] = measured(test, metric);
      for (const [s, system] of systems.entries()) {
        const random = new Pcg64(12345);
        const { p } = approximateRandomisation(metric, baseline, system, 2000, () => random.coin());
        expect(p, `${test.id} ${test.names[s + 1]}`).toBeCloseTo(expected.results[s + 1].p_value!, 12);
      }
      const signature = metric.signature(1, { kind: 'randomisation', samples: 2000, seed: 12345 });
      expect(signature).toBe(ourSignature(expected.signature));
    }
  });

  it('in what its command line prints for BLEU, chrF and TER', () => {
    const output = readShared('vectors/bleu/paired_bs_cli_wmt17.txt');
    const rows = JSON.parse(output.slice(output.indexOf('['))) as Record<string, Result>[];
    const test = cases().find(({ id }) => id === 'wmt17')!;
    for (const metric of [bleuMetric(), chrfMetric(), terMetric()]) {
      const [baseline, ...systems] = measured(test, metric);
      const random = new Pcg64(12345);
      const ours = pairedBootstrap(metric, baseline, systems, 1000, (n) => random.int(n));
      for (const [s, result] of [ours.baseline, ...ours.systems].entries()) {
        const expected = rows[s][metric.name];
        expect(result.score).toBeCloseTo(expected.score, 9);
        expect(result.mean).toBeCloseTo(expected.mean, 4);
        expect(result.ci).toBeCloseTo(expected.ci, 4);
        if ('p' in result) expect(result.p).toBeCloseTo(expected.p_value!, 12);
      }
    }
  });
});

describe('a paired test', () => {
  // Segments of five tokens of which the given number match.
  const system = (matches: readonly number[]): SegmentStatistics => {
    const rows = matches.map((count) =>
      bleuStatistics(
        Array.from({ length: 5 }, (_, i) => (i < count ? `m${i}` : 'x')),
        [Array.from({ length: 5 }, (_, i) => `m${i}`)],
      ),
    );
    return { values: Float64Array.from(rows.flat()), segments: rows.length, width: rows[0].length };
  };
  const metric = bleuMetric();
  const matches = fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 5, maxLength: 20 });

  it('gives identical systems the smallest p-value, 1 / (samples + 1), as sacreBLEU does', () => {
    const a = system([5, 4, 3, 5, 2]);
    const random = new Random(1);
    expect(pairedBootstrap(metric, a, [a], 99, (n) => random.int(n)).systems[0].p).toBe(0.01);
    expect(approximateRandomisation(metric, a, a, 99, () => random.int(2) === 0).p).toBe(0.01);
  });

  it('finds a system that is better on every one of many segments', () => {
    const random = new Random(2);
    const [good, bad] = [system(new Array(60).fill(5)), system(new Array(60).fill(3))];
    expect(pairedBootstrap(metric, bad, [good], 500, (n) => random.int(n)).systems[0].p).toBeLessThan(0.01);
    expect(approximateRandomisation(metric, bad, good, 500, () => random.int(2) === 0).p).toBeLessThan(0.01);
  });

  it('gives the same p-value with the systems exchanged', () => {
    fc.assert(
      fc.property(matches, fc.integer(), (counts, seed) => {
        const a = system(counts);
        const b = system(counts.toReversed().map((count) => Math.min(5, count + 1)));
        const p = (x: SegmentStatistics, y: SegmentStatistics) => {
          const random = new Random(seed);
          return pairedBootstrap(metric, x, [y], 50, (n) => random.int(n)).systems[0].p;
        };
        expect(p(a, b)).toBe(p(b, a));
      }),
      { numRuns: 20 },
    );
  });
});
