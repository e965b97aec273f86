import { checkpointInWords, type PolicyFigures } from '../../run/index.js';
import { bestFixed } from '../../schedule/strategies/best-fixed.js';
import {
  absent,
  type Block,
  type Cell,
  type Section,
  seedEstimate,
  slug,
  type Table,
  textColumn,
} from '../document.js';
import { type BleuLatencyCurve, type BleuLatencyPoint, bleuLatencyFigure } from '../figures/curves.js';
import {
  bleuInterval,
  bleuTest,
  commonDecoding,
  type Decoding,
  isDecodedAs,
  looksAt,
  type Translated,
  testComparisons,
  translationMeasure,
  translationOf,
} from '../measures.js';
import type { SeriesReader } from '../reader.js';
import type { DataSet, Setting } from '../settings.js';
import { type Comparison, comparisons, type ReportView } from '../view.js';
import { OVER_SEEDS, significance, taskRows, undecided } from './results.js';

/** Results of simultaneous translation. */
export function translationSection(view: ReportView): Section {
  const { data, reader, baselines } = view;
  const title = `Translation: ${data.title}`;
  const decoding = commonDecoding(data);
  if (decoding === undefined) {
    const other = data.settings.some(({ runs }) => runs.some(({ evaluations }) => evaluations.policies.length > 0));
    const none = other
      ? 'No run has been evaluated with wait-k; other policies are below.'
      : 'No BLEU and no latency: no run has been evaluated (tcts evaluate RUN --k 1,3,5).';
    return { title, blocks: [absent(none)] };
  }
  const id = slug(data.title);
  const sacreBLEU = translationMeasure('sacrebleu', decoding);
  const blocks: Block[] = [];
  const matched = data.settings.some(({ runs, main }) => runs.some((run) => translationOf(run, decoding, main)));
  if (matched) {
    const pairs = comparisons(data, baselines);
    const sentences = ({ candidate, baseline }: Comparison) =>
      bleuTest(translated(candidate, decoding, candidate.main), translated(baseline, decoding, baseline.main), reader);
    const looks = decoding.split === 'test' ? undefined : looksAt;
    const tested = testComparisons(pairs, sacreBLEU, sentences, looks);
    blocks.push(
      { kind: 'table', table: bleuTable(view, id, decoding, 'sacrebleu', undecided(tested)) },
      { kind: 'table', table: bleuTable(view, id, decoding, 'bleu') },
      significance(data, tested, sacreBLEU, 'sentences', { id: `${id}-significance`, title: 'Significance' }, looks),
    );
  } else {
    blocks.push(absent('No table of results: no run has been evaluated with the wait of its main task.'));
  }
  blocks.push(
    { kind: 'figure', figure: latencyFigure(view, id, decoding) },
    { kind: 'table', table: detailTable(view, id, decoding) },
  );
  return { title, blocks };
}

function bleuTable(
  { data, reader }: ReportView,
  id: string,
  decoding: Decoding,
  name: 'sacrebleu' | 'bleu',
  verdict = '',
): Table {
  const measure = translationMeasure(name, decoding);
  const what =
    name === 'bleu'
      ? 'BLEU of the tokenised text, as multi-bleu.perl has it'
      : `sacreBLEU of the plain text (${signaturesOf(evaluatedAs(data, decoding))})`;
  const starred = data.settings.some(({ strategy }) => strategy === bestFixed.name);
  const caption = [
    `${what}; ${decodingInWords(decoding)}. Each model is decoded with the wait k of its main task.`,
    starred ? 'Behind wait-k*: the wait k* of the training whose models were best on wait-k in validation.' : '',
    `${OVER_SEEDS}${verdict}`,
  ];
  const about = {
    id: name === 'bleu' ? `${id}-multi-bleu` : `${id}-results`,
    title: measure.name,
    caption: caption.filter((sentence) => sentence !== '').join(' '),
  };
  return taskRows(data, measure, about, (setting) => bestTask(setting, reader));
}

