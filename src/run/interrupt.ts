/** The exit code of a program that a signal has stopped (128 + SIGINT). */
export const INTERRUPTED = 130;

/** A wish to stop, expressed by Ctrl-C or by a signal of the system. */
export interface Interrupt {
  /** The first signal that came in, if any. */
  readonly signal: NodeJS.Signals | undefined;
  /** Gives the signals their usual meaning back. */
  dispose(): void;
}

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
 * are seen only when the event loop turns: a training loop has to let it.
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

/** Milliseconds: one Ctrl-C arrives twice where a wrapper such as npm passes on what the terminal has sent already. */
const SAME_KEYSTROKE = 300;
