import { InputError } from '../errors.js';
import { averageRanks, standardDeviation } from '../metrics/index.js';
import { isRun, type Member, memberFolder, openRun } from '../run/index.js';
import { type ForecastConfig, splitOf } from './config.js';
import { filterSamples, type PricePanel, type Samples, type SplitDates } from './data/index.js';
import type { Forecaster } from './forecaster.js';
import { requireFinite } from './scores.js';

/** Mean daily ranks, and how far the members are apart. */
export interface RankForecasts {
  /** Mean over the members of rank ∕ stocks of the day, from above 0 to 1, the highest forecast. */
  readonly forecasts: Float32Array;
  /** Standard deviation (n − 1) of the same over the members. */
  readonly spread: Float32Array;
}

/**
 * The forecaster of a run that consists of others: a day is forecast by the window in whose test part it lies, days before
 * the first one by the first and days after the last one by the last; several seeds of a window by their mean daily rank.
 *
 * @param open opens a member
 */
export function openEnsemble(
  run: string,
  config: ForecastConfig,
  members: readonly Member[],
  open: (folder: string) => Promise<Forecaster>,
): Forecaster {
  for (const { name } of members) requireFinished(run, name);
  const windows = distinctWindows(members);
  const count = members.length / Math.max(1, windows.length);

  /** The forecasts of each seed of a window. */
  const ofWindow = async (window: number, cleaned: PricePanel, samples: Samples): Promise<Float32Array[]> => {
    const own = members.slice(window * count, (window + 1) * count);
    const all: Float32Array[] = [];
    for (const { name } of own) {
      const forecaster = await open(memberFolder(run, name));
      try {
        const forecasts = await forecaster.predict(cleaned, samples);
        requireFinite(forecasts);
        all.push(forecasts);
      } finally {
        await forecaster.close();
      }
    }
    return all;
  };

  const predictRanks = async (cleaned: PricePanel, samples: Samples): Promise<RankForecasts> => {
    const result = { forecasts: new Float32Array(samples.length), spread: new Float32Array(samples.length) };
    for (const { window, at, part } of byWindow(windows, cleaned, samples)) {
      const { forecasts, spread } = meanRanks(await ofWindow(window, cleaned, part), part);
      result.forecasts.set(forecasts, at);
      result.spread.set(spread, at);
    }
    return result;
  };

  const predictAlone = async (cleaned: PricePanel, samples: Samples): Promise<Float32Array> => {
    const result = new Float32Array(samples.length);
    for (const { window, at, part } of byWindow(windows, cleaned, samples)) {
      result.set((await ofWindow(window, cleaned, part))[0], at);
    }
    return result;
  };

  const split = windows.length === 0 ? config.split : splitOf(wholeSplit(windows));
  const common = { config: { ...config, split }, windows: windows.length === 0 ? undefined : windows };
  const close = async () => {};
  if (count === 1) return { ...common, predict: predictAlone, close };
  const predict = async (cleaned: PricePanel, samples: Samples) => (await predictRanks(cleaned, samples)).forecasts;
  return { ...common, predict, predictRanks, close };
}

/** The ranks of each day, as shares of its stocks, averaged over members. */
export function meanRanks(members: readonly Float32Array[], { length, dayStarts }: Samples): RankForecasts {
  const forecasts = new Float32Array(length);
  const spread = new Float32Array(length);
  for (let d = 0; d + 1 < dayStarts.length; d++) {
    const [from, to] = [dayStarts[d], dayStarts[d + 1]];
    const ranks = members.map((member) => averageRanks(member.subarray(from, to)).map((rank) => rank / (to - from)));
    for (let i = from; i < to; i++) {
      const own = ranks.map((day) => day[i - from]);
      forecasts[i] = own.reduce((total, rank) => total + rank, 0) / own.length;
      spread[i] = standardDeviation(own);
    }
  }
  return { forecasts, spread };
}

/** The window that forecasts a date: the last whose test part has begun; before the first one, the first. */
export function windowAt(windows: readonly SplitDates[], date: string): number {
  return Math.max(
    0,
    windows.findLastIndex(({ test: [from] }) => from <= date),
  );
}

/** The samples of each window, which lie together, and where they begin. */
function* byWindow(windows: readonly SplitDates[], { calendar }: PricePanel, samples: Samples) {
  const windowOfDay = new Map([...new Set(samples.day)].map((day) => [day, windowAt(windows, calendar[day])]));
  for (const window of new Set(windowOfDay.values())) {
    const isOwn = (i: number) => windowOfDay.get(samples.day[i]) === window;
    yield { window, at: samples.day.findIndex((_, i) => isOwn(i)), part: filterSamples(samples, isOwn) };
  }
}

function distinctWindows(members: readonly Member[]): SplitDates[] {
  const byStart = new Map(members.flatMap(({ window }) => (window === undefined ? [] : [[window.test[0], window]])));
  return [...byStart.values()];
}

/** What was never seen before its forecast is the test part of all windows together. */
function wholeSplit(windows: readonly SplitDates[]): SplitDates {
  const [first, last] = [windows[0], windows[windows.length - 1]];
  return { ...first, test: [first.test[0], last.test[1]] };
}

function requireFinished(run: string, name: string): void {
  const folder = memberFolder(run, name);
  const state = isRun(folder) ? openRun(folder).info.state : 'missing';
  if (state === 'finished') return;
  throw new InputError(`its member ${name} is ${state}, expected all to be finished: tcts train --resume ${run}`, {
    file: run,
  });
}
