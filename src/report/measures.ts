import { basename } from 'node:path';
import {
  type BlockBootstrap,
  blockBootstrap,
  holm,
  interval,
  mean,
  pairedBootstrap,
  pairedTTest,
  resampleScores,
  type SegmentStatistics,
  wilcoxonSignedRank,
} from '../metrics/index.js';
import { groupBy } from '../metrics/statistics.js';
import { kindOf } from '../problems/index.js';
import { Random } from '../random.js';
import {
  type SavedForecastFigures,
  type TranslationFigures,
  type ValidationMeasure,
  validationMeasure,
} from '../run/index.js';
import { type SeedEstimate, seedEstimate } from './document.js';
import { meanSeries, metricOf, type Series, type SeriesReader } from './reader.js';
import type { ReportedRun } from './runs.js';
import type { DataSet, Setting } from './settings.js';
import type { Comparison } from './view.js';

/** A figure of a run, NaN if it has none. */
export interface Measure {
  readonly name: string;
  readonly digits: number;
  readonly better: 'higher' | 'lower';
  of(run: ReportedRun, setting: Setting): number;
}

/** How translations were decoded; the same for all figures of a table. */
export interface Decoding {
  readonly split: string;
  readonly beam: number;
  readonly earlyEnd: 'allow' | 'block';
  readonly lengthPenalty: number;
  /** Tokens tried further before each is written. */
  readonly speculate: number;
  /** Whose parameters: `best`, `latest` or `average:N`. */
  readonly checkpoint: string;
}

/** Validation performance on the main task, higher is better, by which models are chosen. */
export const performanceMeasure: Measure = {
  name: 'validation performance',
  digits: 4,
  better: 'higher',
  of: ({ result }) => result?.best?.performance ?? Number.NaN,
};

/** What the validation of the runs measures. */
export function measureOf([first]: readonly Setting[]): ValidationMeasure {
  const run = first?.runs[0];
  return validationMeasure(run?.config ?? {}, run?.info);
}

/** The same for display, such as a loss. */
export function shownValidation({ settings }: DataSet): Measure {
  const { name, better, shown } = measureOf(settings);
  return { name, digits: 4, better, of: (run, setting) => shown(performanceMeasure.of(run, setting)) };
}

/** A score of the forecasts of the test part, from the evaluation or, without one, from the end of the training. */
export function forecastMeasure(name: 'RankIC' | 'IC' | 'RankICIR' | 'ICIR' | 'zMSE' | 'MSE', digits = 3): Measure {
  return {
    name: name === 'zMSE' ? 'MSE' : name,
    digits,
    better: name.endsWith('MSE') ? 'lower' : 'higher',
    of: (run) => testForecast(run)?.scores[name] ?? run.result?.test?.[name] ?? Number.NaN,
  };
}

/** The evaluation of a run on the test part. */
export function testForecast(run: ReportedRun): SavedForecastFigures | undefined {
  // Evaluations with a neutralisation other than the run's are in other folders.
  return run.evaluations.forecasts.find(({ split, folder }) => split === 'test' && !isVariant(basename(folder)));
}

function isVariant(folder: string): boolean {
  return folder.startsWith('test-neutral-') || folder === 'test-plain' || folder.startsWith('test-plain-');
}

/** A score of the translations with the wait of the main task. */
export function translationMeasure(name: 'sacrebleu' | 'bleu', decoding: Decoding): Measure {
  return {
    name: name === 'bleu' ? 'BLEU' : 'sacreBLEU',
    digits: 2,
    better: 'higher',
    of: (run, { main }) => translationOf(run, decoding, main)?.[name] ?? Number.NaN,
  };
}

/** The evaluation of a run with a wait. */
export function translationOf(run: ReportedRun, decoding: Decoding, k?: number): TranslationFigures | undefined {
  return run.evaluations.translations.find((one) => one.k === k && isDecodedAs(one, decoding));
}

export function isDecodedAs(one: Decoding, other: Decoding): boolean {
  return keyOf(one) === keyOf(other);
}

function keyOf({ split, beam, earlyEnd, lengthPenalty, speculate, checkpoint }: Decoding): string {
  return `${split} ${beam} ${earlyEnd} ${lengthPenalty} ${speculate} ${checkpoint}`;
}

