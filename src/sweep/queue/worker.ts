import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { availableParallelism, uptime } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { Job as QueuedJob, UnrecoverableError, Worker } from 'bullmq';
import { graphicsCards } from '../../devices.js';
import { type Job, type JobProgress, type Outcome, runJob, type StopOptions } from '../job.js';
import { CoreBudget } from '../local-executor.js';
import {
  connectionTo,
  jobOf,
  type Message,
  noteOutages,
  type Outages,
  PREFIX,
  parseJobMessage,
  QUEUE_NAME,
  redacted,
  requireSameVersion,
  STOPPED,
} from './connection.js';
import { beginAttempt, requireSame, type SharedFolder, sharedFolder } from './shared-folder.js';

export interface WorkerOptions {
  /** The folder that this machine shares with the sweep. */
  readonly runs: string;
  /** Name of the queue. Default `runs`. */
  readonly name?: string;
  /** Cores used by all jobs together; one that needs more runs alone. Default all. */
  readonly cores?: number;
  /** Jobs at a time. Default as many as the cores allow. */
  readonly concurrency?: number;
  /**
   * Seconds without a heartbeat after which a job is given to another worker: within a third of it, a process must be
   * able to finish its step and save its state. Default 30.
   */
  readonly leaseSeconds?: number;
  /** Fires to stop: the worker's jobs save their state and return to the queue. */
  readonly signal: AbortSignal;
  /** Receives log lines. Default none. */
  readonly note?: (line: string) => void;
  /** What runs a job. Default `runJob`. */
  readonly run?: typeof runJob;
}

/**
 * Takes jobs from a queue in Redis and runs them, until `signal` fires. A worker that is itself at fault (its version
 * differs, its folder is not the shared one or is not writable) returns its jobs and throws.
 *
 * BullMQ locks jobs, detects lost workers, gives their jobs to others, counts how often, and orders the queue.
 * Ours is what it cannot know: how many cores a job needs (jobs are fetched one by one, and returned if they do not
 * fit), that a training must save its state *before* its lock expires while Redis is silent (`Lease`), and that the
 * previous worker is really gone although Redis may have lost its data (`beginAttempt`).
 */
export async function serveQueue(url: string, options: WorkerOptions): Promise<void> {
  const { name = QUEUE_NAME, leaseSeconds = 30, note = () => {} } = options;
  const shared = sharedFolder(options.runs);
  const connection = await connectionTo(url);
  const devices = ['cpu', ...graphicsCards().map(({ name }) => `webgpu (${name})`)].join(', ');
  note(`listening to ${redacted(url)}, run folders in ${options.runs}, devices ${devices}`);
  const worker = new Worker<Message>(name, null, {
    connection,
    prefix: PREFIX,
    autorun: false,
    lockDuration: 1000 * leaseSeconds,
    stalledInterval: 500 * leaseSeconds,
    maxStalledCount: MOST_LOSSES,
    drainDelay: POLL_SECONDS,
  });
  const outages = noteOutages(worker, url, note);
  try {
    await new QueueWorker(worker, { ...options, shared, leaseSeconds, note, outages }).serve();
  } finally {
    // Forced: a regular close would wait for a Redis that is away.
    await worker.close(true);
  }
}

interface Settings extends WorkerOptions {
  readonly shared: SharedFolder;
  readonly leaseSeconds: number;
  readonly note: (line: string) => void;
  readonly outages: Outages;
}

class QueueWorker {
  private readonly worker: Worker<Message>;
  private readonly settings: Settings;
  private readonly budget: CoreBudget;
  private readonly attended = new Map<string, Promise<void>>();
  private readonly fault = new AbortController();
  /** Fires when nothing more is to be started. */
  private readonly ending: AbortSignal;

  constructor(worker: Worker<Message>, settings: Settings) {
    const { cores = availableParallelism(), concurrency = cores, signal } = settings;
    this.worker = worker;
    this.settings = settings;
    this.budget = new CoreBudget(cores, concurrency);
    this.ending = AbortSignal.any([signal, this.fault.signal]);
  }

  async serve(): Promise<void> {
    await this.worker.startStalledCheckTimer();
    // A pending fetch returns soon, unless Redis is away.
    const patience = once(this.ending, 'abort').then(() => sleep(2000 * POLL_SECONDS));
    await Promise.race([this.takeJobs(), patience]);
    await Promise.all(this.attended.values());
    this.fault.signal.throwIfAborted();
  }

  private async takeJobs(): Promise<void> {
    while (!this.ending.aborted) {
      const job = this.budget.fits(1) ? await this.next() : await this.budget.change();
      if (job) await this.begin(job);
    }
  }

