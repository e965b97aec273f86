import { mean, standardDeviation } from '../../metrics/index.js';
import { groupBy } from '../../metrics/statistics.js';
import type { LoggedEpisodes, ValidationMeasure } from '../../run/index.js';
import { strategyNamed } from '../../schedule/index.js';
import {
  absent,
  type Block,
  type Cell,
  type Row,
  type Section,
  type SeedEstimate,
  seedEstimate,
  signed,
  slug,
  textColumn,
} from '../document.js';
import { shownEpisodes, type TaskDistribution, taskDistributionFigure } from '../figures/bars.js';
import { type CurvePoint, type LearningCurve, learningCurvesFigure } from '../figures/curves.js';
import { isAblation, WITHOUT } from '../labels.js';
import { estimateOf, headline, type Measure, measureOf } from '../measures.js';
import type { SeriesReader } from '../reader.js';
import { isChosen, type ReportedRun } from '../runs.js';
import { mainsOf, type Setting, settingOf, taskTitle } from '../settings.js';
import { isCalled, nearestSetting, type ReportView } from '../view.js';

/** How the models of a data set were trained: what was scheduled, learning curves, speed, and the value of features. */
export function trainingSection(view: ReportView): Section {
  const blocks = [...distributions(view), ...learningCurves(view), speedTable(view), ...ablationTables(view)];
  return { title: `Training: ${view.data.title}`, blocks };
}

/** Rows of the figure of distributions. */
const MOST_SCHEDULERS = 6;

function distributions({ data, reader, methods }: ReportView): Block[] {
  const labels = methods.map(({ label }) => label);
  const all = data.settings.filter(({ strategy }) => strategyNamed(strategy)?.learns !== undefined);
  const chosen = all.filter(({ label }) => labels.includes(label)).slice(0, MOST_SCHEDULERS);
  const rows = chosen.flatMap((setting) => distributionOf(setting, reader, data.kind) ?? []);
  if (rows.length === 0)
    return [absent('No distribution of tasks: no run has a strategy that learns what to schedule.')];
  const leftOut = rows.length < all.length ? ` Shown are ${rows.length} of ${all.length} schedulers.` : '';
  return [
    {
      kind: 'figure',
      figure: taskDistributionFigure(rows, {
        id: `${slug(data.title)}-task-distribution`,
        title: `Distribution of tasks, ${data.title}`,
        caption: `Share of each task in the training samples of an episode, at the first, the last and some episodes between. Mean over the seeds.${leftOut}`,
      }),
    },
  ];
}

function distributionOf(setting: Setting, reader: SeriesReader, kind: string): TaskDistribution | undefined {
  const seeds = episodesOf(setting, reader);
  const count = Math.min(...seeds.map((episodes) => episodes.count));
  if (seeds.length === 0 || count === 0) return undefined;
  const tasks = Object.keys(seeds[0].at(0).distribution);
  return {
    label: setting.main === undefined ? setting.label : `${setting.label}, ${taskTitle(kind, setting.main)}`,
    tasks,
    episodes: shownEpisodes(count).map((episode) => ({
      episode,
      shares: tasks.map((task) => mean(seeds.map((episodes) => episodes.at(episode - 1).distribution[task] ?? 0))),
    })),
  };
}

function learningCurves(view: ReportView): Block[] {
  const { data, reader, methods, leftOut } = view;
  const measure = measureOf(data.settings);
  return mainsOf(data).map((main): Block => {
    const curves = methods.flatMap(({ label, style }): LearningCurve[] => {
      const setting = settingOf(data, label, main);
      // Several models trained in sequence have no single curve.
      if (setting === undefined || strategyNamed(setting.strategy)?.severalModels) return [];
      const points = curveOf(episodesOf(setting, reader), measure);
      return points.length === 0 ? [] : [{ label, style, points }];
    });
    const task = taskTitle(data.kind, main);
    if (curves.length === 0) return absent(`${task}: no learning curves, as no run has recorded an episode.`);
    const caption = `Each point an episode; mean over the seeds, bands of ± one standard deviation. Reward: R_e − R_{e−1}, by how much the validation improved in an episode. ${leftOut}`;
    const figure = learningCurvesFigure(curves, measure, {
      id: `${slug(data.title)}-learning-curves${main === undefined ? '' : `-${main}`}`,
      title: `Learning curves, ${task}`,
      caption: caption.trim(),
    });
    return { kind: 'figure', figure };
  });
}

function curveOf(seeds: readonly LoggedEpisodes[], { shown }: ValidationMeasure): CurvePoint[] {
  const count = seeds.length === 0 ? 0 : Math.min(...seeds.map((episodes) => episodes.count));
  const every = Math.ceil(count / MOST_POINTS);
  const places = Array.from({ length: count }, (_, e) => e).filter((e) => (e + 1) % every === 0 || e === count - 1);
  return places.map((e) => {
    const at = seeds.map((episodes) => episodes.at(e));
    const losses = at.map(({ loss }) => loss);
    const validations = at.map(({ performance }) => shown(performance));
    return {
      update: at[0].step,
      loss: mean(losses),
      lossStd: standardDeviation(losses),
      validation: mean(validations),
      validationStd: standardDeviation(validations),
      reward: mean(at.map(({ reward }) => reward)),
    };
  });
}

/** Maximum points of a curve: there are no pixels for more. */
const MOST_POINTS = 250;

function episodesOf({ runs }: Setting, reader: SeriesReader): LoggedEpisodes[] {
  return runs.flatMap((run) => {
    const episodes = reader.episodes(run);
    return episodes === undefined || episodes.count === 0 ? [] : [episodes];
  });
}

