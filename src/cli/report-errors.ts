import { InputError } from '../errors.js';
import { colorsFor } from './terminal.js';

/** Runs a command; bad input becomes one sentence on standard error and exit code 1, never a stack trace. */
export async function runCommand(command: () => Promise<unknown>): Promise<void> {
  try {
    await command();
  } catch (error) {
    process.exitCode = 1;
    reportError(error);
    // Threads that the failure has left behind must not keep the process, and a sweep that waits for it, alive.
    setTimeout(() => process.exit(), GRACE).unref();
  }
}

/** Whoever reads the output may leave before its end, as `head` does: then the process ends without a word. */
export function endWithoutReader(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      process.exit();
    });
  }
}

/** One sentence on standard error; with TCTS_DEBUG the stack of what is not the input's fault. */
export function reportError(error: unknown, who = 'tcts'): void {
  const { red } = colorsFor(process.stderr);
  process.stderr.write(`${red(`${who}:`)} ${describe(error)}\n`);
}

function describe(error: unknown): string {
  if (error instanceof InputError) return error.message;
  if (process.env.TCTS_DEBUG && error instanceof Error) return error.stack ?? error.message;
  const message = error instanceof Error ? error.message : String(error);
  return `internal error: ${message} (set TCTS_DEBUG=1 for the stack)`;
}

/** Milliseconds in which what is still open can close. */
const GRACE = 2000;
