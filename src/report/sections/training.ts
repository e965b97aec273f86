import { mean, standardDeviation } from '../../metrics/index.js';
import type { Episodes } from '../course.js';
import { absent, type Block, type Section, slug } from '../document.js';
import { type CurvePoint, type LearningCurve, learningCurvesFigure } from '../figures/learning-curves.js';
import { shownEpisodes, type TaskDistribution, taskDistributionFigure } from '../figures/task-distribution.js';
import type { SeriesReader } from '../reader.js';
import { mainsOf, type Setting, settingOf, taskTitle } from '../settings.js';
import type { View } from '../view.js';
import { ablationTables } from './ablation.js';
import { speedTable } from './speed.js';

/** How the models of a data set came to be: what was scheduled, how they learned, how fast, and what the features gave. */
export function trainingSection(view: View): Section {
  const blocks = [...distributions(view), ...learningCurves(view), speedTable(view), ...ablationTables(view)];
  return { title: `Training: ${view.data.title}`, blocks };
}

/** Strategies that learn what to schedule; those of the others are given. */
const SCHEDULERS = new Set(['learned', 'greedy', 'soft', 'aligned', 'bandit']);

/** Rows of the figure of distributions. */
const MOST_SCHEDULERS = 6;

function distributions({ data, reader, methods }: View): Block[] {
  const labels = methods.map(({ label }) => label);
  const all = data.settings.filter(({ strategy }) => SCHEDULERS.has(strategy));
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

function learningCurves(view: View): Block[] {
  const { data, reader, methods, leftOut } = view;
  return mainsOf(data).map((main): Block => {
    const curves = methods.flatMap(({ label, style }): LearningCurve[] => {
      const setting = settingOf(data, label, main);
      // Its models are trained one after the other: there is no one curve.
      if (setting === undefined || setting.strategy === 'best-fixed') return [];
      const points = curveOf(episodesOf(setting, reader));
      return points.length === 0 ? [] : [{ label, style, points }];
    });
    const task = taskTitle(data.kind, main);
    if (curves.length === 0) return absent(`${task}: no learning curves, as no run has recorded an episode.`);
    const caption = `Each point an episode; mean over the seeds, bands of ± one standard deviation. Reward: R_e − R_{e−1}, the gain in validation performance of an episode. ${leftOut}`;
    const figure = learningCurvesFigure(curves, {
      id: `${slug(data.title)}-learning-curves${main === undefined ? '' : `-${main}`}`,
      title: `Learning curves, ${task}`,
      caption: caption.trim(),
    });
    return { kind: 'figure', figure };
  });
}

function curveOf(seeds: readonly Episodes[]): CurvePoint[] {
  const count = seeds.length === 0 ? 0 : Math.min(...seeds.map((episodes) => episodes.count));
  const every = Math.ceil(count / MOST_POINTS);
  const shown = Array.from({ length: count }, (_, e) => e).filter((e) => (e + 1) % every === 0 || e === count - 1);
  return shown.map((e) => {
    const at = seeds.map((episodes) => episodes.at(e));
    const [losses, performances, rewards] = (['loss', 'performance', 'reward'] as const).map((key) =>
      at.map((episode) => episode[key]),
    );
    return {
      update: at[0].step,
      loss: mean(losses),
      lossStd: standardDeviation(losses),
      performance: mean(performances),
      performanceStd: standardDeviation(performances),
      reward: mean(rewards),
    };
  });
}

/** Of a curve: there are no pixels for more. */
const MOST_POINTS = 250;

function episodesOf({ runs }: Setting, reader: SeriesReader): Episodes[] {
  return runs.flatMap((run) => {
    const episodes = reader.episodes(run);
    return episodes === undefined || episodes.count === 0 ? [] : [episodes];
  });
}
