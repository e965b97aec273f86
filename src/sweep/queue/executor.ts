import { setTimeout as sleep } from 'node:timers/promises';
import { Queue, type Job as QueuedJob } from 'bullmq';
import { makeFolder } from '../../files.js';
import type { Executor, Job, JobProgress, Outcome } from '../job.js';
import {
  connectionTo,
  jobIdentity,
  type Message,
  messageOf,
  noteOutages,
  type Outages,
  PREFIX,
  QUEUE_NAME,
  redacted,
  STOPPED,
} from './connection.js';
import { identify, sharedFolder } from './shared-folder.js';

export interface QueueExecutorOptions {
  /** The folder that this machine shares with the workers; all runs lie in it. */
  readonly runs: string;
  /** Name of the queue, for several in one Redis. Default `runs`. */
  readonly name?: string;
  /** Seconds between checks of the queue. Default 1. */
  readonly lookSeconds?: number;
  /** Receives messages for the user: Redis is away, no worker is listening. Default none. */
  readonly note?: (line: string) => void;
}

/**
 * Runs jobs through a queue in Redis, to which workers on any machine listen. Redis holds nothing that cannot be
 * replaced: finished work is in the run folders, and jobs that Redis has forgotten are queued again.
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
  /** Whether it has been queued, or was found in the queue with a worker running it. */
  queued: boolean;
  /** The progress reported last: each is reported once. */
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
  /** Since when no worker has held any of our jobs; undefined once the user was told. */
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
    const id = jobIdentity(message);
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

  /** Reports what workers have done, and queues missing jobs. */
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
    // Stopped by an earlier sweep.
    if (job.failedReason === STOPPED && !this.closing) await this.add(job.id!, submission.message);
    else this.settle(job.id!, outcomeOf(job));
  }

  /**
   * Jobs that are new, and those that Redis has forgotten because it was restarted without its data or with those of a while
   * ago. Some at a time, starting with the one not checked for longest.
   */
  private async addMissing(): Promise<void> {
    const some = [...this.submissions].slice(0, AT_ONCE);
    const states = await Promise.all(some.map(([id]) => this.queue.getJobState(id)));
    for (const [i, [id, submission]] of some.entries()) {
      this.submissions.delete(id);
      this.submissions.set(id, submission);
      // Jobs left behind by an earlier sweep do not count, unless a worker is running them.
      if (!submission.queued && states[i] !== 'active') await this.queue.remove(id);
      if (!submission.queued || states[i] === 'unknown') await this.add(id, submission.message);
      submission.queued = true;
    }
  }

  /** Removes jobs that no worker has started from the queue, and asks workers to stop the others. */
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
    // A job that a worker takes at this moment stays, and is asked to stop next time.
    if (!(await job.isActive())) await this.queue.remove(id);
    else if (!job.data.stop) await job.updateData({ ...job.data, stop: true });
  }

  private abandon(): void {
    this.note('Redis does not answer: its jobs stay in the queue, and the same sweep will find them again');
    for (const id of [...this.submissions.keys()]) this.settle(id, { state: 'stopped' });
    void this.queue.disconnect().catch(() => {});
  }

  /** Has no effect if the job is in the queue already: this keeps a run from being run twice. */
  private async add(id: string, message: Message): Promise<void> {
    await this.queue.add('run', message, { jobId: id, removeOnComplete: KEPT, removeOnFail: KEPT });
  }

  private settle(id: string, outcome: Outcome): void {
    this.submissions.get(id)?.settle(outcome);
    this.submissions.delete(id);
  }

  private async noteIdleness(): Promise<void> {
    if (this.idleSince === undefined || performance.now() - this.idleSince < PATIENCE) return;
    // Not every Redis allows counting its clients.
    const workers = await this.queue.getWorkersCount().catch(() => Number.NaN);
    if (workers !== 0) return;
    this.idleSince = undefined;
    const { url } = this.settings;
    this.note(
      `no worker is listening: on machines that share the folder, run tcts worker --queue ${redacted(url)} --runs DIR`,
    );
  }
}

/** A job that has just begun has no progress yet. */
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

/** Milliseconds without a worker before the user is told, and without an answer before `close` gives up. */
const PATIENCE = 10_000;

/** Jobs that Redis is asked about at a time. */
const AT_ONCE = 200;

/** Finished jobs that Redis keeps for sweeps that are gone. */
const KEPT = { count: 1000 };
