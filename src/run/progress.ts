/** What is shown next to the step: numbers (loss, reward) and text (the scheduler's top tasks). */
export type ProgressFields = Readonly<Record<string, number | string>>;

/** The part of a stream that progress is written to. */
export interface ProgressStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  /** Writes text verbatim. */
  write(text: string): unknown;
}

/** How progress is counted and shown. */
export interface ProgressOptions {
  /** Steps of the whole run; undefined if unknown. */
  readonly total?: number;
  /** The step to start from. Default 0. */
  readonly step?: number;
  /** What a step is called. Default `step`. */
  readonly unit?: string;
  /** Show nothing. Default false. */
  readonly quiet?: boolean;
  /** Seconds between lines if the stream is not a terminal. Default 10. */
  readonly intervalSeconds?: number;
  /** Default standard error, which leaves standard output to results. */
  readonly stream?: ProgressStream;
  /** A clock in milliseconds. */
  readonly now?: () => number;
}

/** A bar that is redrawn on a terminal; an occasional line elsewhere. */
export class Progress {
  private readonly total: number | undefined;
  private readonly unit: string;
  private readonly stream: ProgressStream;
  private readonly now: () => number;
  /** Milliseconds between two drawings; infinite when quiet. */
  private readonly interval: number;
  private readonly speed: Speed;
  private nextDraw: number;
  private last: { step: number; fields: ProgressFields } | undefined;
  private drawn = false;

  constructor(options: ProgressOptions = {}) {
    const { stream = process.stderr, now = () => performance.now(), intervalSeconds = 10, quiet = false } = options;
    this.total = options.total;
    this.unit = options.unit ?? 'step';
    this.stream = stream;
    this.now = now;
    this.interval = quiet ? Number.POSITIVE_INFINITY : stream.isTTY ? REDRAW_INTERVAL : 1000 * intervalSeconds;
    this.speed = new Speed(options.step ?? 0, now());
    // A bar appears at once; a line waits until there is something to show.
    this.nextDraw = stream.isTTY && !quiet ? now() : now() + this.interval;
  }

  /** Cheap unless a redraw is due; pass a function if the fields are expensive to make. */
  update(step: number, fields: ProgressFields | (() => ProgressFields) = {}): void {
    const now = this.now();
    if (now < this.nextDraw) return;
    this.nextDraw = now + this.interval;
    this.last = { step, fields: typeof fields === 'function' ? fields() : fields };
    this.draw(now);
  }

  /** Writes a line of text, above the bar if there is one; nothing when quiet. */
  note(text: string): void {
    if (this.interval !== Number.POSITIVE_INFINITY) this.warn(text);
  }

  /** The same for messages that are shown even when quiet. */
  warn(text: string): void {
    this.clear();
    this.stream.write(`${text}\n`);
    if (this.stream.isTTY && this.last !== undefined) this.draw(this.now());
  }

  /** Removes the bar. */
  clear(): void {
    if (this.drawn) this.stream.write(ERASE_LINE);
    this.drawn = false;
  }

  private draw(now: number): void {
    const { step, fields } = this.last!;
    this.speed.update(step, now);
    if (!this.stream.isTTY) {
      this.stream.write(`${this.parts(step, fields).join(', ')}\n`);
      return;
    }
    // One column is left free, because a terminal wraps when the last is filled; some report 0 columns for "unknown".
    const width = Math.max(20, (this.stream.columns || 80) - 1);
    const bar = this.total === undefined ? '' : `${drawBar(step / this.total, BAR_WIDTH)} `;
    this.stream.write(`${ERASE_LINE}${fitted(bar, this.parts(step, fields), width)}`);
    this.drawn = true;
  }

  private parts(step: number, fields: ProgressFields): string[] {
    const done = this.total === undefined ? '' : `/${this.total} (${Math.floor((100 * step) / this.total)} %)`;
    const shown = Object.entries(fields).map(([name, value]) => `${name} ${formatValue(value)}`);
    const parts = [`${this.unit} ${step}${done}`, ...shown];
    const perSecond = this.speed.stepsPerSecond;
    if (perSecond === undefined) return parts;
    parts.push(`${formatValue(perSecond)} ${this.unit}s/s`);
    if (this.total !== undefined) parts.push(`${formatDuration((this.total - step) / perSecond)} left`);
    return parts;
  }
}

/** Steps per second over about the last half minute: both steps and seconds fade exponentially. */
class Speed {
  private steps = 0;
  private seconds = 0;
  private lastStep: number;
  private lastTime: number;

  constructor(step: number, time: number) {
    this.lastStep = step;
    this.lastTime = time;
  }

