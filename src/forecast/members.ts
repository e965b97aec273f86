import { InputError } from '../errors.js';
import { saveDataSummary } from '../run/index.js';
import type { MemberPlan, MemberRun } from '../schedule/problem-kind.js';
import {
  datesOf,
  type ForecastConfig,
  horizonsOf,
  isSeveralRuns,
  type Length,
  parseLength,
  splitOf,
  times,
  type WalkForward,
} from './config.js';
import { firstDayFrom, formatDay, lastDayUntil, parseDay, type SplitDates, splitSamples } from './data/calendar.js';
import { labelSpec, shortHistory } from './data/dataset.js';
import { labelReach } from './data/labels.js';
import { type PricePanel, summarise } from './data/panel.js';
import { evaluateForecast } from './evaluation/evaluation.js';
import { noteInWords } from './formats/format.js';
import { openPanel } from './formats/index.js';
import { modelNamed } from './models/index.js';

/** The runs that a configuration stands for, one for each window and seed; undefined if it is one run. */
export async function planMembers(
  config: ForecastConfig,
  seed: number,
): Promise<MemberPlan<ForecastConfig> | undefined> {
  if (!isSeveralRuns(config)) return undefined;
  const { seeds = 1, split } = config;
  const { walkForward } = split;
  const { panel, notes } = await openPanel(config.data, { ...config.features, kind: 'ohlcv', rankColumns: false });
  const windows = walkForward && plannedWindows(config, walkForward, panel);
  // Errors in the parts are reported before anything is trained.
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
      saveDataSummary(folder, summary);
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
    throw new InputError(`a network can start from the previous window, ${title} cannot`, {
      key: `${KEY}.warmStart`,
    });
  }
  for (const key of ['from', 'to'] as const) {
    const date = walkForward[key];
    if (date === undefined || parseDay(date) !== undefined) continue;
    throw new InputError(`"${date}" is not a date, expected YYYY-MM-DD`, { key: `${KEY}.${key}` });
  }
  const last = calendar.length - 1;
  const from = walkForward.from ?? split.train?.[0] ?? calendar[Math.min(features.window - 1, last)].slice(0, 10);
  // Without an explicit end, the last test part ends where it would if the data continued: more data change no window.
  const to = walkForward.to ?? split.test?.[1] ?? OPEN_END;
  return windowsOf(walkForward, { calendar, from, to, reach: labelReach(labelSpec(config)) });
}

const OPEN_END = '9999-12-31';

/** The data that windows are made from. */
export interface WindowExtent {
  readonly calendar: readonly string[];
  /** First and last day that a window may use. */
  readonly from: string;
  readonly to: string;
  /** Days that labels look ahead. */
  readonly reach: number;
}

/**
 * The dates of every window. Window i begins i steps after the first, and its test part ends where that of the next begins:
 * the test parts follow each other without gap or overlap, and nothing in a window depends on how far the data continue. The
 * last one is the last with a label in its test part.
 */
export function windowsOf(walkForward: WalkForward, { calendar, from, to, reach }: WindowExtent): SplitDates[] {
  const [train, validation, step] = (['train', 'validation', 'step'] as const).map((key) => {
    const parsed = parseLength(walkForward[key]);
    if (parsed !== undefined) return parsed;
    throw new InputError(`it is not a length of time: ${walkForward[key]}`, { key: `${KEY}.${key}` });
  });
  const windows: SplitDates[] = [];
  for (let i = 0; windows.length <= MOST_WINDOWS; i++) {
    const begin = times(step, i);
    const [a, b, c, d] = [
      begin,
      sum(begin, train),
      sum(begin, train, validation),
      sum(begin, train, validation, step),
    ].map((offset) => later(from, offset));
    const first = firstDayFrom(calendar, c);
    if (c > to || first + reach >= calendar.length) break;
    const end = dayBefore(d);
    const test = [c, end < to ? end : to] as const;
    // A weekend, with a step of a day, or a gap in the data.
    if (lastDayUntil(calendar, test[1]) < first) continue;
    windows.push({
      train: [walkForward.expanding ? from : a, dayBefore(b)],
      validation: [b, dayBefore(c)],
      test,
    });
  }
  if (windows.length > MOST_WINDOWS) {
    throw new InputError(
      `a step of ${walkForward.step} makes more than ${MOST_WINDOWS} windows from ${from} to ${to}`,
      {
        key: `${KEY}.step`,
      },
    );
  }
  if (windows.length > 0) return windows;
  throw new InputError(
    `${walkForward.train} of training and ${walkForward.validation} of validation from ${from} on leave no day to test: ` +
      `the data holds ${calendar[0]} to ${calendar.at(-1)}${to < calendar[calendar.length - 1] ? `, of which nothing after ${to} is used` : ''}`,
    { key: KEY },
  );
}

const KEY = 'problem.split.walkForward';

const MOST_WINDOWS = 1000;

function sum(...lengths: readonly Length[]): Length {
  return lengths.reduce((a, b) => ({ months: a.months + b.months, days: a.days + b.days }));
}

/** The date some months later, on the last day of a month that is too short, and then some days. */
function later(date: string, { months, days }: Length): string {
  const [year, month, day] = date.split('-').map(Number);
  const count = year * 12 + (month - 1) + months;
  const [y, m] = [Math.floor(count / 12), count % 12];
  if (y > LAST_YEAR) return `${LAST_YEAR}-12-31`;
  const last = new Date(Date.UTC(y, m + 1, 0)).getUTCDate();
  return formatDay(Date.UTC(y, m, Math.min(day, last)) / DAY_MS + days);
}

function dayBefore(date: string): string {
  return formatDay((parseDay(date) ?? 0) - 1);
}

/** Dates have four digits for the year. */
const LAST_YEAR = 9000;

const DAY_MS = 86_400_000;
