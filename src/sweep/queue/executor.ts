import { setTimeout as sleep } from 'node:timers/promises';
import { Queue, type Job as QueuedJob } from 'bullmq';
import { makeFolder } from '../../files.js';
import type { Executor, Job, JobProgress, Outcome } from '../job.js';
import { redacted } from './address.js';
import { connectionTo, noteOutages, type Outages } from './connection.js';
import { identityOf, type Message, messageOf, PREFIX, QUEUE_NAME, STOPPED } from './message.js';
import { identify, sharedFolder } from './shared-folder.js';

export interface QueueExecutorOptions {
  /** The folder that this machine shares with the workers; all runs lie in it. */
  readonly runs: string;
  /** Name of the queue, for several in one Redis. Default `runs`. */
  readonly name?: string;
  /** Seconds between two looks at the queue. Default 1. */
  readonly lookSeconds?: number;
  /** Told what the user should know: Redis is away, no worker listens. Default nobody. */
  readonly note?: (line: string) => void;
}

/**
 * Runs jobs by way of a queue in Redis, to which workers on any machines listen. Redis holds nothing that cannot be
 * replaced: what is finished stands in the run folders, and what Redis has forgotten is put into the queue again.
 */
export async function queueExecutor(url: string, options: QueueExecutorOptions): Promise<Executor> {
  const connection = await connectionTo(url);
  makeFolder(options.runs);
  const folder = sharedFolder(options.runs);
  const shared = identify(folder);
  const queue = new Queue<Message>(options.name ?? QUEUE_NAME, { connection, prefix: PREFIX });
  return new QueueExecutor(queue, { ...options, url, runs: folder.path, shared });
}

type Settings = QueueExecutorOptions & { readonly url: string; readonly shared: string };

interface Submission {
  readonly message: Message;
  readonly onProgress: (progress: JobProgress) => void;
  readonly settle: (outcome: Outcome) => void;
  /** Whether it has been put into the queue, or was found there with a worker at it. */
  queued: boolean;
  /** The progress that was passed on last: each is passed on once. */
  shown?: string;
}

class QueueExecutor implements Executor {
  private readonly queue: Queue<Message>;
  private readonly settings: Settings;
  private readonly note: (line: string) => void;
  private readonly outages: Outages;
  private readonly submissions = new Map<string, Submission>();
  private readonly looking: Promise<void>;
  private answeredAt = performance.now();
  /** Since when no worker has been at our jobs; undefined once that was noted. */
  private idleSince: number | undefined = performance.now();
  private closing = false;

  constructor(queue: Queue<Message>, settings: Settings) {
    this.queue = queue;
    this.settings = settings;
    this.note = settings.note ?? (() => {});
    this.outages = noteOutages(queue, settings.url, this.note);
    this.looking = this.keepLooking();
  }

  async submit(job: Job, onProgress: (progress: JobProgress) => void): Promise<Outcome> {
    const message = messageOf(job, this.settings.runs, this.settings.shared);
    const id = identityOf(message);
    if (this.closing) return { state: 'stopped' };
    if (this.submissions.has(id)) throw new Error(`${id} was submitted twice`);
    return new Promise((settle) => this.submissions.set(id, { message, onProgress, settle, queued: false }));
  }

  async close(): Promise<void> {
    this.closing = true;
    while (await Promise.race([this.looking.then(() => false), sleep(this.pause, true)])) {
      if (performance.now() - this.answeredAt > PATIENCE) return this.abandon();
    }
    await this.queue.close();
  }

  private get pause(): number {
    return 1000 * (this.settings.lookSeconds ?? 1);
  }

  private async keepLooking(): Promise<void> {
    while (!this.closing || this.submissions.size > 0) {
      try {
        await (this.closing ? this.takeBack() : this.look());
        this.answered();
      } catch (error) {
        this.queue.emit('error', error as Error);
      }
      await sleep(this.pause);
    }
  }

  private answered(): void {
    this.answeredAt = performance.now();
    this.outages.answered();
  }

  /** Passes on what workers have done, and puts into the queue what is missing from it. */
  private async look(): Promise<void> {
    let active = 0;
    for (const job of await this.queue.getJobs(['completed', 'failed', 'active'])) {
      const submission = this.submissions.get(job.id!);
      if (!submission?.queued) continue;
      if (job.finishedOn === undefined) active++;
      await this.lookAt(job, submission);
    }
    await this.addMissing();
    if (active > 0 || this.submissions.size === 0) this.idleSince = performance.now();
    else await this.noteIdleness();
  }

