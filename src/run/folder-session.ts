import { setImmediate } from 'node:timers/promises';
import { InputError } from '../errors.js';
import { type Checkpoint, checkpointFolder, latestCheckpoint, saveBest, saveCheckpoint } from './checkpoint.js';
import { type ConfigValues, type OwnedRunFolder, recordState, requireCompatible, requireSameConfig } from './folder.js';
import { countLines, EventWriter, type LogRecord, MetricsLog, numbersOf, startOfLines } from './metrics-log.js';
import { metricsFile, timingsFile } from './metrics-reader.js';
import { type Interrupt, listenForInterrupt, Progress, type ProgressFields } from './progress.js';
import {
  EarlyStopping,
  type EarlyStoppingState,
  type Resumable,
  type RunSession,
  type RunSessionOptions,
  type SessionOutcome,
} from './session.js';
import { toolVersion } from './versions.js';

/** The session of a run that has a folder. */
export class FolderSession implements RunSession {
  private readonly folder: string;
  private readonly options: RunSessionOptions;
  private readonly run: OwnedRunFolder;
  private readonly subject: Resumable;
  private readonly metrics: MetricsLog;
  private readonly timings: MetricsLog;
  private readonly events: EventWriter | undefined;
  private readonly bar: Progress;
  private readonly stopping: EarlyStopping;
  private readonly schedule: SaveSchedule;
  private readonly interrupt: Interrupt;
  private readonly started = performance.now();
  /** Processor time of the process when the session was opened. */
  private readonly startedAt = processorSeconds();
  private lastTurn = this.started;
  /** The session's own state at the last safe point. */
  private safePoint: SafePoint;
  private savedStep: number | undefined;
  /** The step that the session began after. */
  private readonly openedAt: number;
  /** Checkpoints that could not be read. */
  private readonly damaged = new Set<string>();

  constructor(run: OwnedRunFolder, options: RunSessionOptions, subject: Resumable) {
    const { saving, earlyStopping, logging } = options.config;
    this.folder = run.path;
    this.options = options;
    this.run = run;
    this.subject = subject;

    const warnings: string[] = [];
    const saved = openCheckpoint(run, (warning, path) => {
      warnings.push(warning);
      this.damaged.add(path);
    });
    this.safePoint = saved?.state.session ?? { step: 0, metrics: 0, stopping: undefined };
    this.savedStep = saved?.step;
    const { step, metrics, stopping } = this.safePoint;
    this.openedAt = step;
    if (saved !== undefined) subject.restore({ tensors: saved.tensors, state: saved.state.subject });

    run.lock.requireHeld();
    this.events = logging.tensorboard
      ? new EventWriter(run.path, { resumedAt: options.resume ? step : undefined })
      : undefined;
    this.metrics = new MetricsLog(metricsFile(run.path), metrics, run.lock);
    this.timings = openTimings(run, countLines(this.metrics.path, metrics));
    this.stopping = new EarlyStopping({ mode: options.mode ?? 'max', ...earlyStopping }, stopping);
    this.schedule = new SaveSchedule(saving, step);
    const { total, quiet, stream } = options;
    this.bar = new Progress({ total, step, quiet, stream, intervalSeconds: logging.progressSeconds });
    for (const warning of warnings) this.bar.warn(`warning: ${warning}`);
    this.interrupt = listenForInterrupt({
      announce: (signal) => this.bar.note(`${signal}: saving after this step; again to stop at once without saving`),
    });
  }

  get step(): number {
    return this.safePoint.step;
  }

  get stopRequested(): boolean {
    return this.interrupt.signal !== undefined;
  }

  get shouldStop(): boolean {
    return this.stopRequested || this.stopping.stop || this.step >= (this.options.until ?? Number.POSITIVE_INFINITY);
  }

  get bestSoFar(): EarlyStoppingState['best'] {
    return this.stopping.best;
  }

  log(step: number, record: LogRecord): void {
    this.metrics.append({ step, ...record });
    const seconds = (performance.now() - this.started) / 1000;
    const processor = processorSeconds() - this.startedAt;
    this.timings.append({ step, time: new Date().toISOString(), seconds, processor });
    this.events?.scalars(step, numbersOf(record));
  }

  progress(step: number, fields: ProgressFields | (() => ProgressFields) = {}): void {
    this.bar.update(step, fields);
  }

  note(text: string): void {
    this.bar.note(text);
  }

  best(step: number, score: number, counts?: boolean): boolean {
    const isBest = this.stopping.update(step, score, counts);
    const { lock: owner } = this.run;
    if (isBest) saveBest(checkpointFolder(this.folder), this.checkpoint({ ...this.safePoint, step }), { owner });
    return isBest;
  }

  async maybeSave(step: number): Promise<void> {
    this.safePoint = {
      step,
      metrics: this.metrics.length,
      stopping: this.stopping.state,
    };
    if (this.schedule.due(step)) {
      await this.subject.settle?.();
      this.save();
    }
    if (performance.now() - this.lastTurn < TURN_INTERVAL) return;
    await setImmediate();
    this.lastTurn = performance.now();
    // A process that has lost the folder must stop now, not at its next write.
    this.run.lock.requireHeld();
  }

