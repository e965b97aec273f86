/** The exit code of a program that a signal has stopped (128 + SIGINT). */
export const INTERRUPTED = 130;

/** A request to stop, by Ctrl-C or by a signal of the system. */
export interface Interrupt {
  /** The first signal that came in, if any. */
  readonly signal: NodeJS.Signals | undefined;
  /** Restores the usual meaning of the signals. */
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

/** Milliseconds: one Ctrl-C arrives twice if a wrapper such as npm passes on what the terminal has already sent. */
const SAME_KEYSTROKE = 300;