  private async lookAt(job: QueuedJob<Message>, submission: Submission): Promise<void> {
    if (job.finishedOn === undefined) return showProgress(job, submission);
    await this.queue.remove(job.id!);
    // It was the sweep before this one that has asked for it.
    if (job.failedReason === STOPPED && !this.closing) await this.add(job.id!, submission.message);
    else this.settle(job.id!, outcomeOf(job));
  }

  /**
   * Jobs that are new, and those that Redis has forgotten, as it was restarted without its data or with those of a while
   * ago. Some at a time, from the one that was not looked at for longest.
   */
  private async addMissing(): Promise<void> {
    const some = [...this.submissions].slice(0, AT_ONCE);
    const states = await Promise.all(some.map(([id]) => this.queue.getJobState(id)));
    for (const [i, [id, submission]] of some.entries()) {
      this.submissions.delete(id);
      this.submissions.set(id, submission);
      // What an earlier sweep has left says nothing about now, unless a worker is at it.
      if (!submission.queued && states[i] !== 'active') await this.queue.remove(id);
      if (!submission.queued || states[i] === 'unknown') await this.add(id, submission.message);
      submission.queued = true;
    }
  }

  /** Takes jobs out of the queue that no worker has begun, and asks workers to let go of the others. */
  private async takeBack(): Promise<void> {
    const all = [...this.submissions];
    for (let i = 0; i < all.length; i += AT_ONCE) {
      await Promise.all(all.slice(i, i + AT_ONCE).map(([id, submission]) => this.takeBackOne(id, submission)));
      this.answered();
    }
  }

  private async takeBackOne(id: string, submission: Submission): Promise<void> {
    const job = await this.queue.getJob(id);
    if (job === undefined) return this.settle(id, { state: 'stopped' });
    if (job.finishedOn !== undefined) return this.lookAt(job, submission);
    // One that a worker takes in this moment stays, and is asked to stop the next time.
    if (!(await job.isActive())) await this.queue.remove(id);
    else if (!job.data.stop) await job.updateData({ ...job.data, stop: true });
  }

  private abandon(): void {
    this.note('Redis does not answer: what is in the queue stays there, and the same sweep will find it again');
    for (const id of [...this.submissions.keys()]) this.settle(id, { state: 'stopped' });
    void this.queue.disconnect().catch(() => {});
  }

  /** Without effect if the job is in the queue: this is what keeps a run from being run twice. */
  private async add(id: string, message: Message): Promise<void> {
    await this.queue.add('run', message, { jobId: id, removeOnComplete: KEPT, removeOnFail: KEPT });
  }

  private settle(id: string, outcome: Outcome): void {
    this.submissions.get(id)?.settle(outcome);
    this.submissions.delete(id);
  }

  private async noteIdleness(): Promise<void> {
    if (this.idleSince === undefined || performance.now() - this.idleSince < PATIENCE) return;
    // Not every Redis lets its clients be counted.
    const workers = await this.queue.getWorkersCount().catch(() => Number.NaN);
    if (workers !== 0) return;
    this.idleSince = undefined;
    const { url } = this.settings;
    this.note(`no worker listens: on machines that share the folder, tcts worker --queue ${redacted(url)} --runs DIR`);
  }
}

/** A job that has only been begun has no progress yet. */
function showProgress({ progress }: QueuedJob<Message>, submission: Submission): void {
  const text = JSON.stringify(progress);
  if (text === submission.shown) return;
  submission.shown = text;
  submission.onProgress(typeof progress === 'object' ? (progress as JobProgress) : { step: 0, steps: undefined });
}

function outcomeOf({ failedReason }: QueuedJob<Message>): Outcome {
  if (failedReason === undefined) return { state: 'done' };
  return failedReason === STOPPED ? { state: 'stopped' } : { state: 'failed', reason: failedReason };
}

/** Milliseconds: no worker for so long is worth a note; no answer for so long ends the waiting at the close. */
const PATIENCE = 10_000;

/** Jobs about which Redis is asked at once. */
const AT_ONCE = 200;

/** Finished jobs whose sweep is gone: Redis shall not collect them for ever. */
const KEPT = { count: 1000 };
