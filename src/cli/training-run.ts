import { join } from 'node:path';
import { writeFileAtomic } from '../files.js';
import { Random } from '../random.js';
import { bestCheckpoint, checkpointFolder, runSession, type SessionOutcome } from '../run/index.js';
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
  const { folder, resume, quiet, onEpisode } = options;
  const random = new Random(config.seed);
  const { threads, workers } = config;
  const note = quiet ? undefined : (line: string) => process.stderr.write(`${line}\n`);
  const problem = await createProblem(config.problem, { random: random.fork('problem'), threads, workers, note });
  const strategy = await createStrategy(config.strategy, problem, random.fork('strategy'), threads);
  try {
    requireSinglePass(strategy, config.earlyStopping.patience);
    const subject = trainee(problem, strategy);
    const total = totalUpdates(config.training, strategy);
    const logEvery = config.logging.everySteps;
    const outcome = await runSession({ folder, config, resume, total, quiet }, subject, (session) => {
      problem.saveFiles?.(folder);
      return train(subject, session, { ...config.training, logEvery, onEpisode });
    });
    const tasks = problem.tasks.map(({ name }) => name);
    if (outcome.state === 'interrupted') return { outcome, result: undefined, tasks };
    const result = await evaluateBest(folder, problem, outcome);
    writeFileAtomic(join(folder, 'result.json'), `${JSON.stringify(result, null, 2)}\n`);
    return { outcome, result, tasks };
  } finally {
    await strategy.close?.();
    await problem.close?.();
  }
}

async function evaluateBest(folder: string, problem: Problem, { step, best }: SessionOutcome): Promise<TrainingResult> {
  const saved = bestCheckpoint(checkpointFolder(folder));
  if (saved !== undefined) {
    const { subject } = saved.state as { subject: unknown };
    problem.restore(partOf({ tensors: saved.tensors, state: subject }, 'problem'));
  }
  return {
    updates: step,
    best: best && { performance: best.score, update: best.step },
    test: (await problem.test?.()) ?? null,
  };
}
