import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Job as QueuedJob, UnrecoverableError, type Worker } from 'bullmq';
import type { JobProgress } from '../job.js';
import { Lease } from './lease.js';
import { type Message, parseMessage } from './message.js';

/** A job of the queue while this worker holds it. */
export class HeldJob {
  readonly id: string;
  /** Under which the queue knows that we hold it. */
  readonly token: string;
  /** As found in the queue. */
  readonly data: unknown;
  /** What that means; undefined if it is no job of this tool. */
  readonly message: Message | undefined;
  /** How often a worker was lost while it held the job. */
  readonly losses: number;
  readonly lease: Lease;
  /** Fires when the sweep wants the job to stop. */
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
    this.losses = job.stalledCounter;
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

  /** Passes progress on, unless the last one is still on its way. */
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

  /** To be the next job that a worker takes. */
  async giveBack(): Promise<void> {
    await this.letGo(() => this.job.moveToWait(this.token));
  }

  /** Tells Redis, until it has heard or the job is not ours any more and there is nothing to tell. */
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
