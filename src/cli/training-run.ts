import type { z } from 'zod';
import { InputError } from '../errors.js';
import { DivergedError } from '../optim/index.js';
import {
  createProblem,
  memberPlan,
  type TrainConfig,
  type trainConfigSchema,
  validationOf,
} from '../problems/index.js';
import { Random } from '../random.js';
import type { Ranks } from '../ranks.js';
import { bestFile } from '../run/checkpoint.js';
import {
  bestCheckpoint,
  checkpointFolder,
  latestCheckpoint,
  type RunSession,
  runPath,
  runSession,
  runSharedSession,
  type SessionOutcome,
  type Snapshot,
  shareSnapshot,
  type TrainingResult,
  trainedState,
  validationMeasure,
  type WriteFile,
  workersOf,
  writeResult,
} from '../run/index.js';
import {
  createStrategy,
  type EpisodeRecord,
  extentFor,
  type Problem,
  partOf,
  requireSinglePass,
  type Strategy,
  totalUpdates,
  train,
  trainee,
} from '../schedule/index.js';
import type { Executor } from '../sweep/index.js';
import { loadTrainConfig, requireFixedSizes, resolveSizes, sizesOf } from './sizing.js';

export interface TrainingRunOptions {
  readonly folder: string;
  /** Default false. */
  readonly resume?: boolean;
  /**
   * Pause after this many updates, before anything that follows a training: the test part is not looked at. Default:
   * never.
   */
  readonly until?: number;
  /** Show no progress. Default false. */
  readonly quiet?: boolean;
  /** Called after every episode. */
  readonly onEpisode?: (record: EpisodeRecord) => void;
  /** The processes that share each batch; only rank 0 has the folder. Default: this one alone. */
  readonly ranks?: Ranks;
  /** Of a run that consists of others: cores that they keep busy together. Default: as many as one of them needs. */
  readonly cores?: number;
  /** Of such a run: a queue in Redis and its name, through which workers train the members. Default: this machine does. */
  readonly queue?: string;
  readonly queueName?: string;
  /** Of such a run: what trains the members. Default: processes of this machine, or the queue. */
  readonly executor?: Executor;
}

/** The result of a training run. */
export interface TrainingRun {
  readonly outcome: SessionOutcome;
  /** Undefined if the run was interrupted. */
  readonly result: TrainingResult | undefined;
  /** Names of the tasks. */
  readonly tasks: readonly string[];
  /** Runs that it consists of; its best performance is their mean. Undefined: it was trained by itself. */
  readonly members?: number;
}

/** How `trainRun` runs a configuration. */
export interface TrainRunOptions extends Omit<TrainingRunOptions, 'folder' | 'ranks'> {
  /** Default: as the configuration says, `out` and `name`. */
  readonly folder?: string;
  /** Assignments `a.b=c` laid over the configuration. Default: none. */
  readonly set?: readonly string[];
}

/**
 * Trains as a configuration says, the path of a file or its values, in a run folder: what `tcts train` does. A run that
 * already exists is continued if `resume` is true; the same configuration gives the same bits.
 */
export async function trainRun(
  config: string | z.input<typeof trainConfigSchema>,
  { folder, set = [], ...options }: TrainRunOptions = {},
): Promise<TrainingRun & { readonly folder: string }> {
  const resolved = await loadTrainConfig(config, set);
  const path = folder ?? runPath(resolved, typeof config === 'string' ? config : 'run');
  return { ...(await trainingRun(resolved, { ...options, folder: path })), folder: path };
}

