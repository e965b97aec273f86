import { InputError } from '../errors.js';
import { type DataConfig, type ForecastConfig, horizonsOf } from './config.js';
import { type StaleStocks, staleStocks, withStaleLabels } from './corruption.js';
import {
  chunks,
  type DataSource,
  dayChunks,
  type FeatureSpec,
  filterSamples,
  fitNormaliser,
  gather,
  type LabelSpec,
  type Layout,
  labelledSamples,
  labelReach,
  labelTable,
  type Normaliser,
  type Note,
  type Panel,
  prepareWindows,
  readPanel,
  type Samples,
  splitSamples,
} from './data/index.js';
import { syntheticMarket } from './market.js';

/** Samples and the labels of all their tasks. */
export interface Part {
  readonly samples: Samples;
  /** [samples, K], as they are trained on; NaN where unknown. */
  readonly labels: Float32Array;
}

/** All that a problem needs of its data. */
export interface DataSet {
  /** Prices as they were, which scores and backtests are taken of. */
  readonly panel: Panel;
  /** What the model sees and is trained on: the same, or a copy without moves beyond `data.maxMove`. */
  readonly cleaned: Panel;
  /** What was noticed while reading. */
  readonly notes: readonly Note[];
  readonly horizons: readonly number[];
  /** Index of the main task among the horizons. */
  readonly main: number;
  readonly features: FeatureSpec;
  /** Fitted on the training part. */
  readonly normaliser: Normaliser;
  /** Every sample has all labels. */
  readonly train: Part;
  readonly validation: Part;
  /** The part of the validation data that schedulers learn from and nothing else sees; undefined: none is set aside. */
  readonly reward?: Part;
  readonly test: Part;
  /** Stocks whose main labels are stale in training; undefined: none. */
  readonly stale?: StaleStocks;
}

export async function openDataSet(config: ForecastConfig): Promise<DataSet> {
  const horizons = horizonsOf(config);
  const main = horizons.indexOf(config.main);
  if (main < 0) {
    throw new InputError(`${config.main} is not among the tasks ${horizons.join(', ')}`, { key: 'problem.main' });
  }
  const { panel, cleaned, notes } = await openPanel(config.data);
  prepareWindows(cleaned);
  const spec = labelSpec(config);
  const { train, validation, test } = splitSamples(panel, config.split, labelReach(spec));
  const short = shortHistory(panel, train, config.features.window, 'training');
  const part = (samples: Samples): Part => ({ samples, labels: labelTable(cleaned, samples, spec) });
  const stale = staleStocks(cleaned, train, config.corruption.stale);
  const ageing = { main, tasks: horizons.length, days: config.corruption.days, stocks: panel.symbols.length };
  const all = stale === undefined ? part(train) : withStaleLabels(part(train), stale, ageing);
  const training = labelledSamples(all.samples, all.labels, horizons.length);
  if (training.samples.length === 0) {
    throw new InputError('no sample has the labels of all tasks', { key: 'problem.split.train' });
  }
  return {
    panel,
    cleaned,
    notes: [...notes, ...short],
    horizons,
    main,
    features: config.features,
    normaliser: fitNormaliser(cleaned, config.features, train),
    train: training,
    ...validationParts(everyDays(validation, config.validation.everyDays), config.validation.reward, spec, part),
    test: part(test),
    stale,
  };
}

/**
 * The first days of the validation part, as many as the share says, are for schedulers; the rest validates, from the first
 * day on whose window of labels none of theirs reaches into.
 */
function validationParts(
  samples: Samples,
  share: number,
  spec: LabelSpec,
  part: (samples: Samples) => Part,
): Pick<DataSet, 'validation' | 'reward'> {
  if (share === 0) return { validation: part(samples) };
  const days = samples.dayStarts.length - 1;
  const border = samples.day[samples.dayStarts[Math.floor(share * days)]];
  const reward = filterSamples(samples, (i) => samples.day[i] + labelReach(spec) < border);
  if (reward.length === 0) {
    throw new InputError(`a share of ${share} of ${days} validation days leaves none to learn from`, {
      key: 'problem.validation.reward',
    });
  }
  return { reward: part(reward), validation: part(filterSamples(samples, (i) => samples.day[i] >= border)) };
}

export function labelSpec(config: ForecastConfig): LabelSpec {
  return { ...config.labels, horizons: horizonsOf(config) };
}

/** The panel that a configuration names; `path` takes the place of its own, in any format. */
export async function openPanel(
  config: DataConfig,
  path?: string,
): Promise<Pick<DataSet, 'panel' | 'cleaned' | 'notes'>> {
  if (config.format === 'synthetic' && path === undefined) {
    const panel = syntheticMarket(config);
    return { panel, cleaned: panel, notes: [] };
  }
  const { panel, cleaned, notes } = await readPanel(sourceOf(config, path));
  return { panel, cleaned, notes: notes.list() };
}

/**
 * What is to be said of windows that begin before the data do, whose first days are 0 to the model: nothing where the part
 * begins late enough, one note where some of its days do not. A part without a single whole window is refused.
 */
export function shortHistory({ calendar }: Panel, samples: Samples, window: number, part: string): Note[] {
  const first = samples.day[0];
  const last = samples.day[samples.length - 1];
  if (last < window - 1) {
    throw new InputError(
      `a window of ${window} days is longer than the history: the ${part} part ends on ${calendar[last]}, and the data ` +
        `begins ${last} days before, on ${calendar[0]}`,
      { key: 'problem.features.window' },
    );
  }
  if (first >= window - 1) return [];
  const kind = `day of the ${part} part with fewer than the ${window - 1} days before it that a window needs: zeros there`;
  const count = samples.dayStarts.subarray(0, -1).filter((at) => samples.day[at] < window - 1).length;
  return [{ kind, count, first: `${calendar[first]} has ${first}` }];
}

function sourceOf(config: DataConfig, path: string | undefined): DataSource {
  if (config.format === 'synthetic') return { path: path! };
  if (path === undefined) return config;
  // The other data may have another form and end on another day; the run's dates are those of its own data.
  const { format: _, start: _start, end: _end, ...rest } = config;
  return { ...rest, path };
}

/** The samples of a part in order, in pieces that fit into memory; whole days where samples of a day belong together. */
export function* piecesOf(samples: Samples, wholeDays: boolean): Generator<Int32Array> {
  yield* wholeDays ? dayChunks(samples) : chunks(samples, PIECE);
}

/** The features of some samples. */
export function featuresOf(
  data: Pick<DataSet, 'cleaned' | 'features' | 'normaliser'>,
  samples: Samples,
  positions: Int32Array,
  layout: Layout,
): Float32Array {
  const x = new Float32Array(positions.length * data.normaliser.centre.length);
  gather(data.cleaned, data.features, samples, positions, x, layout, data.normaliser);
  return x;
}

/** Samples whose states stay in the cache; more at a time are slower. */
const PIECE = 500;

function everyDays(samples: Samples, step: number): Samples {
  if (step === 1) return samples;
  const kept = new Set<number>();
  for (let d = 0; d + 1 < samples.dayStarts.length; d += step) kept.add(samples.day[samples.dayStarts[d]]);
  return filterSamples(samples, (i) => kept.has(samples.day[i]));
}
