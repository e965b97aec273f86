import { InputError } from '../errors.js';
import type { DeviceChoice } from '../optim/index.js';
import type { Random } from '../random.js';
import type { Ranks } from '../ranks.js';
import type { Resumable } from '../run/index.js';

/** One task T_m of 𝒯: translate with a wait of m words, predict the m-th day ahead. */
export interface Task {
  /** Unique among the tasks of a problem, for users and configurations: `wait-3`, `day-1`. */
  readonly name: string;
  /** m. Tasks are listed in the order of m. */
  readonly number: number;
}

/** Columns of the scheduler's input I that belong together and can be switched off together. */
export interface FeatureGroup {
  readonly name: string;
  /** Number of columns. */
  readonly width: number;
  /** Their display names. Default none. */
  readonly columns?: readonly string[];
  /** Whether computing them takes a forward pass. Default false. */
  readonly costly?: boolean;
  /** Whether they reveal the labels. Training samples must not be picked by their outcome. Default false. */
  readonly outcome?: boolean;
}

/** What a problem is created with, besides its own part of the configuration. */
export interface ProblemContext {
  readonly random: Random;
  readonly threads: number;
  readonly workers: number;
  /** Device that trains the model; `auto` chooses. Default cpu. */
  readonly device?: DeviceChoice;
  /** E·S: updates of a whole training of one model, for learning rates that depend on it. Default: unknown. */
  readonly updates?: number;
  /** Processes that share each batch. Default: this one alone. */
  readonly ranks?: Ranks;
  /** Shows a line to the user, such as a warning about the data. Default: nothing. */
  readonly note?: (line: string) => void;
}

/** Progress of the training, for features and strategies. */
export interface Status {
  /** t, the number of the update being prepared, from 1. */
  readonly update: number;
  /** t_max, the number of updates of the whole training. */
  readonly updates: number;
  /** Main-task performance at the last validation; before the first update it is that of the untrained model. */
  readonly performance: number;
  /** Mean of the performances at all validations so far, that of the untrained model included. */
  readonly meanPerformance: number;
}

/** A task and a weight for each sample of a batch: D̃ of Algorithm 1. */
export interface Assignment {
  /** Index into the tasks, for each sample. */
  readonly tasks: Int32Array;
  /** ≥ 0 for each sample; a sample of weight 0 is ignored. */
  readonly weights: Float32Array;
}

/** How a curriculum goes through the tasks of a problem. */
export interface CurriculumOrder {
  /** Which end of the list of tasks is the easiest. */
  readonly easiest: 'first' | 'last';
  /** Where it ends: at the main task, or at the end opposite to the easiest. */
  readonly until: 'main' | 'hardest';
}

/** Gradients in evaluation mode, each as one flat vector. They do not affect the training. */
export interface GradientAccess<Batch> {
  /** Length of the vector. */
  readonly size: number;
  /** Writes ∇θ of the mean loss of the batch with every sample on one task. */
  ofTask(batch: Batch, task: number, out: Float32Array): Promise<void>;
  /** Writes ∇θ of the main task's loss on validation data. */
  ofValidation(out: Float32Array): Promise<void>;
}

/**
 * What the strategy `influence` measures with. Everything runs in evaluation mode and does not affect the training: no
 * random number of its streams is drawn, and the parameters are restored bit for bit.
 */
export interface InfluenceAccess<Batch> {
  /** Length of a gradient over the parameters. */
  readonly size: number;
  /** Samples of a batch worth measuring. */
  readonly samples: number;
  /** Pieces of the reward data: validation data used neither to choose a checkpoint nor to validate. */
  readonly pieces: number;
  /** Writes ∇θ of the main task's mean loss on a piece; 0 at parameters that not all tasks share, such as heads. */
  gradient(piece: number, out: Float32Array): Promise<void>;
  /**
   * Writes the shift of the parameters that the optimiser would make for a gradient, with its sign kept: for Adam along
   * g ∕ (√v̂ + δ). It is short enough for a difference quotient and long enough for the precision of the losses.
   */
  shift(gradient: Float32Array, out: Float32Array): void;
  /** Losses ℓ(xᵢ, yᵢ, T; θ ± shift) on all tasks of about this many samples of the batch. */
  losses(batch: Batch, samples: number, shift: Float32Array): Promise<ShiftedLosses>;
}

/** Losses at two points; ≥ 0, NaN if a label is unknown. */
export interface ShiftedLosses {
  /** Indices in the batch, n. */
  readonly samples: Int32Array;
  /** At θ + shift, [n, K]. */
  readonly ahead: Float32Array;
  /** At θ − shift, [n, K]. */
  readonly behind: Float32Array;
}

/**
 * What an application hands to the trainer: tasks, batches, features, one training step, validation. Everything random
 * in it follows from a seed and is part of the state that `capture` gives, the position in the data included.
 *
 * The optional members are abilities that only some strategies ask for; a strategy whose problem lacks one is rejected
 * when it is made.
 */
