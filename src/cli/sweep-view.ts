import { formatDuration, type ProgressStream } from '../run/index.js';
import type { JobProgress, RunRecord } from '../sweep/index.js';
import { formatFigure, textTable } from '../text-table.js';

export interface SweepViewOptions {
  /** Runs that there will be. */
  readonly total: number;
  /** Show nothing. Default false. */
  readonly quiet?: boolean;
  /** What the validation of a run measures. Default: its performance as it is. */
  readonly validation?: (run: string) => { readonly name: string; readonly sign: 1 | -1 };
  /** Default standard error. */
  readonly stream?: ProgressStream;
  /** A clock in milliseconds. */
  readonly now?: () => number;
}

interface Running {
  readonly since: number;
  progress: JobProgress;
}

/** The runs of a sweep while they go on: a table that is redrawn on a terminal, a line for each run that ends elsewhere. */
export class SweepView {
  private readonly total: number;
  private readonly quiet: boolean;
  private readonly validation: Required<SweepViewOptions>['validation'];
  private readonly stream: ProgressStream;
  private readonly now: () => number;
  private readonly began: number;
  private readonly states = new Map<string, RunRecord['state']>();
  private readonly running = new Map<string, Running>();
  /** Best validation performance of each run, as far as it was seen. */
  private readonly best = new Map<string, number>();
  /** Runs that took time, which is what the rest is reckoned by. */
  private worked = 0;
  private drawnLines = 0;
  private nextDraw = 0;

  constructor(options: SweepViewOptions) {
    const { total, quiet = false, stream = process.stderr, now = () => performance.now() } = options;
    this.validation = options.validation ?? (() => ({ name: '', sign: 1 }));
    this.total = total;
    this.quiet = quiet;
    this.stream = stream;
    this.now = now;
    this.began = now();
  }

  change(run: RunRecord, progress?: JobProgress): void {
    const before = this.states.get(run.name);
    this.states.set(run.name, run.state);
    if (run.state === 'running') {
      const known = this.running.get(run.name);
      const shown = progress ?? { step: 0, steps: undefined };
      if (known === undefined) this.running.set(run.name, { since: this.now(), progress: shown });
      else known.progress = shown;
      if (shown.best !== undefined) this.best.set(run.name, shown.best);
      if (before !== 'running' && !this.stream.isTTY) this.line(`begun   ${run.name}`);
    } else {
      const was = this.running.get(run.name);
      this.running.delete(run.name);
      if (was !== undefined && run.state === 'done') this.worked++;
      if (run.state !== 'waiting') this.line(this.endOf(run, was));
    }
    this.draw();
  }

  /** A line for the user, above the table. */
  note(text: string): void {
    this.line(text);
    this.draw();
  }

  /** Removes the table. */
  clear(): void {
    if (this.drawnLines > 0) this.stream.write(`\x1b[${this.drawnLines}A\r\x1b[J`);
    this.drawnLines = 0;
  }

  private endOf({ name, state, reason }: RunRecord, was: Running | undefined): string {
    const words = { done: 'done    ', failed: 'failed  ', stopped: 'stopped ' }[state as 'done' | 'failed' | 'stopped'];
    const best = this.best.get(name);
    const details = [
      reason,
      state === 'done' && was === undefined && 'was done before',
      best !== undefined && `validation ${this.measured(name, best, true)}`,
      was !== undefined && formatDuration((this.now() - was.since) / 1000),
    ].filter(Boolean);
    return `${words}${name}${details.length === 0 ? '' : `: ${details.join(', ')}`}`;
  }

  private measured(run: string, best: number, named = false): string {
    const { name, sign } = this.validation(run);
    return `${named && name !== '' ? `${name} ` : ''}${formatFigure(sign * best)}`;
  }

  private line(text: string): void {
    if (this.quiet) return;
    this.clear();
    this.nextDraw = 0;
    this.stream.write(`${text}\n`);
  }

  private draw(): void {
    if (this.quiet || !this.stream.isTTY || this.now() < this.nextDraw) return;
    this.nextDraw = this.now() + REDRAW_INTERVAL;
    const rows = [...this.running].slice(0, MOST_ROWS).map(([name, { since, progress }]) => {
      const { step, steps, best } = progress;
      const share = steps === undefined ? '' : `${Math.floor((100 * step) / steps)} %`;
      const time = formatDuration((this.now() - since) / 1000);
      return [name, String(step), share, best === undefined ? '–' : this.measured(name, best), time];
    });
    const table = textTable(['run', 'update', '', 'validation', 'time'], rows);
    const width = Math.max(20, (this.stream.columns || 80) - 1);
    const lines = [...table.split('\n'), this.summary()].map((line) => [...line].slice(0, width).join(''));
    this.clear();
    this.stream.write(`${lines.join('\n')}\n`);
    this.drawnLines = lines.length;
  }

  private summary(): string {
    const count = (state: RunRecord['state']) => [...this.states.values()].filter((other) => other === state).length;
    const [done, failed] = [count('done'), count('failed')];
    const left = Math.max(0, this.total - done - failed);
    const parts = [`${done} of ${this.total} done`, failed > 0 && `${failed} failed`, `${this.running.size} running`];
    if (this.worked > 0 && left > 0) {
      const seconds = ((this.now() - this.began) / 1000 / this.worked) * left;
      parts.push(`about ${formatDuration(seconds)} left`);
    }
    return parts.filter(Boolean).join(', ');
  }
}

const REDRAW_INTERVAL = 200;

/** Rows of the table: a sweep on a queue may have many runs at work. */
const MOST_ROWS = 20;