  private async next(): Promise<HeldJob | undefined> {
    try {
      const job = await this.worker.getNextJob(randomUUID());
      this.settings.outages.answered();
      return job && new HeldJob(this.worker, job, 1000 * this.settings.leaseSeconds);
    } catch (error) {
      this.worker.emit('error', error as Error);
      await sleep(1000 * POLL_SECONDS);
      return undefined;
    }
  }

  /** Runs a job alongside the others, or returns it if there are not enough cores now. */
  private async begin(held: HeldJob): Promise<void> {
    if (this.ending.aborted) return held.giveBack();
    const cores = held.message?.cores ?? 1;
    if (!this.budget.fits(cores)) {
      const change = this.budget.change();
      await held.giveBack();
      return change;
    }
    const giveCoresBack = this.budget.lend(cores);
    // A job that was lost and came back to us: the earlier attempt must end first.
    const earlier = this.attended.get(held.id);
    const attending = Promise.resolve(earlier)
      .then(() => this.attend(held))
      .finally(() => {
        giveCoresBack();
        if (this.attended.get(held.id) === attending) this.attended.delete(held.id);
      });
    this.attended.set(held.id, attending);
  }

  private async attend(held: HeldJob): Promise<void> {
    try {
      const outcome = await this.attempt(held);
      this.note(held, wordsFor(outcome, held));
      if (outcome.state === 'done') await held.complete();
      else if (outcome.state === 'failed') await held.fail(outcome.reason);
      else if (held.stop.aborted) await held.fail(STOPPED);
      else await held.giveBack();
    } catch (error) {
      this.fault.abort(error);
      await held.giveBack();
    }
  }

  /** Throws if this worker is at fault. */
  private async attempt(held: HeldJob): Promise<Outcome> {
    const { shared, leaseSeconds } = this.settings;
    requireSameVersion(held.data);
    const { message, token } = held;
    if (message === undefined) return { state: 'failed', reason: 'what was found in the queue is not a job of tcts' };
    requireSame(shared, message.shared);
    if (message.stop) return { state: 'failed', reason: STOPPED };
    if (held.isHopeless) return { state: 'failed', reason: `${MOST_LOSSES} workers were lost while at it` };

    const job = jobOf(message, shared.path);
    const { lost, expired } = held.lease;
    const signal = AbortSignal.any([this.ending, held.stop, lost]);
    const attempt = await beginAttempt(shared, held.id, { token, leaseSeconds, folder: job.folder, signal });
    if (attempt === undefined) return { state: 'stopped' };
    this.note(held, 'begun');
    const outcome = await this.run(job, held, { signal, kill: expired });
    attempt.end(expired.aborted ? undefined : outcome);
    return outcome;
  }

  private async run(job: Job, held: HeldJob, stop: StopOptions): Promise<Outcome> {
    const { run = runJob } = this.settings;
    try {
      return await run(job, { ...stop, onProgress: (progress) => held.show(progress) });
    } catch (error) {
      return { state: 'failed', reason: `internal error: ${(error as Error).message}` };
    }
  }

  private note({ id, message }: HeldJob, what: string): void {
    this.settings.note(`${message?.folder ?? id}: ${what}`);
  }
}

function wordsFor(outcome: Outcome, { lease, stop }: HeldJob): string {
  if (outcome.state === 'done') return 'done';
  if (outcome.state === 'failed') return `failed: ${outcome.reason}`;
  if (stop.aborted) return STOPPED;
  return lease.lost.aborted ? 'saved and given up, as Redis has lost the job or does not answer' : 'given back';
}

/** Lost workers after which the job itself counts as the cause. */
const MOST_LOSSES = 50;

/** Seconds for which an idle worker waits for a job before it checks whether to end. */
const POLL_SECONDS = 1;

/** A job of the queue while this worker holds it. */
export class HeldJob {
  readonly id: string;
  /** Proves to the queue that we hold it. */
  readonly token: string;
  /** As found in the queue. */
  readonly data: unknown;
  /** The same, parsed; undefined if it is no job of this tool. */
  readonly message: Message | undefined;
  /** Whether BullMQ has counted more lost workers at this job than `maxStalledCount`. */
  readonly isHopeless: boolean;
  readonly lease: Lease;
  /** Fires when the sweep asks the job to stop. */
  readonly stop: AbortSignal;

  private readonly job: QueuedJob<Message>;
  private showing = false;