export interface Problem<Batch = unknown> extends Resumable {
  /** 𝒯, in the order of difficulty (`curriculum` says in which direction). */
  readonly tasks: readonly Task[];
  /** Index of the main task. */
  readonly main: number;
  /** Everything the scheduler may see, in the order of the columns. */
  readonly features: readonly FeatureGroup[];
  /** Updates after which the model is complete, regardless of `training`. Default: none, it keeps learning. */
  readonly updates?: number;

  /** The next minibatch of the training data. */
  nextBatch(): Batch | Promise<Batch>;
  /** B: samples in a batch. */
  sizeOf(batch: Batch): number;
  /**
   * Writes I_{x,y,θ} of every sample, row by row: the columns of the named groups, in the order of `features`, and no
   * others. Other columns need not be computed.
   */
  writeFeatures(batch: Batch, status: Status, groups: readonly string[], out: Float32Array): void | Promise<void>;
  /** θ ← θ − η₁ ∇θ Σ wᵢ ℓ(xᵢ, yᵢ, Tᵢ; θ) / Σ wᵢ, or any other gradient-based update. Returns that mean loss. */
  train(batch: Batch, assignment: Assignment): Promise<number>;
  /** ℳ(D_v; θ): performance on the main task, higher is better, in evaluation mode. It changes nothing. */
  validate(): Promise<number>;

  /**
   * Receives the performance at the end of an episode, before the strategy and any checkpoint: for learning rates that
   * depend on it. Anything it changes is part of the state.
   */
  observe?(performance: number): void;
  /** Default of the strategy `curriculum`. */
  readonly curriculum?: CurriculumOrder;
  /** The update with Σᵢ Σ_T w_{iT} ℓ(xᵢ, yᵢ, T; θ) / B, for weights [B, K] whose rows sum to one. */
  trainBlend?(batch: Batch, weights: Float32Array): Promise<number>;
  /** ℓ(xᵢ, yᵢ, T_main; θ) of every sample, in evaluation mode. */
  mainLosses?(batch: Batch): Promise<Float32Array>;
  /** The validation data as batches that have features and main-task losses. */
  validationBatches?(): Iterable<Batch>;
  readonly gradients?: GradientAccess<Batch>;
  readonly influence?: InfluenceAccess<Batch>;
  /** The right distribution over the tasks for each sample, [B, K] with rows that sum to one, where it is known. */
  oracle?(batch: Batch): Float32Array;
  /** Writes what is needed to use the model, except its parameters, to the run folder. */
  saveFiles?(folder: string): void;
  /** Figures on test data, by name. */
  test?(): Promise<Readonly<Record<string, number>>>;
  /** Releases native memory and threads. */
  close?(): Promise<void>;
}

type Ability = 'trainBlend' | 'mainLosses' | 'validationBatches' | 'gradients' | 'influence' | 'oracle';

/** Checks the abilities of a problem; an error names the strategy if one is missing. */
export function requireAbilities<Batch, A extends Ability>(
  problem: Problem<Batch>,
  strategy: string,
  ...abilities: A[]
): Problem<Batch> & Required<Pick<Problem<Batch>, A>> {
  for (const ability of abilities) {
    if (problem[ability] !== undefined) continue;
    throw new InputError(`the strategy ${strategy} needs ${ABILITIES[ability]}, which this problem does not provide`, {
      key: 'strategy.name',
    });
  }
  return problem as Problem<Batch> & Required<Pick<Problem<Batch>, A>>;
}

const ABILITIES: Record<Ability, string> = {
  trainBlend: 'a training step on all tasks at once (trainBlend)',
  mainLosses: 'main-task losses of single samples (mainLosses)',
  validationBatches: 'validation data in batches (validationBatches)',
  gradients: 'access to gradients (gradients)',
  influence: 'reward data and losses at shifted parameters (influence)',
  oracle: 'a known answer (oracle)',
};

/** Index of a task given by its name or number m. */
export function taskIndex(tasks: readonly Task[], wanted: string | number, key: string): number {
  const index = tasks.findIndex(({ name, number }) => (typeof wanted === 'number' ? number : name) === wanted);
  if (index >= 0) return index;
  const known = tasks.map(({ name }) => name).join(', ');
  throw new InputError(`there is no task ${JSON.stringify(wanted)}, expected the name or number of one of ${known}`, {
    key,
  });
}

/** The feature groups that remain without those named in `without`. */
export function remainingGroups(groups: readonly FeatureGroup[], without: readonly string[]): readonly FeatureGroup[] {
  for (const name of without) {
    if (groups.some((group) => group.name === name)) continue;
    const known = groups.map((group) => group.name).join(', ');
    throw new InputError(`there is no feature group ${JSON.stringify(name)}, expected some of ${known}`, {
      key: 'strategy.without',
    });
  }
  const left = groups.filter(({ name }) => !without.includes(name));
  if (left.length > 0) return left;
  throw new InputError('no feature group is left for the scheduler to see (the strategy bandit needs none)', {
    key: 'strategy.without',
  });
}
