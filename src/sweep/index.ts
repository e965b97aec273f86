export { type Estimate, type EstimateOptions, estimate } from './estimate.js';
export { type Grid, type GridConfig, gridSchema, loadGrid } from './grid.js';
export { type Executor, isDone, type Job, type JobProgress, type Outcome, type RunJobOptions, runJob } from './job.js';
export { type LocalExecutorOptions, localExecutor } from './local-executor.js';
export {
  countRuns,
  type Plan,
  type PlannedGroup,
  type PlannedRun,
  type PlannedSetting,
  type PlanOptions,
  plannedRuns,
  planSweep,
  type RunConfig,
} from './plan.js';
export { type ChoiceRecord, type RunRecord, readSweep, type SweepRecord } from './record.js';
export { runSweep, type SweepOptions, settle } from './sweep.js';
