import { basename } from 'node:path';
import { groupBy } from '../../metrics/statistics.js';
import type { EvaluatedData, Evaluations, PolicyFigures, SavedForecastFigures } from '../../run/index.js';
import {
  type Block,
  type Cell,
  type Row,
  type Section,
  seedEstimate,
  slug,
  type Table,
  textColumn,
} from '../document.js';
import { corpusOf, type DataSet, type Setting, taskTitle } from '../settings.js';
import { decodingInWords, TRANSLATION_DETAILS } from './translation.js';

/** Evaluations on other data than the runs' own, one table for each data set. They are not compared with the others. */
export function otherDataSection(others: readonly OtherEvaluation[]): Section[] {
  if (others.length === 0) return [];
  const tables = [...groupBy(others, ({ data, figures }) => `${isForecast(figures)} ${data.title} ${keyOf(figures)}`)];
  const blocks = tables.map(([, members]): Block => ({ kind: 'table', table: tableOf(members) }));
  return [{ title: 'Evaluations of other data', blocks }];
}

function tableOf(members: readonly OtherEvaluation[]): Table {
  const [{ data, figures }] = members;
  const name = figures.data?.name ?? 'unrecorded data';
  const measures: readonly Shown[] = isForecast(figures) ? FORECAST_DETAILS : TRANSLATION_DETAILS.map(ofTranslation);
  const rows = [...groupBy(members, (one) => JSON.stringify(headOf(one))).values()].map((seeds): Row => {
    const cells = measures.map(
      ({ digits, of }): Cell => [
        seedEstimate(
          seeds.map((one) => of(one.figures)),
          digits,
        ),
      ],
    );
    return { cells: [...headOf(seeds[0]), ...cells] };
  });
  return {
    id: `${slug(data.title)}-on-${slug(name)}`,
    title: `${data.title}: evaluated on ${name}`,
    caption:
      `Data: ${sourceInWords(figures.data)}. These are not the data that the other figures of ${data.title} are of ` +
      '(tcts evaluate --data, or data that have changed since): they are in no other table and no figure. ' +
      'Mean ± standard deviation over the seeds.',
    columns: [
      ...['Method', 'Main task', 'evaluated with'].map(textColumn),
      ...measures.map((one) => ({ title: one.name, measures: [one.name] })),
    ],
    rows,
  };
}

interface Shown {
  readonly name: string;
  readonly digits: number;
  readonly of: (figures: SavedForecastFigures | PolicyFigures) => number;
}

const FORECAST_DETAILS: readonly Shown[] = (['RankIC', 'IC', 'RankICIR', 'ICIR', 'zMSE'] as const).map((name) => ({
  name: name === 'zMSE' ? 'MSE' : name,
  digits: 3,
  of: (figures) => (isForecast(figures) ? figures.scores[name] : Number.NaN),
}));

function ofTranslation({ name, digits, of }: (typeof TRANSLATION_DETAILS)[number]): Shown {
  return { name, digits, of: (figures) => (isForecast(figures) ? Number.NaN : of(figures)) };
}

/** Method, main task and how it was evaluated. */
function headOf({ data, setting, figures }: OtherEvaluation): string[] {
  const how = isForecast(figures)
    ? `${figures.split} part`
    : [figures.policy ?? `wait-k:${figures.k}`, decodingInWords(figures)].join(', ');
  return [setting.label, taskTitle(data.kind, setting.main), how];
}

function isForecast(figures: SavedForecastFigures | PolicyFigures): figures is SavedForecastFigures {
  return 'quintiles' in figures;
}

type Evaluated = SavedForecastFigures | PolicyFigures;

/** An evaluation on other data than the rest of its data set. */
export interface OtherEvaluation {
  readonly data: DataSet;
  readonly setting: Setting;
  readonly figures: Evaluated;
}

export interface SeparatedData {
  /** With only the evaluations that can be compared. */
  readonly sets: readonly DataSet[];
  readonly others: readonly OtherEvaluation[];
}

/**
 * Separates figures on different data. For each split, evaluations on the data that most runs were evaluated on stay
 * with their runs; all others, such as those of `tcts evaluate --data`, are taken out. Data sets of one source are
 * handled together, as the figures of policies combine them.
 */
export function separateData(all: readonly DataSet[]): SeparatedData {
  const others: OtherEvaluation[] = [];
  const common = new Map([...groupBy(all, corpusOf)].map(([corpus, sets]) => [corpus, commonData(sets)]));
  const sets = all.map((data) => {
    const keys = common.get(corpusOf(data))!;
    const settings = data.settings.map((setting) => {
      const kept = <T extends Evaluated>(figures: readonly T[]): T[] =>
        figures.filter((one) => {
          const isCommon = keyOf(one) === keys.get(one.split);
          if (!isCommon) others.push({ data, setting, figures: one });
          // An evaluation on a copy of the run's own data repeats the one on the data themselves.
          const isAgain = (own: T) =>
            own.data?.own === true &&
            keyOf(own) === keyOf(one) &&
            basename(one.folder).startsWith(`${basename(own.folder)}-on-`);
          return isCommon && (one.data?.own !== false || !figures.some(isAgain));
        });
      const runs = setting.runs.map((run) => {
        const { forecasts, translations, policies } = run.evaluations;
        const evaluations: Evaluations = {
          forecasts: kept(forecasts),
          translations: kept(translations),
          policies: kept(policies),
        };
        return { ...run, evaluations };
      });
      return { ...setting, runs };
    });
    return { ...data, settings };
  });
  return { sets, others };
}

/** The data behind the figures of a data set, as a sentence; empty if nothing was evaluated. */
export function dataInWords(data: DataSet): string {
  const all = [data].flatMap(evaluationsOf);
  if (all.length === 0) return '';
  const parts = [...groupBy(all, ({ split }) => split)].map(([split, [{ data: of }]]) =>
    of === undefined ? `${split}: not recorded (evaluate again)` : `${split}: ${sourceInWords(of)}`,
  );
  return `Data behind the figures. ${parts.join('; ')}.`;
}

/** `corpora/wmt15, digest 0123456789abcdef`. */
function sourceInWords(data: EvaluatedData | undefined): string {
  return data === undefined ? 'not recorded' : `${data.name}, digest ${data.digest}`;
}

/** Identifies the data of an evaluation. */
export function keyOf({ data }: Evaluated): string {
  return data?.digest ?? 'not recorded';
}

/** By split. */
function commonData(sets: readonly DataSet[]): Map<string, string> {
  // Evaluations of earlier versions do not name their data: they count as the run's own and are not mixed with others.
  const own = sets.flatMap(evaluationsOf).filter(({ data }) => data?.own !== false);
  return new Map(
    [...groupBy(own, ({ split }) => split)].map(([split, members]) => {
      const [most] = [...groupBy(members, keyOf)].sort(([, a], [, b]) => b.length - a.length);
      return [split, most[0]];
    }),
  );
}

function evaluationsOf({ settings }: DataSet): Evaluated[] {
  return settings.flatMap(({ runs }) =>
    runs.flatMap(({ evaluations: { forecasts, translations, policies } }) => [
      ...forecasts,
      ...translations,
      ...policies,
    ]),
  );
}
