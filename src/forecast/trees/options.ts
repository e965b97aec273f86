import { availableParallelism } from 'node:os';
import { InputError } from '../../errors.js';

/** How boosted trees are grown; the names, meanings and defaults are LightGBM's. */
export interface TreeOptions {
  /** Boosting rounds, one tree each (`num_iterations`). Default 100. */
  readonly rounds: number;
  /** Default 0.1. */
  readonly learningRate: number;
  /** Leaves of a tree, at least 2. Default 31. */
  readonly numLeaves: number;
  /** Depth limit of a tree; 0 or less means none. Default -1. */
  readonly maxDepth: number;
  /** Default 20. */
  readonly minDataInLeaf: number;
  /** Default 0.001. */
  readonly minSumHessianInLeaf: number;
  /** Default 0. */
  readonly lambdaL1: number;
  /** Default 0. */
  readonly lambdaL2: number;
  /** Default 0. */
  readonly minGainToSplit: number;
  /** Bins of a feature, the one for missing values included; from 2 to 255. Default 255. */
  readonly maxBin: number;
  /** Default 3. */
  readonly minDataInBin: number;
  /** Rows from which the bin boundaries are found (`bin_construct_sample_cnt`). Default 200000. */
  readonly binSampleRows: number;
  /** Share of the rows a tree sees, drawn anew every `baggingFrequency` rounds. Default 1. */
  readonly baggingFraction: number;
  /** Default 0: no bagging. */
  readonly baggingFrequency: number;
  /** Share of the features a tree may use. Default 1. */
  readonly featureFraction: number;
  /** Start from the mean label rather than from 0. Default true. */
  readonly boostFromAverage: boolean;
  /** Stop after this many rounds without a lower validation loss; 0 means never. Default 0. */
  readonly earlyStoppingRounds: number;
  /** Seed of row, feature and bin sampling. Default 0. */
  readonly seed: number | string;
  /** Threads; the result does not depend on it. Default: the machine's cores. */
  readonly threads: number;
}

export function treeOptions(given: Partial<TreeOptions> = {}): TreeOptions {
  const standard = defaults();
  const unknown = Object.keys(given).find((key) => !(key in standard));
  if (unknown !== undefined) throw new InputError('is not an option of boosted trees', { key: unknown });
  const defined = Object.entries(given).filter(([, value]) => value !== undefined);
  const options: TreeOptions = { ...standard, ...Object.fromEntries(defined) };
  const check = (key: keyof TreeOptions, valid: boolean, expected: string) => {
    if (!valid) throw new InputError(`found ${String(options[key])}, expected ${expected}`, { key });
  };
  const whole = (key: keyof TreeOptions, low: number, high = Number.MAX_SAFE_INTEGER) => {
    const value = options[key] as number;
    const expected =
      high === Number.MAX_SAFE_INTEGER ? `a whole number of at least ${low}` : `a whole number from ${low} to ${high}`;
    check(key, Number.isInteger(value) && value >= low && value <= high, expected);
  };
  const notNegative = (key: keyof TreeOptions) => {
    const value = options[key] as number;
    check(key, Number.isFinite(value) && value >= 0, 'a number of at least 0');
  };
  const share = (key: keyof TreeOptions) => {
    const value = options[key] as number;
    check(key, value > 0 && value <= 1, 'a share above 0 and at most 1');
  };

  whole('rounds', 1);
  check('learningRate', Number.isFinite(options.learningRate) && options.learningRate > 0, 'a number above 0');
  whole('numLeaves', 2, 65536);
  check('maxDepth', Number.isInteger(options.maxDepth), 'a whole number');
  whole('minDataInLeaf', 1, 2 ** 31 - 1);
  for (const key of ['minSumHessianInLeaf', 'lambdaL1', 'lambdaL2', 'minGainToSplit'] as const) notNegative(key);
  whole('maxBin', 2, 255);
  whole('minDataInBin', 1);
  whole('binSampleRows', 1);
  share('baggingFraction');
  whole('baggingFrequency', 0);
  share('featureFraction');
  check('boostFromAverage', typeof options.boostFromAverage === 'boolean', 'true or false');
  whole('earlyStoppingRounds', 0);
  whole('threads', 1, 256);
  return options;
}

function defaults(): TreeOptions {
  return {
    rounds: 100,
    learningRate: 0.1,
    numLeaves: 31,
    maxDepth: -1,
    minDataInLeaf: 20,
    minSumHessianInLeaf: 1e-3,
    lambdaL1: 0,
    lambdaL2: 0,
    minGainToSplit: 0,
    maxBin: 255,
    minDataInBin: 3,
    binSampleRows: 200_000,
    baggingFraction: 1,
    baggingFrequency: 0,
    featureFraction: 1,
    boostFromAverage: true,
    earlyStoppingRounds: 0,
    seed: 0,
    threads: availableParallelism(),
  };
}
