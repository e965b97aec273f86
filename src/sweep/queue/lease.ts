/**
 * The right to work on a job, for as long as Redis is told often enough that we are alive. Another worker may begin with
 * the job `milliseconds` after the last renewal; before that, `lost` fires, so that what is running can save itself, and
 * then `expired`, when it must be gone. Time is that of this machine's monotonic clock, counted from when a renewal was
 * sent: neither a jump of the wall clock nor a slow answer lengthens it.
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
  private renewedAt = performance.now();
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
    const age = (performance.now() - this.renewedAt) / this.milliseconds;
    if (age > LOST) this.controllers.lost.abort();
    if (age > EXPIRED) this.controllers.expired.abort();
    // While Redis is away, one question without an answer is enough.
    if (!this.asking && !this.lost.aborted) void this.ask();
  }

  private async ask(): Promise<void> {
    const sent = performance.now();
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

/** Parts of the lease: between two renewals; until one without an answer counts as failed; until all must be over. */
const BEAT = 1 / 10;
const LOST = 0.5;
const EXPIRED = 0.8;
