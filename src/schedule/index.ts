// What `train` runs in: with a folder, or without.
export { runSession, type Session, type SessionOptions, transientSession } from '../run/index.js';
export * from './algorithm1.js';
export { oracleRows } from './answer.js';
export * from './config.js';
export * from './course.js';
export * from './problem.js';
export * from './reward.js';
export * from './snapshots.js';
export { createStrategy, learnedOptions } from './strategies/index.js';
export { Learned, type LearnedOptions, PAPER, STABLE } from './strategies/learned.js';
export * from './strategy.js';
export { contextual, knownAnswer } from './synthetic/known-answer.js';
export { LinearProblem } from './synthetic/linear.js';
export * from './training.js';
export { spacedPlaces, type TrainingInfluence, trainingInfluence } from './training-influence.js';
