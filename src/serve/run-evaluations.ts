import { join } from 'node:path';
import { z } from 'zod';
import { InputError } from '../errors.js';
import { readJsonFile } from '../json-file.js';
import { runFile, subfolders } from './run-folders.js';

/** One point of a latency–quality curve. */
export interface TranslationPoint {
  /** The policy; the folder of the evaluation where it does not say. */
  readonly name: string;
  readonly split: string;
  /** BLEU of the tokenised text. */
  readonly bleu: number;
  /** In tokens, against the length of the output. */
  readonly AL: number;
  readonly AP: number;
}

/** Figures of a forecast on one part of the data. */
export interface ForecastFigures {
  readonly split: string;
  readonly figures: Readonly<Record<string, number>>;
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
  for (const name of subfolders(join(run, 'evaluation'))) {
    const file = runFile(run, 'evaluation', name, 'scores.json');
    if (file === undefined) continue;
    try {
      const scores = readJsonFile(file, scoresSchema);
      if (isTranslation(scores)) {
        const { split, bleu, latency, policy = name } = scores;
        if (latency.stacl !== null)
          translation.push({ name: policy, split, bleu, AL: latency.stacl.AL, AP: latency.stacl.AP });
      } else {
        const { split, scores: own, backtest } = scores;
        forecast.push({ split, figures: { ...own, ...(backtest && annual(backtest)) } });
      }
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      problems.push(error.message);
    }
  }
  return { translation, forecast, problems };
}

const risk = z.looseObject({ annualReturn: z.number(), informationRatio: z.number() });

const translationScores = z.looseObject({
  split: z.string(),
  policy: z.string().optional(),
  bleu: z.number(),
  latency: z.looseObject({ stacl: z.looseObject({ AL: z.number(), AP: z.number() }).nullable() }),
});

const forecastScores = z.looseObject({
  split: z.string(),
  scores: z.record(z.string(), z.number()),
  backtest: z.looseObject({ excessAfterCosts: risk }).optional(),
});

const scoresSchema = z.union([translationScores, forecastScores], { error: 'expected the scores of an evaluation' });

function isTranslation(scores: z.output<typeof scoresSchema>): scores is z.output<typeof translationScores> {
  return 'bleu' in scores;
}

function annual({ excessAfterCosts }: { excessAfterCosts: z.output<typeof risk> }): Record<string, number> {
  const { annualReturn, informationRatio } = excessAfterCosts;
  return { 'excess return': annualReturn, 'information ratio': informationRatio };
}
