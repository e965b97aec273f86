import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { InputError } from '../errors.js';
import { readJsonFile } from '../json-file.js';
import { type EvaluatedData, evaluatedDataSchema } from '../run/index.js';
import { runFile, subfolders } from './run-folders.js';

/** One point of a latency–quality curve. */
export interface TranslationPoint {
  /** The policy; the folder of the evaluation where it does not say. */
  readonly name: string;
  readonly split: string;
  /** Null in evaluations of earlier versions. */
  readonly data: EvaluatedData | null;
  /** BLEU of the tokenised text. */
  readonly bleu: number;
  /** In tokens, against the length of the output. */
  readonly AL: number;
  readonly AP: number;
}

/** Figures of a forecast on one part of the data. */
export interface ForecastFigures {
  readonly split: string;
  readonly data: EvaluatedData | null;
  /** Null where one is undefined, as a correlation without a spread. */
  readonly figures: Readonly<Record<string, number | null>>;
}

export interface Evaluations {
  readonly translation: readonly TranslationPoint[];
  readonly forecast: readonly ForecastFigures[];
  /** What could not be read. */
  readonly problems: readonly string[];
}

/** What `tcts evaluate` has left in a run folder. */
export function runEvaluations(run: string): Evaluations {
  const translation: TranslationPoint[] = [];
  const forecast: ForecastFigures[] = [];
  const problems: string[] = [];
  const folder = join(run, 'evaluation');
  const isLink = lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  if (isLink) problems.push(`${folder}: it is a link, which is not followed`);
  for (const name of isLink ? [] : subfolders(folder)) {
    const file = runFile(run, 'evaluation', name, 'scores.json');
    if (file === undefined) continue;
    try {
      const scores = readJsonFile(file, scoresSchema);
      if (isTranslation(scores)) {
        const { split, data, bleu, latency, policy = name } = scores;
        const { AL, AP } = latency.stacl ?? { AL: null, AP: null };
        // Of a system that has written nothing there is no point to draw.
        if (bleu !== null && AL !== null && AP !== null) translation.push({ name: policy, split, data, bleu, AL, AP });
      } else {
        const { split, data, scores: own, backtest } = scores;
        forecast.push({ split, data, figures: { ...own, ...(backtest && annual(backtest)) } });
      }
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      problems.push(error.message);
    }
  }
  return { translation, forecast, problems };
}

/** JSON has no NaN: a figure that is undefined was written as null. */
const figure = z.number().nullable();

const data = evaluatedDataSchema.nullable().default(null);

const risk = z.looseObject({ annualReturn: figure, informationRatio: figure });

const translationScores = z.looseObject({
  split: z.string(),
  data,
  policy: z.string().optional(),
  bleu: figure,
  latency: z.looseObject({ stacl: z.looseObject({ AL: figure, AP: figure }).nullable() }),
});

const forecastScores = z.looseObject({
  split: z.string(),
  data,
  scores: z.record(z.string(), figure),
  backtest: z.looseObject({ excessAfterCosts: risk }).optional(),
});

const scoresSchema = z.union([translationScores, forecastScores], { error: 'expected the scores of an evaluation' });

function isTranslation(scores: z.output<typeof scoresSchema>): scores is z.output<typeof translationScores> {
  return 'bleu' in scores;
}

function annual({ excessAfterCosts }: { excessAfterCosts: z.output<typeof risk> }): Record<string, number | null> {
  const { annualReturn, informationRatio } = excessAfterCosts;
  return { 'excess return': annualReturn, 'information ratio': informationRatio };
}
