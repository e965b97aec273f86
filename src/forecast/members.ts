import { join } from 'node:path';
import { InputError } from '../errors.js';
import { writeFileAtomic } from '../files.js';
import type { MemberPlan, MemberRun } from '../schedule/problem-kind.js';
import { datesOf, type ForecastConfig, horizonsOf, splitOf } from './config.js';
import { labelReach, type PricePanel, type SplitDates, splitSamples, summarise } from './data/index.js';
import { labelSpec, shortHistory } from './dataset.js';
import { evaluateForecast } from './evaluation.js';
import { noteInWords } from './formats/format.js';
import { openPanel } from './formats/index.js';
import { modelNamed } from './models/index.js';
import { KEY, type WalkForward, windowsOf } from './walk-forward.js';

/** The runs that a configuration stands for, one for each window and seed; undefined where it is one run. */
export async function planMembers(
  config: ForecastConfig,
  seed: number,
): Promise<MemberPlan<ForecastConfig> | undefined> {
  const { seeds = 1, split } = config;
  const { walkForward } = split;
  if (walkForward === undefined && seeds === 1) return undefined;
  const { panel, notes } = await openPanel(config.data, { ...config.features, kind: 'ohlcv', rankColumns: false });
  const windows = walkForward && plannedWindows(config, walkForward, panel);
  // Whatever is wrong with the parts is said before anything is trained.
  for (const dates of windows ?? [datesOf(config)]) {
    const { train } = splitSamples(panel, dates, labelReach(labelSpec(config)));
    shortHistory(panel, train, config.features.window, 'training');
  }
  const members = membersOf(config, seed, windows);
  if (members.length > MOST_MEMBERS) {
    throw new InputError(`it makes ${members.length} runs, expected at most ${MOST_MEMBERS}`, { key: 'problem.seeds' });
  }
  const noted = notes.list();
  return {
    members,
    tasks: horizonsOf(config).map((k) => `day-${k}`),
    notes: noted.map(noteInWords),
    saveFiles: (folder) => {
      const summary = { panel: summarise(panel), windows, seeds, notes: noted };
      writeFileAtomic(join(folder, 'data.json'), `${JSON.stringify(summary, null, 1)}\n`);
    },
    test: async (run, threads) => {
      if (!config.test) return null;
      const { RankIC, RankICIR, IC, ICIR, MSE, zMSE } = (await evaluateForecast(run, { threads, out: null })).scores;
      return { RankIC, RankICIR, IC, ICIR, ...(seeds === 1 ? { MSE } : {}), zMSE };
    },
  };
}

const MOST_MEMBERS = 5000;

/** Windows in order of time, the seeds of each together. */
function membersOf(
  { seeds = 1, split, ...rest }: ForecastConfig,
  seed: number,
  windows: readonly SplitDates[] | undefined,
): MemberRun<ForecastConfig>[] {
  return (windows ?? [undefined]).flatMap((window, w, all) =>
    Array.from({ length: seeds }, (_, i) => {
      // Runs of other seeds s have other seeds here.
      const own = (seed * seeds + i) % 2 ** 32;
      const nameIn = (at: SplitDates | undefined) =>
        [...(at === undefined ? [] : [at.test[0]]), ...(seeds === 1 ? [] : [`seed=${own}`])].join(',');
      return {
        name: nameIn(window),
        seed: own,
        window,
        problem: { ...rest, split: window === undefined ? split : splitOf(window) },
        startsFrom: split.walkForward?.warmStart && w > 0 ? nameIn(all[w - 1]) : undefined,
      };
    }),
  );
}

function plannedWindows(config: ForecastConfig, walkForward: WalkForward, { calendar }: PricePanel): SplitDates[] {
  const { split, features, model } = config;
  const { title, architecture } = modelNamed(model.name);
  if (walkForward.warmStart && architecture === undefined) {
    throw new InputError(`a network can start from that of the window before, ${title} cannot`, {
      key: `${KEY}.warmStart`,
    });
  }
  const last = calendar.length - 1;
  const from = walkForward.from ?? split.train?.[0] ?? calendar[Math.min(features.window - 1, last)].slice(0, 10);
  // Where nothing else ends it, the last test part ends where it would if the data went on: more data change no window.
  const to = walkForward.to ?? split.test?.[1] ?? OPEN_END;
  return windowsOf(walkForward, { calendar, from, to, reach: labelReach(labelSpec(config)) });
}

const OPEN_END = '9999-12-31';
