export * from './checkpoint.js';
export { commonKeys, coresOf, type Division, freeOnResume, runPath, section, workersOf } from './config/common.js';
export * from './config/load.js';
export { jsonSchema, referenceYaml } from './config/reference.js';
export { type Difference, differences, resolvedYaml } from './config/sources.js';
export * from './early-stopping.js';
export {
  type ConfigValues,
  createRun,
  type FoundRun,
  findRunFolders,
  foldersHolding,
  isRun,
  isRunning,
  openRun,
  type RunFolder,
  type RunInfo,
  type RunState,
  recordState,
  resumeRun,
} from './folder.js';
export { SaveSchedule, type SaveScheduleOptions } from './folder-session.js';
export * from './interrupt.js';
export { acquireLock, isElsewhere, type Lock, type LockHolder, LostLockError, lockHolder } from './lock.js';
export { type LogRecord, MetricsLog } from './metrics-log.js';
export * from './metrics-reader.js';
export * from './progress.js';
export * from './results.js';
export * from './session.js';
export { runSharedSession, shareSnapshot } from './shared-session.js';
export { EventWriter } from './tensorboard.js';
export { toolVersion } from './versions.js';
