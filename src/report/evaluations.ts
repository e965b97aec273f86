import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { fitting, readJsonFile } from '../json-file.js';
import { evaluatedDataSchema } from '../run/index.js';

/** JSON has no NaN: a figure that is undefined was written as null. */
export const figure = z
  .number()
  .nullable()
  .transform((value) => value ?? Number.NaN);

const risk = z.object({ annualReturn: figure, informationRatio: figure, maxDrawdown: figure });

/** Missing in evaluations of earlier versions. */
const data = evaluatedDataSchema.optional();

const forecastScores = z.object({
  split: z.string(),
  data,
  samples: z.number(),
  scores: z.object({
    IC: figure,
    ICIR: figure,
    RankIC: figure,
    RankICIR: figure,
    MSE: figure,
    zMSE: figure,
    days: z.number(),
  }),
  quintiles: z.array(figure),
  backtest: z.object({
    /** Days from a forecast to its trade; undefined in evaluations that traded a day later, whatever was forecast. */
    delay: z.number().optional(),
    benchmark: z.string(),
    portfolio: risk,
    market: risk,
    excess: risk,
    excessAfterCosts: risk,
    turnover: figure,
  }),
});

const latency = z.object({ AP: figure, AL: figure, LAAL: figure, DAL: figure }).nullable();

const translationScores = z.object({
  split: z.string(),
  data,
  /** Of wait-k; `full` reads the whole sentence first, null is another policy. */
  k: z.union([z.number(), z.literal('full')]).nullable(),
  /** As `--policy` takes it. */
  policy: z.string().optional(),
  /** Further runs whose models took part. */
  models: z.array(z.string()).default([]),
  beam: z.number(),
  earlyEnd: z.enum(['allow', 'block']),
  /** Whose parameters: of the best model, the latest or the mean of the last few. */
  checkpoint: z.string().default('best'),
  sentences: z.number(),
  bleu: figure,
  sacrebleu: figure,
  signature: z.string(),
  chrf: figure,
  lengthRatio: figure,
  endedEarly: z.number(),
  /** What SimulEval's latency counts. */
  unit: z.enum(['word', 'char']).default('word'),
  latency: z.object({ stacl: latency, simuleval: latency }),
  speed: figure,
});

/** What `tcts evaluate` left of a forecast on one part of the data. */
export type ForecastFigures = z.output<typeof forecastScores> & { readonly folder: string };

/** What `tcts evaluate` left of a translation under one policy. */
export type PolicyFigures = z.output<typeof translationScores> & { readonly folder: string };

/** What `tcts evaluate` left of a translation with one wait. */
export type TranslationFigures = PolicyFigures & { readonly k: number };

/** Everything below `evaluation/` of a run folder. */
export interface Evaluations {
  readonly forecasts: readonly ForecastFigures[];
  readonly translations: readonly TranslationFigures[];
  /** Translations under another policy than wait-k. */
  readonly policies: readonly PolicyFigures[];
}

export function readEvaluations(run: string): Evaluations {
  const folder = join(run, 'evaluation');
  const forecasts: ForecastFigures[] = [];
  const translations: TranslationFigures[] = [];
  const policies: PolicyFigures[] = [];
  for (const name of existsSync(folder) ? readdirSync(folder).sort() : []) {
    const file = join(folder, name, 'scores.json');
    // Without it the evaluation has not ended.
    if (!existsSync(file)) continue;
    const at = { folder: join(folder, name) };
    const content = readJsonFile(file, z.looseObject({}));
    if (!('k' in content)) {
      forecasts.push({ ...fitting(content, forecastScores, file), ...at });
      continue;
    }
    const figures = fitting(content, translationScores, file);
    const { k } = figures;
    if (typeof k === 'number') translations.push({ ...figures, k, ...at });
    else policies.push({ ...figures, ...at });
  }
  return { forecasts, translations, policies };
}
