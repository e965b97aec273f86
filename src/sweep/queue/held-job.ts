import { once } from 'node:events';
import { uptime } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { Job as QueuedJob, UnrecoverableError, type Worker } from 'bullmq';
import type { JobProgress } from '../job.js';
import { type Message, parseMessage } from './connection.js';

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
    this.message = parseMessage(job.data);
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
  /** Coarse, and goes on (CLOCK_BOOTTIME). */
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
