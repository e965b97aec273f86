import { basename } from 'node:path';
import { groupBy } from '../groups.js';
import type { EvaluatedData } from '../run/index.js';
import type { Evaluations, ForecastFigures, PolicyFigures } from './evaluations.js';
import { corpusOf, type DataSet, type Setting } from './settings.js';

type Evaluated = ForecastFigures | PolicyFigures;

/** An evaluation that is not of the data that the others of its data set are of. */
export interface OtherEvaluation {
  readonly data: DataSet;
  readonly setting: Setting;
  readonly figures: Evaluated;
}

export interface SeparatedData {
  /** With the evaluations that can be compared alone. */
  readonly sets: readonly DataSet[];
  readonly others: readonly OtherEvaluation[];
}

/**
 * Keeps figures of different data apart. Of each split, the evaluations on the data that most runs' own evaluations are
 * of stay with their runs; all others, as those of `tcts evaluate --data`, are taken out. Data sets of one source are
 * looked at together, as they meet in the figures of policies.
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
          // What was measured on the run's own data as well, a copy of them gives again.
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

/** Which data the figures of a data set are of, as a sentence; empty where nothing was evaluated. */
export function dataInWords(data: DataSet): string {
  const all = [data].flatMap(evaluationsOf);
  if (all.length === 0) return '';
  const parts = [...groupBy(all, ({ split }) => split)].map(([split, [{ data: of }]]) =>
    of === undefined ? `${split}: not recorded (evaluate again)` : `${split}: ${sourceInWords(of)}`,
  );
  return `Data that the figures are of. ${parts.join('; ')}.`;
}

/** `corpora/wmt15, digest 0123456789abcdef`. */
export function sourceInWords(data: EvaluatedData | undefined): string {
  return data === undefined ? 'not recorded' : `${data.name}, digest ${data.digest}`;
}

/** What tells the data of an evaluation apart. */
export function keyOf({ data }: Evaluated): string {
  return data?.digest ?? 'not recorded';
}

/** By split. */
function commonData(sets: readonly DataSet[]): Map<string, string> {
  // Evaluations of earlier versions do not say what they are of: they pass for the run's own, and are not mixed with others.
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
