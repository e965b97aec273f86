import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { InputError } from '../errors.js';
import { fitting, readJsonFile, writeFileAtomic } from '../files.js';
import type { CheckpointChoice } from './checkpoint.js';
import type { RunInfo } from './folder.js';
import type { WriteFile } from './session.js';

/** JSON has no NaN: a figure that is undefined is written as null. */
export const figure = z
  .number()
  .nullable()
  .transform((value) => value ?? Number.NaN);

const resultSchema = z.object({
  /** Updates made. */
  updates: z.number(),
  /** Whether early stopping ended the training; false in results of earlier versions. */
  stoppedEarly: z.boolean().default(false),
  /** Best validation performance on the main task. */
  best: z.object({ performance: figure, update: z.number() }).nullable(),
  /** Figures of that best model on test data; null if the problem has none. */
  test: z.record(z.string(), figure).nullable(),
});

/** The result of a training: `result.json`. */
export type TrainingResult = Readonly<z.output<typeof resultSchema>>;

/** Undefined if the run ended before its last validation was recorded. */
export function readResult(run: string): TrainingResult | undefined {
  const file = join(run, RESULT);
  return existsSync(file) ? readJsonFile(file, resultSchema) : undefined;
}

/** Whether a run has a result; it is written last. */
export function hasResult(run: string): boolean {
  return existsSync(join(run, RESULT));
}

/** Writes the result of a training into its run folder. */
export function writeResult(write: WriteFile, result: TrainingResult): void {
  write(RESULT, `${JSON.stringify(result, null, 2)}\n`);
}

const RESULT = 'result.json';

/** A validation performance for display. Higher performances are better, so a loss has its sign changed. */
export interface ValidationMeasure {
  /** `validation loss`. */
  readonly name: string;
  readonly better: 'lower' | 'higher';
  /** The figure behind a performance: for −0.0602 the loss 0.0602. */
  shown(performance: number): number;
}

/** A validation measure; `sign` is −1 if `validate` returns it with its sign changed, as for a loss. */
export interface Validation {
  readonly name: string;
  readonly sign: 1 | -1;
}

const recordedMeasure = z
  .object({ name: z.string(), sign: z.union([z.literal(1), z.literal(-1)]) })
  .optional()
  .catch(undefined);

/** What the validation of a run measures: from its folder, or else from its configuration. */
export function validationMeasure(
  config: Readonly<Record<string, unknown>>,
  info: Pick<RunInfo, 'measure'> = {},
): ValidationMeasure {
  const recorded = recordedMeasure.parse(info.measure);
  if (recorded !== undefined) {
    const { name, sign } = recorded;
    const better = sign < 0 ? 'lower' : 'higher';
    return { name: `validation ${name}`, better, shown: (performance) => sign * performance };
  }
  const { problem } = namedMeasure.parse(config);
  const { measure = problem.kind === 'module' ? 'performance' : 'loss' } = problem.validation;
  const name = `validation ${measure}`;
  if (measure === 'loss') return { name, better: 'lower', shown: (performance) => -performance };
  return { name, better: 'higher', shown: (performance) => performance };
}

const namedMeasure = z.looseObject({
  problem: z
    .looseObject({ kind: z.unknown(), validation: z.looseObject({ measure: z.string().optional() }).catch({}) })
    .catch({ kind: 'module', validation: {} }),
});

/** The data that an evaluation was made on: `data` in `scores.json`. */
const evaluatedDataSchema = z.object({
  /** As the configuration or `--data` names it. */
  name: z.string(),
  /** Identifies the data regardless of their location: figures are compared only if it is the same. */
  digest: z.string(),
  /** Whether they are the data of the run's own configuration. */
  own: z.boolean(),
});

/** The data that an evaluation was made on. */
export type EvaluatedData = z.output<typeof evaluatedDataSchema>;

/** Missing in evaluations of earlier versions. */
const data = evaluatedDataSchema.optional();

const range = z.tuple([z.string(), z.string()]);

