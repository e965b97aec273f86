// What `train` runs in: with a folder, or without.
export { runSession, type Session, type SessionOptions, transientSession } from '../run/index.js';
export * from './algorithm1.js';
export { oracleRows } from './answer.js';
export * from './config.js';
export * from './course.js';
export * from './learning.js';
export {
  type Arm,
  type Branch,
  branchKey,
  type PlanOptions,
  type ProbePlan,
  type ProbeStep,
  planProbe,
  probeArms,
  probeSeed,
} from './probe.js';
export { type Expectation, expectation, type Recommendation, recommend } from './probe-recommendation.js';
export {
  type Effect,
  gainsBySeed,
  type Interval,
  isCertain,
  isVisible,
  probeEffects,
  ratioOfMeans,
  smallestVisible,
} from './probe-statistics.js';
export * from './problem.js';
export * from './reward.js';
export * from './snapshots.js';
export { createStrategy, learnedOptions } from './strategies/index.js';
export { Learned, type LearnedOptions, PAPER, STABLE } from './strategies/learned.js';
export * from './strategy.js';
export { contextual, knownAnswer } from './synthetic/known-answer.js';
export { LinearProblem } from './synthetic/linear.js';
export * from './training.js';
export { scatteredPieces, spacedPlaces, type TrainingInfluence, trainingInfluence } from './training-influence.js';
