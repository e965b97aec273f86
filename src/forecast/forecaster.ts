import { join } from 'node:path';
import { InputError } from '../errors.js';
import { Arena, traceModel } from '../optim/index.js';
import { memberFolder, openRun, parseConfig, readMembers, type Snapshot } from '../run/index.js';
import { parametersIn, partOf, savedProblem } from '../schedule/index.js';
import { type ForecastConfig, forecastSchema, horizonsOf } from './config.js';
import { normaliserFromJson, type PricePanel, type Samples, type SplitDates } from './data/index.js';
import { openEnsemble, type RankForecasts } from './ensemble.js';
import { modelNamed } from './models/index.js';
import { createNetwork, forecastSamples, openForward } from './network.js';

/** A trained model with all that it needs besides prices. */
export interface Forecaster {
  readonly config: ForecastConfig;
  /** Forecasts of the main task, one a sample; `cleaned` are prices as the model is to see them (`Reading.cleaned`). */
  predict(cleaned: PricePanel, samples: Samples): Promise<Float32Array>;
  /** Of a run with several seeds: what `predict` gives, the mean of their daily ranks, and how far they are apart. */
  predictRanks?(cleaned: PricePanel, samples: Samples): Promise<RankForecasts>;
  /** Of a walk-forward: its windows, each of which forecasts its own test part. */
  readonly windows?: readonly SplitDates[];
  /** Releases native memory and threads. */
  close(): Promise<void>;
}

/** Forecasts with their spread, where there is one. */
export async function forecastsOf(
  forecaster: Forecaster,
  cleaned: PricePanel,
  samples: Samples,
): Promise<{ readonly forecasts: Float32Array; readonly spread?: Float32Array }> {
  if (forecaster.predictRanks !== undefined) return forecaster.predictRanks(cleaned, samples);
  return { forecasts: await forecaster.predict(cleaned, samples) };
}

/** The best model of a run, or of all its members; the run folder is all that is read. */
export async function openForecaster(run: string, threads = 1): Promise<Forecaster> {
  const members = readMembers(run);
  if (members !== undefined) {
    return openEnsemble(run, forecastConfigOf(run), members, (folder) => openForecaster(folder, threads));
  }
  const { config, problem, file } = openForecastRun(run);
  return modelNamed(config.model.name).open(config, problem, file, threads);
}

/** The network of a checkpoint. */
export async function openNetwork(
  config: ForecastConfig,
  snapshot: Snapshot,
  file: string,
  threads: number,
): Promise<Forecaster> {
  const { features, sharing } = config;
  const horizons = horizonsOf(config);
  const network = createNetwork({ model: config.model, sharing, tasks: horizons.length, features });
  const arena = new Arena(traceModel(network.forward, network.inputs).parameters);
  const parameters = parametersIn({ snapshot, file }, arena);
  for (const [i, name] of arena.names.entries()) arena.value(name).set(parameters[i]);
  const { normaliser: json } = partOf(snapshot, 'data').state as { normaliser?: unknown };
  const normaliser = normaliserFromJson(json, file);
  const forward = await openForward(network, arena, threads);
  const main = horizons.indexOf(config.main);
  return {
    config,
    predict: (cleaned, samples) => forecastSamples(network, forward, { cleaned, features, normaliser }, samples, main),
    close: () => forward.close(),
  };
}

/** A run of a forecast: what it was asked to do, and the state of its problem where it was best. */
export interface ForecastRun {
  readonly config: ForecastConfig;
  readonly problem: Snapshot;
  /** File of the checkpoint. */
  readonly file: string;
}

/** Reads the best checkpoint of a run, or the latest one before the first validation. */
export function openForecastRun(run: string): ForecastRun {
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
  const file = join(run, 'config.yaml');
  const { problem } = config as { problem?: Record<string, unknown> };
  if (problem?.kind !== 'forecast') {
    throw new InputError(`it is ${problem?.kind}, expected a run of a forecast`, { file, key: 'problem.kind' });
  }
  return parseConfig(forecastSchema, problem, file);
}

/**
 * Fills the arena with the best parameters of another run. An output layer of another number of tasks starts with the
 * other's row of its main task in every row; embeddings of tasks that it has not stay as they are.
 */
export function warmStart(arena: Arena, run: string): void {
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
