import { uptime } from 'node:os';

/**
 * The right to work on a job, for as long as Redis is told often enough that we are alive. Another worker may begin with
 * the job `milliseconds` after the last renewal; before that, `lost` fires, so that what is running can save itself, and
 * then `expired`, when it must be gone. Time is counted from when a renewal was sent, by clocks that do not follow the
 * wall clock but go on while the machine is asleep: neither a jump, nor a slow answer, nor a closed lid lengthens it.
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

  /** `renew` asks Redis for another `milliseconds` and tells whether the job is still ours. */
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