const risk = z.object({ annualReturn: figure, informationRatio: figure, maxDrawdown: figure });

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
    /** Days from a forecast to its trade; undefined in old evaluations, which always traded a day later. */
    delay: z.number().optional(),
    /** Price of the trades and how many stocks are held and replaced; undefined in evaluations of earlier versions. */
    price: z.enum(['open', 'close']).optional(),
    settings: z.object({ top: z.number(), drop: z.number(), longShort: z.boolean() }).optional(),
    benchmark: z.string(),
    portfolio: risk,
    market: risk,
    excess: risk,
    excessAfterCosts: risk,
    turnover: figure,
    /** Share of the portfolio that is invested; undefined in evaluations by earlier versions, as is the next. */
    exposure: figure.optional(),
    /** Money that could have been traded this way; null if unknown. */
    capacity: z.number().nullable().optional(),
  }),
  /** Of a walk-forward: its windows, with the figures of each window's model on its days. */
  windows: z
    .array(z.object({ train: range, validation: range, test: range, days: z.number(), RankIC: figure, IC: figure }))
    .optional(),
});

const latency = z
  .object({ AP: figure, AL: figure, LAAL: figure, DAL: figure, YAAL: z.number().nullable().default(null) })
  .nullable();

const translationScores = z.object({
  split: z.string(),
  data,
  /** Of wait-k; `full` reads the whole sentence first, null is another policy. */
  k: z.union([z.number(), z.literal('full')]).nullable(),
  /** As `--policy` takes it. */
  policy: z.string().optional(),
  /** Additional runs whose models were used. */
  models: z.array(z.string()).default([]),
  beam: z.number(),
  earlyEnd: z.enum(['allow', 'block']),
  lengthPenalty: z.number().default(1),
  speculate: z.number().default(0),
  /** Which parameters: of the best model, the latest or the mean of the last few. */
  checkpoint: z.string().default('best'),
  sentences: z.number(),
  bleu: figure,
  sacrebleu: figure,
  signature: z.string(),
  chrf: figure,
  lengthRatio: figure,
  endedEarly: z.number(),
  /** Unit of SimulEval's latency. */
  unit: z.enum(['word', 'char']).default('word'),
  latency: z.object({ stacl: latency, simuleval: latency }),
  speed: figure,
});

/** What `tcts evaluate` wrote about a forecast on one part of the data. */
export type SavedForecastFigures = z.output<typeof forecastScores> & { readonly folder: string };

/** What `tcts evaluate` wrote about a translation under one policy. */
export type PolicyFigures = z.output<typeof translationScores> & { readonly folder: string };

/** What `tcts evaluate` wrote about a translation with one wait. */
export type TranslationFigures = PolicyFigures & { readonly k: number };

/** Everything below `evaluation/` of a run folder. */
export interface Evaluations {
  readonly forecasts: readonly SavedForecastFigures[];
  readonly translations: readonly TranslationFigures[];
  /** Translations under another policy than wait-k. */
  readonly policies: readonly PolicyFigures[];
}

/** The figures of all evaluations of a run. */
export function readEvaluations(run: string): Evaluations {
  const all = evaluationFolders(run).map(readScores);
  const translations = all.filter((one): one is PolicyFigures => 'k' in one);
  return {
    forecasts: all.filter((one): one is SavedForecastFigures => !('k' in one)),
    translations: translations.filter((one): one is TranslationFigures => typeof one.k === 'number'),
    policies: translations.filter(({ k }) => typeof k !== 'number'),
  };
}

/** Folders of the evaluations that have ended. */
export function evaluationFolders(run: string): string[] {
  const folder = join(run, EVALUATION);
  const names = existsSync(folder) ? readdirSync(folder).sort() : [];
  return names.map((name) => join(folder, name)).filter((path) => existsSync(scoresFile(path)));
}

/** The file with the figures of an evaluation. */
export function scoresFile(evaluation: string): string {
  return join(evaluation, SCORES);
}

/** Writes the figures of an evaluation, as `readScores` and `readEvaluatedData` read them. */
export function writeScores(evaluation: string, figures: object): void {
  writeFileAtomic(scoresFile(evaluation), `${JSON.stringify(figures, null, 2)}\n`);
}

/** The data that an evaluation was made on; undefined if it does not exist or does not say. */
export function readEvaluatedData(evaluation: string): EvaluatedData | undefined {
  const file = scoresFile(evaluation);
  return existsSync(file)
    ? readJsonFile(file, z.looseObject({ data: evaluatedDataSchema.optional() })).data
    : undefined;
}

