import { join } from 'node:path';
import { writeFileAtomic } from '../files.js';
import { Random } from '../random.js';
import type { Ranks } from '../ranks.js';
import {
  bestCheckpoint,
  checkpointFolder,
  runSession,
  runSharedSession,
  type Session,
  type SessionOutcome,
  type Snapshot,
  shareSnapshot,
  workersOf,
} from '../run/index.js';
import {
  createStrategy,
  type EpisodeRecord,
  type Problem,
  partOf,
  requireSinglePass,
  totalUpdates,
  train,
  trainee,
} from '../schedule/index.js';
import { createProblem, type TrainConfig } from './problems.js';

export interface TrainingRunOptions {
  readonly folder: string;
  /** Default false. */
  readonly resume?: boolean;
  /** Show no progress. Default false. */
  readonly quiet?: boolean;
  readonly onEpisode?: (record: EpisodeRecord) => void;
  /** The processes that share each batch, of which rank 0 alone has the folder. Default: this one alone. */
  readonly ranks?: Ranks;
}

/** What a run has come to; `result.json` of its folder. */
export interface TrainingResult {
  /** Updates made. */
  readonly updates: number;
  /** Validation performance on the main task, where it was best. */
  readonly best: { readonly performance: number; readonly update: number } | null;
  /** Figures of that best model on test data; null if the problem has none. */
  readonly test: Readonly<Record<string, number>> | null;
}

export interface TrainingRun {
  readonly outcome: SessionOutcome;
  /** Undefined if the run was interrupted. */
  readonly result: TrainingResult | undefined;
  /** Names of the tasks. */
  readonly tasks: readonly string[];
}

/** Trains the problem of a configuration with its strategy, in a run folder. */
export async function trainingRun(config: TrainConfig, options: TrainingRunOptions): Promise<TrainingRun> {
  const { folder, resume, onEpisode, ranks } = options;
  const isFirst = ranks === undefined || ranks.rank === 0;
  const quiet = options.quiet === true || !isFirst;
  const random = new Random(config.seed);
  const { threads } = config;
  const note = quiet ? undefined : (line: string) => process.stderr.write(`${line}\n`);
  const context = { random: random.fork('problem'), threads, workers: workersOf(config), ranks, note };
  const problem = await createProblem(config.problem, context);
  const strategy = await createStrategy(config.strategy, problem, random.fork('strategy'), threads);
  try {
    requireSinglePass(strategy, config.earlyStopping.patience);
    const subject = trainee(problem, strategy);
    const total = totalUpdates(config.training, strategy);
    const logEvery = config.logging.everySteps;
    const sessionOptions = { folder, config, resume, total, quiet };
    const loop = (session: Session): Promise<void> => {
      if (isFirst) problem.saveFiles?.(folder);
      return train(subject, session, { ...config.training, logEvery, onEpisode });
    };
    const outcome =
      ranks === undefined
        ? await runSession(sessionOptions, subject, loop)
        : await runSharedSession(ranks, sessionOptions, subject, loop);
    const tasks = problem.tasks.map(({ name }) => name);
    if (outcome.state === 'interrupted') return { outcome, result: undefined, tasks };
    const result = await evaluateBest(folder, problem, outcome, ranks);
    if (isFirst) writeFileAtomic(join(folder, 'result.json'), `${JSON.stringify(result, null, 2)}\n`);
    return { outcome, result, tasks };
  } finally {
    await strategy.close?.();
    await problem.close?.();
  }
}

async function evaluateBest(
  folder: string,
  problem: Problem,
  { step, best }: SessionOutcome,
  ranks: Ranks | undefined,
): Promise<TrainingResult> {
  const saved = ranks === undefined || ranks.rank === 0 ? bestState(folder) : undefined;
  const state = ranks === undefined ? saved : shareSnapshot(ranks, saved);
  if (state !== undefined) problem.restore(state);
  return {
    updates: step,
    best: best && { performance: best.score, update: best.step },
    test: (await problem.test?.()) ?? null,
  };
}

/** The problem as it was at its best. */
function bestState(folder: string): Snapshot | undefined {
  const saved = bestCheckpoint(checkpointFolder(folder));
  if (saved === undefined) return undefined;
  const { subject } = saved.state as { subject: unknown };
  return partOf({ tensors: saved.tensors, state: subject }, 'problem');
}