  /** Ends the session after a loop without errors. What the loop did after the last safe point is discarded. */
  end(): SessionOutcome {
    const { step } = this;
    if (this.savedStep !== step) this.save();
    const { total, until } = this.options;
    const complete = until === undefined && (!this.stopRequested || step === total);
    const state = complete ? 'finished' : 'interrupted';
    recordState(this.run, state);
    const resumeCommand = this.options.resumeCommand ?? `tcts train --resume ${this.folder}`;
    if (!complete) this.note(`stopped after step ${step}, everything is saved; to continue: ${resumeCommand}`);
    this.close();
    const { best, stop } = this.stopping;
    const stoppedEarly = complete && stop && step !== total;
    return { state, step, best, stoppedEarly, signal: this.interrupt.signal, resumeCommand };
  }

  /**
   * The loop has failed. Nothing is saved, since the state is not that of a safe point. Returns whether the folder
   * still holds everything it held when the session was opened.
   */
  abandon(): { readonly unchanged: boolean } {
    try {
      this.close();
    } catch {
      // The user must see the failure itself.
    }
    const { step, metrics } = this.safePoint;
    return { unchanged: step === this.openedAt && metrics === this.metrics.length && this.damaged.size === 0 };
  }

  private save(): void {
    this.metrics.sync();
    this.timings.sync();
    this.events?.sync();
    const { keep } = this.options.config.saving;
    const options = { keep, damaged: this.damaged, owner: this.run.lock };
    const path = saveCheckpoint(checkpointFolder(this.folder), this.checkpoint(this.safePoint), options);
    this.damaged.delete(path);
    this.savedStep = this.step;
    this.schedule.saved(this.step);
  }

  private checkpoint(session: SafePoint): Checkpoint {
    const { tensors, state } = this.subject.capture();
    const { config } = this.options;
    const saved: SavedState = { version: toolVersion, config, session, subject: state };
    return { step: session.step, tensors, state: saved };
  }

  private close(): void {
    this.bar.clear();
    this.interrupt.dispose();
    this.metrics.close();
    this.timings.close();
    this.events?.close();
  }
}

interface SafePoint {
  readonly step: number;
  /** Length of the log in bytes. */
  readonly metrics: number;
  readonly stopping: EarlyStoppingState | undefined;
}

interface SavedState {
  readonly version: string;
  readonly config: ConfigValues;
  readonly session: SafePoint;
  readonly subject: unknown;
}

/** The checkpoint to continue from; undefined if the run was stopped before it saved one. */
function openCheckpoint(run: OwnedRunFolder, warn: (sentence: string, path: string) => void) {
  const folder = checkpointFolder(run.path);
  const found = latestCheckpoint(folder, warn);
  if (found === undefined) return undefined;
  const state = found.state as SavedState;
  if (typeof state?.version !== 'string' || typeof state.session?.step !== 'number') {
    throw new InputError('it is not a checkpoint of a training run', { file: found.path });
  }
  requireCompatible(state.version, found.path);
  requireSameConfig(state.config, run.config, found.path);
  return { ...found, state };
}

/** The times of the lines of `metrics.jsonl`, one per line. They only inform: if some are missing, the run continues. */
function openTimings({ path, lock }: OwnedRunFolder, lines: number): MetricsLog {
  const file = timingsFile(path);
  const start = startOfLines(file, lines);
  const timings = new MetricsLog(file, start.length, lock);
  timings.fill(lines - start.lines);
  return timings;
}

/** Processor time of all threads of this process. */
function processorSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Milliseconds between turns of the event loop, in which signals arrive. */
const TURN_INTERVAL = 50;

/** How often a run is saved. */
export interface SaveScheduleOptions {
  /** A checkpoint is due whenever the step passes a multiple of this; null: by time only. */
  readonly everySteps: number | null;
  /** A checkpoint is due when the last one is this old; null: by steps only. */
  readonly everySeconds: number | null;
}

/**
 * When to save: after a number of steps or of seconds, whichever comes first. Saving only reads the state of a run, so
 * neither the times of saving nor the clock can affect the results.
 */
export class SaveSchedule {
  private readonly options: SaveScheduleOptions;
  private readonly now: () => number;
  private savedStep: number;
  private savedAt: number;

  /** `now` is a clock in milliseconds. */
  constructor(options: SaveScheduleOptions, step = 0, now: () => number = () => performance.now()) {
    this.options = options;
    this.now = now;
    this.savedStep = step;
    this.savedAt = now();
  }

  /** Whether a checkpoint should be saved at this step. */
  due(step: number): boolean {
    const { everySteps, everySeconds } = this.options;
    if (step === this.savedStep) return false;
    if (everySteps !== null && Math.floor(step / everySteps) > Math.floor(this.savedStep / everySteps)) return true;
    return everySeconds !== null && this.now() - this.savedAt >= 1000 * everySeconds;
  }

  /** Notes that one was saved at this step. */
  saved(step: number): void {
    this.savedStep = step;
    this.savedAt = this.now();
  }
}
