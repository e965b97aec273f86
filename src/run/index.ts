export * from './checkpoint.js';
export { jsonSchema, referenceYaml } from './config/key-schema.js';
export * from './config/load.js';
export { type Difference, differences, resolvedYaml } from './config/sources.js';
export {
  type ConfigValues,
  createRun,
  descriptionFiles,
  type FoundRun,
  findRunFolders,
  foldersHolding,
  isRun,
  isRunning,
  MEMBERS_FILE,
  type Member,
  memberFolder,
  membersJson,
  openRun,
  type RunFolder,
  type RunInfo,
  type RunState,
  readMembers,
  recordState,
  resumeRun,
  runConfigFile,
  wholeRun,
} from './folder.js';
export { SaveSchedule, type SaveScheduleOptions } from './folder-session.js';
export { acquireLock, isElsewhere, type Lock, type LockHolder, LostLockError, lockHolder } from './lock.js';
export { EventWriter, type LogRecord, MetricsLog } from './metrics-log.js';
export * from './metrics-reader.js';
export * from './progress.js';
export * from './results.js';
export * from './session.js';
export { runSharedSession, shareSnapshot } from './shared-session.js';
export { toolVersion } from './versions.js';