/** Updates per second of each method, against the first baseline of the same model: the paper's table of speed. */
function speedTable({ data, reader, baselines }: ReportView): Block {
  const timed = data.settings.flatMap((setting) => setting.runs.map((run) => ({ setting, run, cores: coresOf(run) })));
  const rows = [...groupBy(timed, ({ setting, cores }) => `${cores} ${setting.label}`).values()].flatMap((runs) => {
    const figure = seedEstimate(
      runs.map(({ run }) => reader.speed(run) ?? Number.NaN),
      2,
    );
    return figure === undefined ? [] : [{ ...runs[0], figure }];
  });
  if (rows.length === 0) return absent('No training speed: no run has two lines in timings.jsonl.');
  const referenceOf = ({ setting, cores }: (typeof rows)[number]): SeedEstimate | undefined => {
    const alike = rows.filter((row) => row.cores === cores && modelOf(row.setting) === modelOf(setting));
    const found = baselines
      .map((name) => alike.filter((row) => isCalled(row.setting, name)))
      .find((all) => all.length > 0);
    const closest = nearestSetting(setting, found?.map((row) => row.setting) ?? []);
    return found?.find((row) => row.setting === closest)?.figure;
  };
  return {
    kind: 'table',
    table: {
      id: `${slug(data.title)}-speed`,
      title: 'Training speed',
      caption:
        'Updates per second, from the times of the log without the validations, and against the first baseline with the ' +
        'same model and as many threads and workers. Mean ± standard deviation over all runs of a method, whatever their main task. Only runs ' +
        'that had a machine of one kind to themselves can be compared.',
      columns: [textColumn('Method'), textColumn('threads × workers'), { title: 'updates/s', measures: ['updates/s'] }],
      rows: rows.map((row) => {
        const { setting, cores, figure } = row;
        const reference = referenceOf(row);
        const change = reference && reference !== figure ? 100 * (figure.mean / reference.mean - 1) : undefined;
        return {
          cells: [
            setting.label,
            cores,
            [change === undefined ? figure : { ...figure, note: `(${signed(change, 0)} %)` }],
          ],
        };
      }),
    },
  };
}

function modelOf({ keys }: Setting): unknown {
  return keys.get('problem.model.name');
}

function coresOf({ config }: ReportedRun): string {
  const { threads, workers } = config as { threads?: unknown; workers?: unknown };
  // As many workers as threads, with one thread each.
  if (workers === 'auto') return `1 × ${String(threads ?? '?')}`;
  return `${String(threads ?? '?')} × ${String(workers ?? '?')}`;
}

/**
 * What a scheduler loses without some of its features, for every scheduler with such runs: the paper's table
 * "Ablation study for feature selection".
 */
function ablationTables({ data }: ReportView): Block[] {
  const families = [...groupBy(data.settings, (setting) => familyOf(setting, data.chosenKeys)).values()].filter(
    (family) => family.some((one) => withoutOf(one) === '') && family.some((one) => withoutOf(one) !== ''),
  );
  if (families.length === 0) {
    return [absent('No ablation of features: no two schedulers differ in strategy.without alone.')];
  }
  const measure = headline(data);
  const mains = mainsOf(data);
  return families.map((family, i) => {
    const removed = [...new Set(family.map(withoutOf))].sort((a, b) => Number(a !== '') - Number(b !== ''));
    const [{ label }] = family.filter((one) => withoutOf(one) === '');
    return {
      kind: 'table',
      table: {
        id: `${slug(data.title)}-features${i === 0 ? '' : `-${i + 1}`}`,
        title: `Feature selection, ${label}`,
        caption: `${measure.name} without groups of features (strategy.without), the change against all features, and its rank: 1 for the group that is missed most. Mean ± standard deviation over the seeds.`,
        columns: [
          textColumn('Features'),
          ...mains.map((main) => ({ title: taskTitle(data.kind, main), measures: [measure.name] })),
        ],
        rows: removed.map(
          (without): Row => ({
            cells: [
              without === '' ? 'all' : `− ${without}`,
              ...mains.map((main) =>
                cellOf(
                  family.filter((one) => one.main === main),
                  without,
                  measure,
                ),
              ),
            ],
          }),
        ),
      },
    };
  });
}

function cellOf(settings: readonly Setting[], without: string, measure: Measure): Cell {
  const scored = settings.flatMap((setting) => {
    const figure = estimateOf(setting, measure);
    return figure === undefined ? [] : [{ without: withoutOf(setting), figure }];
  });
  const own = scored.find((one) => one.without === without)?.figure;
  const all = scored.find((one) => one.without === '')?.figure;
  if (own === undefined || all === undefined || without === '') return [own];
  const missed = scored.filter((one) => one.without !== '').map(({ figure }) => figure.mean);
  const rank = 1 + missed.filter((mean) => (measure.better === 'higher' ? mean < own.mean : mean > own.mean)).length;
  const change = (100 * (own.mean - all.mean)) / Math.abs(all.mean);
  return [{ ...own, note: `(${signed(change, 2)} %, rank ${rank})` }];
}

function withoutOf(setting: Setting): string {
  return isAblation(setting) ? (setting.keys.get(WITHOUT) as unknown[]).join(', ') : '';
}

function familyOf({ keys }: Setting, chosenKeys: readonly string[]): string {
  const aside = [WITHOUT, 'problem.main', ...chosenKeys];
  return JSON.stringify([...keys].filter(([key]) => !isChosen(key, aside)).sort());
}