/** The `scores.json` of an evaluation. */
export function readScores(folder: string): SavedForecastFigures | PolicyFigures {
  const file = scoresFile(folder);
  const content = readJsonFile(file, z.looseObject({}));
  return 'k' in content
    ? { ...fitting(content, translationScores, file), folder }
    : { ...fitting(content, forecastScores, file), folder };
}

const part = z.object({ samples: z.number(), days: z.number(), first: z.string(), last: z.string() });

const dataSummary = z.looseObject({
  panel: z.object({ stocks: z.number(), days: z.number() }).optional(),
  /** Absent if the run consists of others, each with its own parts. */
  parts: z.object({ train: part, validation: part, test: part }).optional(),
});

/** What a run records about its data, as far as others read it. */
export type DataSummary = z.output<typeof dataSummary>;

/** Writes a summary of the training data: sizes and oddities. */
export function saveDataSummary(run: string, summary: object): void {
  writeFileAtomic(join(run, DATA), `${JSON.stringify(summary, null, 1)}\n`);
}

/** What `saveDataSummary` wrote; undefined if there is nothing. */
export function readDataSummary(run: string): DataSummary | undefined {
  const file = join(run, DATA);
  return existsSync(file) ? readJsonFile(file, dataSummary) : undefined;
}

const DATA = 'data.json';

/** Where an evaluation is stored: other data never replace the run's own. */
export function evaluationFolder(run: string, name: string, { name: data, digest, own }: EvaluatedData): string {
  const slug = basename(data)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 40);
  return join(run, EVALUATION, own ? name : `${name}-on-${slug}-${digest.slice(0, 8)}`);
}

/** The loss of a run on a split under wait-k, with the parameters of a checkpoint. */
export interface WaitLossPlace {
  readonly run: string;
  readonly split: string;
  readonly k: number;
  /** Default `best`. */
  readonly checkpoint?: CheckpointChoice;
}

/** Where `tcts evaluate --loss` stores it. */
export function waitLossFile({ run, split, k, checkpoint = 'best' }: WaitLossPlace): string {
  const which = checkpoint === 'best' ? '' : `-${checkpoint.replace(':', '-')}`;
  return join(run, EVALUATION, `${split}-wait-${k}-loss${which}.json`);
}

/** What `tcts evaluate --loss` has stored: −log P per target token, in nats, and what a run is validated by. */
export function readWaitLoss(place: WaitLossPlace): { plain: number; performance: number } {
  const file = waitLossFile(place);
  const content = existsSync(file) ? readJsonFile(file, z.looseObject({})) : {};
  const number = (key: string): number => {
    if (typeof content[key] === 'number') return content[key];
    throw new InputError('expected a number', { file, key });
  };
  return { plain: number('plain'), performance: number('performance') };
}

/** The best validation performance of a finished run on its main task. */
export function readBestPerformance(run: string): number {
  const performance = readResult(run)?.best?.performance ?? Number.NaN;
  if (!Number.isNaN(performance)) return performance;
  throw new InputError('expected a number to choose by', { file: join(run, RESULT), key: 'best.performance' });
}

const EVALUATION = 'evaluation';
const SCORES = 'scores.json';

/** The first 16 digits of the SHA-256 of all pieces, in their order. */
export function dataDigest(pieces: Iterable<string | Uint8Array>): string {
  const hash = createHash('sha256');
  for (const piece of pieces) {
    // With its length, so that moving a boundary changes the digest.
    hash.update(`${piece.length} `).update(piece);
  }
  return hash.digest('hex').slice(0, 16);
}

/** `corpora/wmt15 (not the run's own)`. */
export function evaluatedDataInWords({ name, own }: EvaluatedData): string {
  return own ? name : `${name} (not the run's own)`;
}

/** The name of the `problem.data` of a configuration; `madeUp` names data that are generated from a seed. */
export function dataName(
  data: unknown,
  madeUp: (data: Readonly<Record<string, unknown>>) => string | undefined = () => undefined,
): string {
  if (typeof data === 'string') return data;
  const values = z.looseObject({}).catch({}).parse(data);
  const { folder, path, market, seed } = values;
  const found = [folder, path].find((name) => typeof name === 'string');
  if (found !== undefined) return typeof market === 'string' ? `${found}, ${market}` : String(found);
  const name = madeUp(values);
  return name === undefined ? 'its own data' : `${name}, seed ${String(seed ?? 1)}`;
}