/** The way of decoding that most evaluations of a data set have in common, on the test split if there are any. */
export function commonDecoding({ settings }: DataSet): Decoding | undefined {
  const all = settings.flatMap(({ runs }) => runs.flatMap(({ evaluations }) => evaluations.translations));
  const test = all.filter(({ split }) => split === 'test');
  const ways = groupBy(test.length > 0 ? test : all, keyOf);
  const [most] = [...ways.values()].sort((a, b) => b.length - a.length);
  return most?.[0];
}

/** The measure over the seeds of a setting. */
export function estimateOf(setting: Setting, measure: Measure): SeedEstimate | undefined {
  return seedEstimate(
    setting.runs.map((run) => measure.of(run, setting)),
    measure.digits,
  );
}

/** The measure of each seed of a setting; of runs with one seed, the last. */
export function bySeed(setting: Setting, measure: Measure): Map<number, number> {
  const values = setting.runs.map((run) => [run.info.seed, measure.of(run, setting)] as const);
  return new Map(values.filter(([, value]) => Number.isFinite(value)));
}

/** The headline figure: RankIC, sacreBLEU, or the validation performance on the main task. */
export function headline(data: DataSet): Measure {
  const evaluations = kindOf(data)?.evaluations;
  if (evaluations === 'forecasts') return forecastMeasure('RankIC');
  const decoding = evaluations === 'translations' ? commonDecoding(data) : undefined;
  return decoding === undefined ? shownValidation(data) : translationMeasure('sacrebleu', decoding);
}

/** The tests of a comparison; a p-value is NaN if there is nothing to test with. */
export interface Tested extends Comparison {
  /** Mean difference over the seeds that both have. */
  readonly difference: number;
  /** 95 % interval of that difference; NaN bounds for fewer than two seeds. */
  readonly low: number;
  readonly high: number;
  /** Seeds that both have. */
  readonly seeds: number;
  readonly tTest: number;
  readonly wilcoxon: number;
  /** Of the bootstrap over test items: sentences or days. */
  readonly items: number;
}

/**
 * Tests comparisons over seeds and over test items, each kind of p-value corrected for the number of comparisons with
 * Holm's method.
 *
 * @param looks how many comparisons each stands for: its p-values are multiplied by that first (Bonferroni). Default 1
 */
export function testComparisons(
  pairs: readonly Comparison[],
  measure: Measure,
  itemTest: (pair: Comparison) => number,
  looks: (pair: Comparison) => number = () => 1,
): Tested[] {
  const raw = pairs.map((pair) => {
    const { tTest, wilcoxon, ...found } = overSeeds(pair, measure);
    const times = (p: number): number => Math.min(1, p * looks(pair));
    return { ...pair, ...found, tTest: times(tTest), wilcoxon: times(wilcoxon), items: times(itemTest(pair)) };
  });
  const corrected = (['tTest', 'wilcoxon', 'items'] as const).map((kind) => holmOfKnown(raw.map((one) => one[kind])));
  return raw.map((one, i) => ({ ...one, tTest: corrected[0][i], wilcoxon: corrected[1][i], items: corrected[2][i] }));
}

/**
 * Number of comparisons behind one on validation data: every score that the settings of one side were
 * chosen by, times those of the other. On test data, which decided nothing, it is one.
 */
export function looksAt({ candidate, baseline }: Comparison): number {
  const [own, other] = [candidate, baseline].map(({ runs }) =>
    Math.max(1, ...runs.map(({ sweep }) => sweep?.looks ?? 1)),
  );
  return own * other;
}

/** Block bootstrap of the daily differences of RankIC, each day's value averaged over the seeds. */
export function rankICTest({ candidate, baseline }: Comparison, reader: SeriesReader): BlockBootstrap | undefined {
  const [own, other] = [candidate, baseline].map(({ runs }) => meanSeries(dailySeries(runs, reader), 'RankIC'));
  const theirs = new Map(other.dates.map((date, i) => [date, other.values[i]]));
  const differences = own.dates.flatMap((date, i) => own.values[i] - (theirs.get(date) ?? Number.NaN));
  if (differences.filter((value) => !Number.isNaN(value)).length < 2) return undefined;
  const random = new Random(1).fork('block bootstrap');
  return blockBootstrap(differences, (n) => random.int(n));
}