/** k*: the task that the best model of each seed was trained on, as `/ 5, 9`. */
function bestTask({ strategy, runs, trainedFor }: Setting, reader: SeriesReader): string | undefined {
  if (strategy !== bestFixed.name) return undefined;
  if (trainedFor !== undefined) return `/ ${trainedFor}`;
  const tasks = runs.flatMap((run) => {
    const episode = reader.episodes(run)?.best;
    const [task] = Object.entries(episode?.distribution ?? {}).find(([, share]) => share === 1) ?? [];
    return task === undefined ? [] : [task.replace('wait-', '')];
  });
  return tasks.length === 0 ? undefined : `/ ${[...new Set(tasks)].join(', ')}`;
}

function latencyFigure({ data, methods, reader, leftOut }: ReportView, id: string, decoding: Decoding) {
  const curves = methods.flatMap(({ label, style }): BleuLatencyCurve[] => {
    const settings = data.settings.filter((setting) => setting.label === label);
    const points = waitPoints(settings, decoding).map(({ all, ...point }) => {
      const [low, high] = bleuInterval(all, reader);
      return { ...point, low, high };
    });
    return points.length === 0 ? [] : [{ label, style, points }];
  });
  const caption = [
    `sacreBLEU against average proportion (AP) and average lagging (AL), both of subwords and the length of the output; ${decodingInWords(decoding)}.`,
    'A method with several main tasks is drawn through its models, each decoded with its own k; a method with one main task as that model decoded with several k.',
    'Points: means over the seeds. Bands: 95 % of the means over three seeds at most in 400 bootstrap resamples of the test sentences.',
    leftOut,
  ];
  return bleuLatencyFigure(curves, {
    id: `${id}-bleu-latency`,
    title: `Quality against latency, ${data.title}`,
    caption: caption.filter((sentence) => sentence !== '').join(' '),
  });
}

/**
 * The curve of a method: trained for several main tasks, it goes through them, each model decoded with its own k, as in
 * the paper; trained for a single one, it is that model decoded with several k.
 */
export function waitPoints(
  settings: readonly Setting[],
  decoding: Decoding,
): (Omit<BleuLatencyPoint, 'low' | 'high'> & { all: Translated[] })[] {
  const single = settings.length === 1 && settings[0].trainedFor === undefined;
  return settings
    .flatMap((setting) =>
      waitsOf(setting, decoding)
        .filter((k) => single || k === setting.main)
        .map((k) => ({ setting, k })),
    )
    .sort((a, b) => a.k - b.k)
    .map(({ setting, k }) => {
      const all = translated(setting, decoding, k);
      return { k, ...meansOf(all.map(({ figures }) => figures)), all };
    });
}

/** The point of a setting in a figure of quality and latency. */
export function meansOf(figures: readonly PolicyFigures[]): Pick<BleuLatencyPoint, 'AP' | 'AL' | 'bleu'> {
  const mean = (of: (one: PolicyFigures) => number) => seedEstimate(figures.map(of), 0)?.mean ?? Number.NaN;
  return { AP: mean(AP), AL: mean(AL), bleu: mean(({ sacrebleu }) => sacrebleu) };
}

/** All figures of all evaluations. */
function detailTable({ data }: ReportView, id: string, decoding: Decoding): Table {
  const rows = trainedSettings(data).flatMap((setting) =>
    waitsOf(setting, decoding).map((k) => {
      const all = translated(setting, decoding, k);
      const cells = TRANSLATION_DETAILS.map(
        ({ digits, of }): Cell => [
          seedEstimate(
            all.map(({ figures }) => of(figures)),
            digits,
          ),
        ],
      );
      return { cells: [setting.label, String(setting.main ?? '–'), String(k), ...cells] };
    }),
  );
  const columns = TRANSLATION_DETAILS.map(({ name }) => ({ title: name, measures: [name] }));
  const figures = evaluatedAs(data, decoding);
  return {
    id: `${id}-details`,
    title: 'All figures',
    caption: `Decoding: ${decodingInWords(decoding)}. sacreBLEU: ${signaturesOf(figures)}. AP and AL: of subwords and the length of the output; with SimulEval: of ${unitsOf(figures)} and the length of the reference. Length: words of the output over words of the references. Mean ± standard deviation over the seeds.`,
    columns: [textColumn('Method'), textColumn('trained for'), textColumn('k'), ...columns],
    rows,
  };
}