  update(step: number, time: number): void {
    const seconds = (time - this.lastTime) / 1000;
    if (step <= this.lastStep || seconds <= 0) return;
    const keep = Math.exp(-seconds / SMOOTHING_SECONDS);
    this.steps = keep * this.steps + (step - this.lastStep);
    this.seconds = keep * this.seconds + seconds;
    this.lastStep = step;
    this.lastTime = time;
  }

  get stepsPerSecond(): number | undefined {
    return this.seconds > 0 ? this.steps / this.seconds : undefined;
  }
}

/** Parts next to a bar. If they are too wide, the last ones are dropped first, but never the first or the time left. */
function fitted(bar: string, parts: readonly string[], width: number): string {
  const kept = [...parts];
  const line = (): string => `${bar}${kept.join('  ')}`;
  const isTime = kept.at(-1)?.endsWith(' left') ?? false;
  while (kept.length > (isTime ? 2 : 1) && line().length > width) kept.splice(isTime ? -2 : -1, 1);
  return line().slice(0, width);
}

function drawBar(fraction: number, width: number): string {
  const eighths = Math.round(8 * width * Math.min(Math.max(fraction, 0), 1));
  const partial = eighths % 8 === 0 ? '' : '▏▎▍▌▋▊▉'[(eighths % 8) - 1];
  return `${'█'.repeat(eighths >> 3)}${partial}`.padEnd(width, '░');
}

function formatValue(value: number | string): string {
  return typeof value === 'string' ? value : String(Number(value.toPrecision(4)));
}

/** `3h05m`, `3m05s`, `5s`. */
export function formatDuration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  if (h > 0) return `${h}h${String(m).padStart(2, '0')}m`;
  return m > 0 ? `${m}m${String(s).padStart(2, '0')}s` : `${s}s`;
}

/** A length of time: `90s`, `30m`, `1.5h`, `1h30m`. */
export const DURATION = /^(?=\d)(\d+(\.\d+)?h)?(\d+(\.\d+)?m)?(\d+(\.\d+)?s)?$/;

/** Seconds of a length of time; undefined if the text is not one, or is zero. */
export function parseDuration(text: string): number | undefined {
  if (!DURATION.test(text)) return undefined;
  const of = (unit: string): number => Number(text.match(new RegExp(`([\\d.]+)${unit}`))?.[1] ?? 0);
  const seconds = 3600 * of('h') + 60 * of('m') + of('s');
  return seconds > 0 && Number.isFinite(seconds) ? seconds : undefined;
}

/** Restarts a line of the terminal. */
export const ERASE_LINE = '\r\x1b[K';
const REDRAW_INTERVAL = 100;
const BAR_WIDTH = 20;
const SMOOTHING_SECONDS = 30;

/** The exit code of a program stopped by a signal (128 + SIGINT). */
export const INTERRUPTED = 130;

/** A request to stop, by Ctrl-C or a signal. */
export interface Interrupt {
  /** The first signal that came in, if any. */
  readonly signal: NodeJS.Signals | undefined;
  /** Restores the default handling of signals. */
  dispose(): void;
}

/** What happens at a signal. */
export interface InterruptOptions {
  /** Called once, at the first signal. */
  readonly announce?: (signal: NodeJS.Signals) => void;
  /** Ends the process. Default `process.exit`. */
  readonly exit?: (code: number) => void;
  /** A clock in milliseconds. */
  readonly now?: () => number;
}

/**
 * The first SIGINT or SIGTERM asks for a stop at the next safe point; the next one ends the process at once. Signals
 * arrive only when the event loop turns, so a training loop has to yield to it.
 */
export function listenForInterrupt(options: InterruptOptions = {}): Interrupt {
  const { announce = () => {}, exit = process.exit, now = () => performance.now() } = options;
  let first: { signal: NodeJS.Signals; at: number } | undefined;

  function onSignal(signal: NodeJS.Signals): void {
    if (first === undefined) {
      first = { signal, at: now() };
      announce(signal);
    } else if (now() - first.at > SAME_KEYSTROKE) {
      exit(128 + SIGNALS[signal as keyof typeof SIGNALS]);
    }
  }

  const names = Object.keys(SIGNALS) as (keyof typeof SIGNALS)[];
  for (const name of names) process.on(name, onSignal);
  return {
    get signal() {
      return first?.signal;
    },
    dispose() {
      for (const name of names) process.off(name, onSignal);
    },
  };
}

const SIGNALS = { SIGINT: 2, SIGTERM: 15 };

/** Milliseconds: one Ctrl-C arrives twice if a wrapper such as npm forwards what the terminal has already sent. */
const SAME_KEYSTROKE = 300;
