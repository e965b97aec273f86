import { groupBy } from '../../groups.js';
import { type Block, type Section, slug } from '../document.js';
import { keyOf, type OtherEvaluation, sourceInWords } from '../evaluated-data.js';
import type { ForecastFigures, PolicyFigures } from '../evaluations.js';
import { taskTitle } from '../settings.js';
import { type Cell, estimate, type Row, type Table, textColumn } from '../table.js';
import { decodingInWords, TRANSLATION_DETAILS } from './translation.js';

/** Evaluations of other data than those of the runs, one table for each: they are compared with nothing else. */
export function otherDataSection(others: readonly OtherEvaluation[]): Section[] {
  if (others.length === 0) return [];
  const tables = [...groupBy(others, ({ data, figures }) => `${isForecast(figures)} ${data.title} ${keyOf(figures)}`)];
  const blocks = tables.map(([, members]): Block => ({ kind: 'table', table: tableOf(members) }));
  return [{ title: 'Evaluations of other data', blocks }];
}

function tableOf(members: readonly OtherEvaluation[]): Table {
  const [{ data, figures }] = members;
  const name = figures.data?.name ?? 'data that were not recorded';
  const measures: readonly Shown[] = isForecast(figures) ? FORECAST_DETAILS : TRANSLATION_DETAILS.map(ofTranslation);
  const rows = [...groupBy(members, (one) => JSON.stringify(headOf(one))).values()].map((seeds): Row => {
    const cells = measures.map(
      ({ digits, of }): Cell => [
        estimate(
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
  readonly of: (figures: ForecastFigures | PolicyFigures) => number;
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

function isForecast(figures: ForecastFigures | PolicyFigures): figures is ForecastFigures {
  return 'quintiles' in figures;
}
