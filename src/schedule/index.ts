// For the schema of your own problem.
export { z } from 'zod';
// Where `train` runs: with a run folder, or without.
export { type RunSession, type RunSessionOptions, runSession, transientSession } from '../run/index.js';
export * from './algorithm1.js';
export * from './algorithm1.js';
export {
  type NetworkPrograms,
  NetworkTraining,
  type NetworkTrainingOptions,
  rowsAt,
  scatteredPieces,
  spacedPlaces,
  type TrainingInfluence,
  taskWeights,
  trainingInfluence,
  writeRows,
} from './network-training.js';
export {
  type Arm,
  type Branch,
  branchKey,
  type ProbePlan,
  type ProbePlanOptions,
  type ProbeStep,
  planProbe,
  probeArms,
  probeSeed,
} from './probe.js';
export * from './probe-findings.js';
export * from './problem.js';
export * from './problem-kind.js';
export * from './reward.js';
export * from './snapshots.js';
export {
  createStrategy,
  registerStrategy,
  type StrategyConfig,
  strategies,
  strategyNamed,
  strategySchema,
} from './strategies/index.js';
export { Learned, type LearnedOptions, PAPER, STABLE } from './strategies/learned.js';
export { oracleRows } from './strategies/oracle.js';
export * from './strategy.js';
export { contextual, contextualKind, knownAnswer, knownAnswerKind, LinearProblem } from './synthetic.js';
