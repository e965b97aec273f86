import { groupBy } from '../groups.js';
import { type ForecastFigures, type TranslationFigures, validationMeasure } from '../run/index.js';
import type { ReportedRun } from './runs.js';
import type { DataSet, Setting } from './settings.js';
import { type Estimate, estimate } from './table.js';

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

/** How good the main task was on validation data, higher is better: what models are chosen by. */
export const validationPerformance: Measure = {
  name: 'validation performance',
  digits: 4,
  better: 'higher',
  of: ({ result }) => result?.best?.performance ?? Number.NaN,
};

/** The same as people read it, such as a loss. */
export function shownValidation({ settings }: DataSet): Measure {
  const { name, better, shown } = validationMeasure(settings[0]?.runs[0]?.config ?? {});
  return { name, digits: 4, better, of: (run, setting) => shown(validationPerformance.of(run, setting)) };
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
export function testForecast(run: ReportedRun): ForecastFigures | undefined {
  return run.evaluations.forecasts.find(({ split }) => split === 'test');
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
export function estimateOf(setting: Setting, measure: Measure): Estimate | undefined {
  return estimate(
    setting.runs.map((run) => measure.of(run, setting)),
    measure.digits,
  );
}

/** The measure of each seed of a setting; of runs with one seed, the last. */
export function bySeed(setting: Setting, measure: Measure): Map<number, number> {
  const values = setting.runs.map((run) => [run.info.seed, measure.of(run, setting)] as const);
  return new Map(values.filter(([, value]) => Number.isFinite(value)));
}

/** The one figure that stands for all: RankIC, sacreBLEU, or how good the main task was on validation data. */
export function headline(data: DataSet): Measure {
  if (data.kind === 'forecast') return forecastMeasure('RankIC');
  const decoding = data.kind === 'translation' ? commonDecoding(data) : undefined;
  return decoding === undefined ? shownValidation(data) : translationMeasure('sacrebleu', decoding);
}
