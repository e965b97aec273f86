import type { DeviceChoice } from '../devices.js';
import { InputError } from '../errors.js';
import { averageRanks, standardDeviation } from '../metrics/index.js';
import { Arena, traceModel } from '../optim/index.js';
import {
  isRun,
  type Member,
  memberFolder,
  openRun,
  parseConfig,
  readMembers,
  runConfigFile,
  type Snapshot,
} from '../run/index.js';
import { parametersIn, partOf, savedProblem } from '../schedule/index.js';
import { type ForecastConfig, forecastSchema, horizonsOf, splitOf } from './config.js';
import type { SplitDates } from './data/calendar.js';
import { normaliserFromJson } from './data/normaliser.js';
import { filterSamples, type PricePanel, type Samples } from './data/panel.js';
import { modelNamed } from './models/index.js';
import { createNetwork, forecastSamples, openForward } from './network.js';
import { requireFinite } from './scores.js';

/** A trained model with everything it needs besides prices. */
export interface Forecaster {
  readonly config: ForecastConfig;
  /** Forecasts of the main task, one per sample; `cleaned` are prices as the model sees them (`Reading.cleaned`). */
  predict(cleaned: PricePanel, samples: Samples): Promise<Float32Array>;
  /** Of a run with several seeds: what `predict` returns, the mean of their daily ranks, and their spread. */
  predictRanks?(cleaned: PricePanel, samples: Samples): Promise<RankForecasts>;
  /** Of a walk-forward: its windows, each of which forecasts its own test part. */
  readonly windows?: readonly SplitDates[];
  /** Releases native memory and threads. */
  close(): Promise<void>;
}

/** Forecasts with their spread, if there is one. */
export async function forecastsOf(
  forecaster: Forecaster,
  cleaned: PricePanel,
  samples: Samples,
): Promise<{ readonly forecasts: Float32Array; readonly spread?: Float32Array }> {
  if (forecaster.predictRanks !== undefined) return forecaster.predictRanks(cleaned, samples);
  return { forecasts: await forecaster.predict(cleaned, samples) };
}

/** How forecasts are computed. */
export interface Computing {
  /** Cores. Default 1. */
  readonly threads?: number;
  /** Default cpu. */
  readonly device?: DeviceChoice;
}

/** The best model of a run, or of all its members; only the run folder is read. */
export async function openForecaster(run: string, computing: Computing = {}): Promise<Forecaster> {
  const members = readMembers(run);
  if (members !== undefined) {
    return openEnsemble(run, forecastConfigOf(run), members, (folder) => openForecaster(folder, computing));
  }
  const { config, problem, file } = openForecastRun(run);
  return modelNamed(config.model.name).open(config, problem, file, computing);
}

/** The network of a checkpoint. */
export async function openNetwork(
  config: ForecastConfig,
  snapshot: Snapshot,
  file: string,
  { threads = 1, device }: Computing,
): Promise<Forecaster> {
  const { features, sharing } = config;
  const horizons = horizonsOf(config);
  const network = createNetwork({ model: config.model, sharing, tasks: horizons.length, features });
  const arena = new Arena(traceModel(network.forward, network.inputs).parameters);
  const parameters = parametersIn({ snapshot, file }, arena);
  for (const [i, name] of arena.names.entries()) arena.value(name).set(parameters[i]);
  const { normaliser: json } = partOf(snapshot, 'data').state as { normaliser?: unknown };
  const normaliser = normaliserFromJson(json, file);
  const forward = await openForward(network, arena, threads, device);
  const main = horizons.indexOf(config.main);
  return {
    config,
    predict: (cleaned, samples) => forecastSamples(network, forward, { cleaned, features, normaliser }, samples, main),
    close: () => forward.close(),
  };
}

/** A forecasting run: its configuration, and the best state of its problem. */
export interface ForecastRun {
  readonly config: ForecastConfig;
  readonly problem: Snapshot;
  /** File of the checkpoint. */
  readonly file: string;
}

/** Reads the best checkpoint of a run, or the latest one before the first validation. */
function openForecastRun(run: string): ForecastRun {
  const config = forecastConfigOf(run);
  const [member] = readMembers(run) ?? [];
  if (member !== undefined) {
    throw new InputError(`it consists of other runs: name one of them, such as ${memberFolder(run, member.name)}`, {
      file: run,
    });
  }
  const { snapshot, file } = savedProblem(run);
  return { config, problem: snapshot, file };
}

function forecastConfigOf(run: string): ForecastConfig {
  const { config } = openRun(run);
  const file = runConfigFile(run);
  const { problem } = config as { problem?: Record<string, unknown> };
  if (problem?.kind !== 'forecast') {
    throw new InputError(`it is ${problem?.kind}, expected a run of a forecast`, { file, key: 'problem.kind' });
  }
  return parseConfig(forecastSchema, problem, file);
}

/**
 * Fills the arena with the best parameters of another run. An output layer of another number of tasks starts with the
 * other's row of its main task in every row; embeddings of tasks that it does not have are unchanged.
 */
export function warmStartForecast(arena: Arena, run: string): void {
  const { config, problem } = openForecastRun(run);
  const { architecture, title } = modelNamed(config.model.name);
  if (architecture === undefined) throw new InputError(`expected a network, found ${title}`, { file: run });
  const { tensors } = partOf(problem, 'model');
  for (const name of arena.names) {
    const source = tensors.get(name);
    if (source === undefined) {
      if (name === 'task.weight') continue;
      throw new InputError(`that run has no parameter ${name}: expected one of the same model`, { file: run });
    }
    const target = arena.value(name);
    const values = source.data as Float32Array;
    const [rows] = arena.shape(name);
    const inner = target.length / rows;
    const sameRow = source.shape.slice(1).join() === arena.shape(name).slice(1).join();
    if (source.shape.join() === arena.shape(name).join()) {
      target.set(values);
    } else if (name.startsWith('output.') && sameRow) {
      const row = source.shape[0] === 1 ? 0 : horizonsOf(config).indexOf(config.main);
      for (let k = 0; k < rows; k++) target.set(values.subarray(row * inner, (row + 1) * inner), k * inner);
    } else {
      const shapes = `[${source.shape.join(', ')}] and here [${arena.shape(name).join(', ')}]`;
      throw new InputError(`the parameter ${name} has the shape ${shapes}: expected the same model`, { file: run });
    }
  }
}

/** Mean daily ranks, and the spread of the members. */
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
function openEnsemble(
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

/** The test parts of all windows together: days that no model saw before forecasting them. */
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