/** The daily scores of the runs that have them. */
export function dailySeries(runs: readonly ReportedRun[], reader: Pick<SeriesReader, 'series'>): Series[] {
  return runs.flatMap((run) => {
    const evaluation = testForecast(run);
    return (evaluation && reader.series(run, evaluation, 'daily')) ?? [];
  });
}

/** A run with the evaluation that counts. */
export interface Translated {
  readonly run: ReportedRun;
  readonly figures: TranslationFigures;
}

/**
 * Paired bootstrap over sentences. The outputs of all seeds for a sentence are drawn together: their statistics are
 * added up, so that each resample scores one corpus with as many translations of a sentence as there are seeds.
 */
export function bleuTest(own: readonly Translated[], other: readonly Translated[], reader: SeriesReader): number {
  const [a, b] = [own, other].map((all) => pooledSegments(all, reader));
  if (a === undefined || b === undefined || a.segments !== b.segments) return Number.NaN;
  const [{ figures }] = own;
  const random = new Random(1).fork('paired bootstrap');
  const metric = metricOf(figures.signature, figures.folder);
  return pairedBootstrap(metric, b, [a], SAMPLES, (n) => random.int(n)).systems[0].p;
}

/**
 * 95 % percentile interval of BLEU, averaged over the seeds, under resampling of the sentences, those of all seeds drawn
 * together; at most three seeds, since more hardly change it and take long to read.
 */
export function bleuInterval(all: readonly Translated[], reader: SeriesReader): [number, number] {
  const seeds = all.slice(0, INTERVAL_SEEDS).flatMap(({ run, figures }) => reader.segments(run, figures) ?? []);
  const isAlike = seeds.every(({ segments }) => segments > 0 && segments === seeds[0].segments);
  if (seeds.length === 0 || !isAlike) return [Number.NaN, Number.NaN];
  const [{ figures }] = all;
  const random = new Random(1).fork('interval');
  const metric = metricOf(figures.signature, figures.folder);
  const scores = resampleScores(metric, seeds, INTERVAL_SAMPLES, (n) => random.int(n));
  const sorted = scores[0].map((_, sample) => mean(scores.map((own) => own[sample]))).toSorted();
  const tail = Math.floor(INTERVAL_SAMPLES / 40);
  return [sorted[tail], sorted[INTERVAL_SAMPLES - tail - 1]];
}

/** Resamples of sentences for a p-value, as many as sacreBLEU draws. */
const SAMPLES = 1000;
const INTERVAL_SAMPLES = 400;
const INTERVAL_SEEDS = 3;

function pooledSegments(all: readonly Translated[], reader: SeriesReader): SegmentStatistics | undefined {
  const read = all.flatMap(({ run, figures }) => reader.segments(run, figures) ?? []);
  if (read.length === 0 || read.some(({ segments }) => segments !== read[0].segments)) return undefined;
  const values = new Float64Array(read[0].values.length);
  for (const one of read) for (let i = 0; i < values.length; i++) values[i] += one.values[i];
  return { ...read[0], values };
}

function overSeeds({ candidate, baseline }: Comparison, measure: Measure) {
  const [own, other] = [bySeed(candidate, measure), bySeed(baseline, measure)];
  const seeds = [...own.keys()].filter((seed) => other.has(seed));
  const [a, b] = [own, other].map((values) => seeds.map((seed) => values.get(seed)!));
  const { mean: difference, low, high } = interval(a.map((value, i) => value - b[i]));
  const found = { difference, low, high, seeds: seeds.length };
  if (seeds.length < 2) return { ...found, tTest: Number.NaN, wilcoxon: Number.NaN };
  return { ...found, tTest: pairedTTest(a, b).p, wilcoxon: wilcoxonSignedRank(a, b).p };
}

/** Comparisons that could not be tested do not count. */
function holmOfKnown(pValues: readonly number[]): number[] {
  const known = pValues.flatMap((p, i) => (Number.isNaN(p) ? [] : [i]));
  const corrected = holm(known.map((i) => pValues[i]));
  const all = pValues.map(() => Number.NaN);
  for (const [place, i] of known.entries()) all[i] = corrected[place];
  return all;
}