/** Trains the problem of a configuration with its strategy, in a run folder; or all the runs that it stands for. */
export async function trainingRun(given: TrainConfig, options: TrainingRunOptions): Promise<TrainingRun> {
  const { folder, resume, until, onEpisode, ranks } = options;
  const plan = await memberPlan(given);
  if (plan !== undefined) return (await import('./member-runs.js')).memberRuns(given, plan, options);
  const isFirst = ranks === undefined || ranks.rank === 0;
  const quiet = options.quiet === true || !isFirst;
  const config = resume ? sizesOf(folder, given) : await sizesFor(given, ranks, quiet);
  const random = new Random(config.seed);
  const { threads } = config;
  // Notes about the data are not progress: --quiet does not hide them.
  const note = isFirst ? (line: string) => process.stderr.write(`${line}\n`) : undefined;
  const updates = config.training.episodes * config.training.steps;
  const { device } = config;
  const context = { random: random.fork('problem'), threads, workers: workersOf(config), device, updates, ranks, note };
  const problem = await createProblem(config.problem, context);
  let strategy: Strategy | undefined;
  try {
    strategy = await createStrategy(config.strategy, problem, random.fork('strategy'), threads);
    requireSinglePass(strategy, config.earlyStopping.patience);
    const subject = trainee(problem, strategy);
    const extent = extentFor(problem, config.training);
    const total = totalUpdates(extent, strategy);
    const logEvery = config.logging.everySteps;
    const measure = config.problem.kind === 'module' ? validationOf(config.problem) : undefined;
    const sessionOptions = { folder, config, resume, total, until, quiet, measure };
    const loop = async (session: RunSession): Promise<void> => {
      if (isFirst) problem.saveFiles?.(folder);
      try {
        await train(subject, session, {
          ...extent,
          logEvery,
          validation: validationMeasure(config, { measure }),
          onEpisode,
        });
      } catch (error) {
        throw error instanceof DivergedError ? diverged(error, folder, config) : error;
      }
    };
    let result: TrainingResult | undefined;
    const conclude = async (outcome: SessionOutcome, write: WriteFile): Promise<void> => {
      if (outcome.state === 'interrupted') return;
      result = await evaluateBest(folder, problem, outcome, ranks);
      writeResult(write, result);
    };
    const outcome =
      ranks === undefined
        ? await runSession(sessionOptions, subject, loop, conclude)
        : await runSharedSession(ranks, sessionOptions, subject, loop, conclude);
    return { outcome, result, tasks: problem.tasks.map(({ name }) => name) };
  } finally {
    await strategy?.close?.();
    await problem.close?.();
  }
}

/** Chooses the sizes that the configuration leaves open. */
function sizesFor(config: TrainConfig, ranks: Ranks | undefined, quiet: boolean): Promise<TrainConfig> {
  if (ranks !== undefined) requireFixedSizes(config, 'mpirun');
  const began = performance.now();
  return resolveSizes(config, {
    say: (line) => quiet || process.stderr.write(`${line}\n`),
    used: () => (performance.now() - began) / 1000,
  });
}

/** What was not finite and where, what is left of the run, and what to try. */
function diverged({ message }: DivergedError, folder: string, { problem }: TrainConfig): InputError {
  const saved = latestCheckpoint(checkpointFolder(folder), () => {});
  const kept = saved === undefined ? 'no checkpoint had been saved' : `the checkpoint of update ${saved.step} is kept`;
  const key = 'learningRate' in problem ? 'problem.learningRate' : 'learning' in problem ? 'problem.learning.peak' : '';
  const rate = `a lower learning rate${key && ` (${key})`} may help`;
  return new InputError(`training has diverged: ${message}; ${kept}; ${rate}`, { file: folder });
}

async function evaluateBest(
  folder: string,
  problem: Problem,
  { step, best, stoppedEarly }: SessionOutcome,
  ranks: Ranks | undefined,
): Promise<TrainingResult> {
  const saved = best !== null && (ranks === undefined || ranks.rank === 0) ? bestState(folder, best.step) : undefined;
  const state = ranks === undefined ? saved : shareSnapshot(ranks, saved);
  if (state !== undefined) problem.restore(state);
  return {
    updates: step,
    stoppedEarly,
    best: best && { performance: best.score, update: best.step },
    test: (await problem.test?.()) ?? null,
  };
}

/** The problem in its best state. The last model is no substitute: its figures would not be those of the best. */
function bestState(folder: string, step: number): Snapshot {
  const checkpoints = checkpointFolder(folder);
  const saved = bestCheckpoint(checkpoints);
  if (saved?.step !== step) {
    const found = saved === undefined ? 'it is missing' : `it is that of update ${saved.step}`;
    throw new InputError(
      `expected the best model of the run, that of update ${step}, but ${found}; result.json is left as it was`,
      { file: bestFile(checkpoints) },
    );
  }
  return partOf(trainedState(saved), 'problem');
}
