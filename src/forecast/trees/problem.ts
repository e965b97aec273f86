import { InputError } from '../../errors.js';
import type { Random } from '../../random.js';
import type { Snapshot } from '../../run/index.js';
import {
  type Assignment,
  type FeatureGroup,
  type Problem,
  type Status,
  stateOnly,
  type Task,
} from '../../schedule/index.js';
import type { ForecastConfig } from '../config.js';
import { type ForecastData, type Part, writeDataSummary } from '../data/dataset.js';
import { columnCount, type FeatureSpec, gatherFeatures, writeColumn } from '../data/features.js';
import { labelledSamples } from '../data/labels.js';
import { chunks, type PricePanel, type Samples } from '../data/panel.js';
import type { Forecaster } from '../forecaster.js';
import { scoresOf, testFigures, validationPerformance } from '../scores.js';
import { type BoostedTrees, type BoostedTreesJson, predictTrees, treesFromJson, treesToJson } from './model.js';
import type { FeatureTable, TreeOptions } from './options.js';
import { trainTrees } from './train.js';

/** A configuration whose model is boosted trees. */
type TreesConfig = ForecastConfig & { readonly model: Partial<TreeOptions> & { readonly name: string } };

/** The whole training part. */
type TreesBatch = Part;

/**
 * Forecasting with boosted trees. Trees see all samples at once, so that a batch is the whole training part and the only
 * update grows the ensemble on the labels of the chosen tasks: a strategy that learns from episodes has nothing to learn
 * here. The run is LightGBM's usual training, stopped early by the main task's validation loss.
 */
export class TreesProblem implements Problem<TreesBatch> {
  readonly tasks: readonly Task[];
  readonly main: number;
  readonly features: readonly FeatureGroup[];
  /** Section 5 of the paper: from day 1 to the most difficult. */
  readonly curriculum = { easiest: 'first', until: 'hardest' } as const;
  /** All trees are grown in one, however many a configuration asks for. */
  readonly updates = 1;
  private grown = 0;
  private trees: BoostedTrees | undefined;

  constructor(
    private readonly config: TreesConfig,
    private readonly data: ForecastData,
    private readonly random: Random,
    private readonly threads: number,
    private readonly note: (line: string) => void = () => {},
  ) {
    if (config.loss !== 'mse') {
      throw new InputError(`boosted trees have the loss mse, found ${config.loss}`, { key: 'problem.loss' });
    }
    this.tasks = data.horizons.map((k) => ({ name: `day-${k}`, number: k }));
    this.main = data.main;
    this.features = [{ name: 'labels', width: data.horizons.length }];
  }

  nextBatch(): TreesBatch {
    return this.data.train;
  }

  sizeOf({ samples }: TreesBatch): number {
    return samples.length;
  }

  writeFeatures({ labels }: TreesBatch, _: Status, groups: readonly string[], out: Float32Array): void {
    if (groups.includes('labels')) out.set(labels);
  }

  async train({ samples, labels }: TreesBatch, { tasks, weights }: Assignment): Promise<number> {
    const K = this.tasks.length;
    const { cleaned, features, validation } = this.data;
    const { name: _, ...options } = this.config.model;
    const watched = labelledSamples(validation.samples, validation.labels, K, [this.main]);
    const { model, rounds } = await trainTrees({
      training: {
        table: tableOf(cleaned, features, samples),
        labels: Float64Array.from(tasks, (task, i) => labels[i * K + task]),
        weights: weights.every((weight) => weight === 1) ? undefined : weights,
      },
      validation: {
        table: tableOf(cleaned, features, watched.samples),
        labels: Float64Array.from({ length: watched.samples.length }, (_, i) => watched.labels[i * K + this.main]),
      },
      options: { ...options, seed: this.random.fork(`update ${this.grown}`).uint32(), threads: this.threads },
    });
    if (model.feature.length === 0) {
      const { lambdaL1 = 0, lambdaL2 = 0 } = options;
      this.note(
        `no tree has a split, so that all forecasts are the same: no split of ${samples.length} samples outweighs the ` +
          `penalties lambdaL1 ${lambdaL1} and lambdaL2 ${lambdaL2} of problem.model (the defaults are for the CSI300)`,
      );
    }
    this.trees = model;
    this.grown++;
    return rounds.at(-1)?.trainingLoss ?? Number.NaN;
  }

  /** Without trees the forecast is 0 for all. */
  async validate(): Promise<number> {
    const { validation, main } = this.data;
    const { measure } = this.config.validation;
    return validationPerformance(measure, 'mse', validation, this.forecast(validation), main, this.tasks.length);
  }

  async test(): Promise<Readonly<Record<string, number>>> {
    if (!this.config.test) return {};
    const { panel, test } = this.data;
    return testFigures(scoresOf(this.config, panel, test.samples, this.forecast(test)));
  }

  /** A summary of the data: `data.json`. */
  saveFiles(folder: string): void {
    writeDataSummary(folder, this.data);
  }

  capture(): Snapshot {
    return stateOnly({ updates: this.grown, trees: this.trees && treesToJson(this.trees) } satisfies TreesState);
  }

  restore({ state }: Snapshot): void {
    const { updates, trees } = state as TreesState;
    this.grown = updates;
    this.trees = trees && treesFromJson(trees);
  }

  private forecast({ samples }: Part): Float32Array {
    if (this.trees === undefined) return new Float32Array(samples.length);
    return predictSamples(this.trees, this.data.cleaned, this.data.features, samples);
  }
}

/** What a checkpoint holds of the problem. */
export interface TreesState {
  readonly updates: number;
  readonly trees?: BoostedTreesJson;
}

/** Features for the trees: relative prices and volumes, not normalised, NaN if missing. */
function tableOf(panel: PricePanel, spec: FeatureSpec, samples: Samples): FeatureTable {
  return {
    rows: samples.length,
    features: columnCount(spec),
    readColumn: (column, out) => writeColumn(panel, spec, samples, column, out),
  };
}

/** Forecasts of boosted trees, one a sample. */
function predictSamples(trees: BoostedTrees, panel: PricePanel, spec: FeatureSpec, samples: Samples): Float32Array {
  const columns = columnCount(spec);
  const out = new Float32Array(samples.length);
  const rows = new Float32Array(PIECE * columns);
  for (const positions of chunks(samples, PIECE)) {
    const own = rows.subarray(0, positions.length * columns);
    gatherFeatures(panel, spec, samples, positions, own, 'flat');
    predictTrees(trees, own, out.subarray(positions[0], positions[0] + positions.length));
  }
  return out;
}

const PIECE = 1000;

/** The trees of a checkpoint. */
export function openTrees(config: ForecastConfig, { state }: Snapshot, file: string): Forecaster {
  const { trees: json } = state as TreesState;
  if (json === undefined) throw new InputError('the run was stopped before it had grown its trees', { file });
  const trees = treesFromJson(json, file);
  return {
    config,
    predict: async (cleaned, samples) => predictSamples(trees, cleaned, config.features, samples),
    close: async () => {},
  };
}