const AP = ({ latency }: PolicyFigures): number => latency.stacl?.AP ?? Number.NaN;
const AL = ({ latency }: PolicyFigures): number => latency.stacl?.AL ?? Number.NaN;

export const TRANSLATION_DETAILS: readonly { name: string; digits: number; of: (figures: PolicyFigures) => number }[] =
  [
    { name: 'sacreBLEU', digits: 2, of: ({ sacrebleu }) => sacrebleu },
    { name: 'BLEU', digits: 2, of: ({ bleu }) => bleu },
    { name: 'chrF', digits: 2, of: ({ chrf }) => chrf },
    { name: 'AP', digits: 3, of: AP },
    { name: 'AL', digits: 2, of: AL },
    { name: 'AL (SimulEval)', digits: 2, of: ({ latency }) => latency.simuleval?.AL ?? Number.NaN },
    { name: 'LAAL (SimulEval)', digits: 2, of: ({ latency }) => latency.simuleval?.LAAL ?? Number.NaN },
    { name: 'YAAL (SimulEval)', digits: 2, of: ({ latency }) => latency.simuleval?.YAAL ?? Number.NaN },
    { name: 'length', digits: 3, of: ({ lengthRatio }) => lengthRatio },
    { name: 'ended early', digits: 0, of: ({ endedEarly }) => endedEarly },
    { name: 'sentences/s', digits: 1, of: ({ speed }) => speed },
  ];

function translated({ runs }: Setting, decoding: Decoding, k?: number): Translated[] {
  return runs.flatMap((run) => {
    const figures = translationOf(run, decoding, k);
    return figures === undefined ? [] : [{ run, figures }];
  });
}

function evaluatedAs({ settings }: DataSet, decoding: Decoding): PolicyFigures[] {
  return settings.flatMap(({ runs }) =>
    runs.flatMap(({ evaluations }) => evaluations.translations.filter((one) => isDecodedAs(one, decoding))),
  );
}

/** The signatures of sacreBLEU. */
export function signaturesOf(figures: readonly PolicyFigures[]): string {
  return [...new Set(figures.map(({ signature }) => signature))].join(' and ');
}

/** Unit of SimulEval's latency. */
function unitsOf(figures: readonly PolicyFigures[]): string {
  const units = new Set(figures.map(({ unit }) => unit));
  return [...units].map((unit) => (unit === 'word' ? 'words' : 'characters')).join(' or ');
}

/** Without the wait-k* of a sweep, whose runs are among the others. */
export function trainedSettings({ settings }: DataSet): Setting[] {
  return settings.filter(({ trainedFor }) => trainedFor === undefined);
}

function waitsOf({ runs }: Setting, decoding: Decoding): number[] {
  const waits = runs.flatMap(({ evaluations }) =>
    evaluations.translations.filter((one) => isDecodedAs(one, decoding)).map(({ k }) => k),
  );
  return [...new Set(waits)].sort((a, b) => a - b);
}

export function decodingInWords(decoding: Decoding): string {
  const { split, beam, earlyEnd, lengthPenalty, speculate, checkpoint } = decoding;
  const search = beam === 1 ? 'greedy search' : `beam of ${beam}`;
  const penalty = lengthPenalty === 1 ? '' : `, length penalty ${lengthPenalty}`;
  const further = speculate === 0 ? '' : `, ${speculate} tokens tried further`;
  const how = `${split} split, ${search}${penalty}${further}, early end ${earlyEnd}ed`;
  return checkpoint === 'best' ? how : `${how}, ${checkpointInWords(checkpoint)}`;
}