  constructor(worker: Worker<Message>, job: QueuedJob<Message>, milliseconds: number) {
    const stop = new AbortController();
    this.job = job;
    this.id = job.id!;
    this.token = job.token!;
    this.data = job.data;
    this.message = parseJobMessage(job.data);
    this.isHopeless = job.deferredFailure !== undefined;
    this.stop = stop.signal;
    this.lease = new Lease(milliseconds, async () => {
      const [extended, now] = await Promise.all([
        job.extendLock(this.token, milliseconds),
        QueuedJob.fromId<Message>(worker, this.id),
      ]);
      if (now?.data.stop) stop.abort();
      return extended === 1;
    });
  }

  /** Reports progress, unless the last report is still under way. */
  show(progress: JobProgress): void {
    if (this.showing) return;
    this.showing = true;
    const shown = () => {
      this.showing = false;
    };
    this.job.updateProgress(progress).then(shown, shown);
  }

  async complete(): Promise<void> {
    await this.letGo(() => this.job.moveToCompleted(undefined, this.token, false));
  }

  async fail(reason: string): Promise<void> {
    await this.letGo(() => this.job.moveToFailed(new UnrecoverableError(reason), this.token, false));
  }

  /** Puts it at the head of the queue. */
  async giveBack(): Promise<void> {
    await this.letGo(() => this.job.moveToWait(this.token));
  }

  /** Tells Redis, again and again until it answers or the job is no longer ours. */
  private async letGo(tell: () => Promise<unknown>): Promise<void> {
    const { expired } = this.lease;
    while (!expired.aborted) {
      const told = tell().then(
        () => true,
        (error: { code?: unknown }) => typeof error.code === 'number',
      );
      if (await Promise.race([told, once(expired, 'abort')])) break;
      await sleep(RETRY_MILLISECONDS);
    }
    this.lease.release();
  }
}

const RETRY_MILLISECONDS = 500;

/**
 * The right to work on a job, for as long as we renew its lock in Redis often enough. Another worker may begin the job
 * `milliseconds` after the last renewal. Before that, `lost` fires, so that the training can save itself, and then
 * `expired`, when it must be gone. Time counts from when a renewal was sent, on clocks that ignore changes of the wall
 * clock but run on while the machine sleeps: neither a clock change, nor a slow answer, nor a closed lid lengthens it.
 */
export class Lease {
  /** Fires when the job is lost, or soon will be because Redis has not answered for too long. */
  readonly lost: AbortSignal;
  /** Fires when another worker may begin with the job at any moment. */
  readonly expired: AbortSignal;

  private readonly renew: () => Promise<boolean>;
  private readonly milliseconds: number;
  private readonly timer: NodeJS.Timeout;
  private readonly controllers = { lost: new AbortController(), expired: new AbortController() };
  private renewedAt = now();
  private asking = false;

  /** `renew` extends the lock in Redis by `milliseconds`; false if the job is no longer ours. */
  constructor(milliseconds: number, renew: () => Promise<boolean>) {
    this.renew = renew;
    this.milliseconds = milliseconds;
    this.lost = this.controllers.lost.signal;
    this.expired = this.controllers.expired.signal;
    this.timer = setInterval(() => this.beat(), milliseconds * BEAT);
  }

  /** The job is no longer worked on. */
  release(): void {
    clearInterval(this.timer);
  }

  private beat(): void {
    const age = elapsedSince(this.renewedAt) / this.milliseconds;
    if (age > LOST) this.controllers.lost.abort();
    if (age > EXPIRED) this.controllers.expired.abort();
    // While Redis is away, one question without an answer is enough.
    if (!this.asking && !this.lost.aborted) void this.ask();
  }

  private async ask(): Promise<void> {
    const sent = now();
    this.asking = true;
    try {
      if (await this.renew()) this.renewedAt = sent;
      else this.controllers.lost.abort();
    } catch {
      // The connection broke: the next beat asks again.
    } finally {
      this.asking = false;
    }
  }
}

/** A moment by two clocks, in milliseconds. */
interface Moment {
  /** Fine, but on Linux it stands still while the machine is asleep. */
  readonly process: number;
  /** Coarse, and keeps running (CLOCK_BOOTTIME). */
  readonly machine: number;
}

function now(): Moment {
  return { process: performance.now(), machine: 1000 * uptime() };
}

function elapsedSince(moment: Moment): number {
  const { process, machine } = now();
  return Math.max(process - moment.process, machine - moment.machine);
}

/** Parts of the lease: between two renewals; until one without an answer counts as failed; until all must be over. */
const BEAT = 1 / 10;
const LOST = 0.5;
const EXPIRED = 0.8;
