export * from './checkpoint.js';
export { commonKeys, coresOf, type Division, freeOnResume, runPath, section, workersOf } from './config/common.js';
export * from './config/differences.js';
export * from './config/load.js';
export { jsonSchema, referenceYaml } from './config/reference.js';
export * from './early-stopping.js';
export * from './evaluated-data.js';
export {
  type ConfigValues,
  checkpointFolder,
  createRun,
  isRun,
  isRunning,
  openRun,
  type RunFolder,
  type RunInfo,
  type RunState,
  resumeRun,
} from './folder.js';
export * from './interrupt.js';
export { acquireLock, isElsewhere, type Lock, type LockHolder, LostLockError, lockHolder } from './lock.js';
export { type LogRecord, MetricsLog, parseLogLine, readMetrics } from './metrics-log.js';
export * from './progress.js';
export * from './save-policy.js';
export * from './session.js';
export { runSharedSession, shareSnapshot } from './shared-session.js';
export { EventWriter } from './tensorboard.js';
export { type TransientSession, transientSession } from './transient-session.js';
export { toolVersion } from './versions.js';
