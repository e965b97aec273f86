import { InputError } from '../errors.js';
import { Arena, traceModel } from '../optim/index.js';
import type { Snapshot } from '../run/index.js';
import { partOf } from '../schedule/index.js';
import { type ForecastConfig, horizonsOf } from './config.js';
import { normaliserFromJson, type Panel, type Samples } from './data/index.js';
import { openForecastRun } from './forecast-run.js';
import { forecastSamples } from './forward.js';
import type { NetworkConfig } from './models/index.js';
import { createNetwork, openInference } from './network.js';
import { predictSamples } from './tree-forecasts.js';
import { treesFromJson } from './trees/index.js';
import type { TreesState } from './trees-problem.js';

/** A trained model with all that it needs besides prices. */
export interface Forecaster {
  readonly config: ForecastConfig;
  /** Forecasts of the main task, one a sample; `cleaned` are prices as the model is to see them (`Reading.cleaned`). */
  predict(cleaned: Panel, samples: Samples): Promise<Float32Array>;
  close(): Promise<void>;
}

/** The best model of a run; the run folder is all that is read. */
export async function openForecaster(run: string, threads = 1): Promise<Forecaster> {
  const { config, problem, file } = openForecastRun(run);
  return config.model.name === 'trees'
    ? treesForecaster(config, problem, file)
    : networkForecaster(config, config.model, problem, file, threads);
}

async function networkForecaster(
  config: ForecastConfig,
  model: NetworkConfig,
  snapshot: Snapshot,
  file: string,
  threads: number,
): Promise<Forecaster> {
  const { features, sharing } = config;
  const horizons = horizonsOf(config);
  const network = createNetwork({ model, sharing, tasks: horizons.length, features });
  const arena = new Arena(traceModel(network.forward, network.inputs).parameters);
  const { tensors } = partOf(snapshot, 'model');
  for (const name of arena.names) {
    const tensor = tensors.get(name);
    if (tensor?.shape.join() !== arena.shape(name).join()) {
      throw new InputError(`expected the parameter ${name} with the shape [${arena.shape(name).join(', ')}]`, { file });
    }
    arena.value(name).set(tensor.data as Float32Array);
  }
  const { normaliser: json } = partOf(snapshot, 'data').state as { normaliser?: unknown };
  const normaliser = normaliserFromJson(json, file);
  const inference = await openInference(network, arena, threads);
  const main = horizons.indexOf(config.main);
  return {
    config,
    predict: (cleaned, samples) =>
      forecastSamples(network, inference, { cleaned, features, normaliser }, samples, main),
    close: () => inference.close(),
  };
}

function treesForecaster(config: ForecastConfig, { state }: Snapshot, file: string): Forecaster {
  const { trees: json } = state as TreesState;
  if (json === undefined) throw new InputError('the run was stopped before it had grown its trees', { file });
  const trees = treesFromJson(json, file);
  return {
    config,
    predict: async (cleaned, samples) => predictSamples(trees, cleaned, config.features, samples),
    close: async () => {},
  };
}
