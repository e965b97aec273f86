import { InputError } from '../errors.js';
import { colorsFor } from './colors.js';

/** Runs a command; bad input becomes one sentence on standard error and exit code 1, never a stack trace. */
export async function runCommand(command: () => Promise<unknown>): Promise<void> {
  const { red } = colorsFor(process.stderr);
  try {
    await command();
  } catch (error) {
    process.exitCode = 1;
    if (error instanceof InputError) {
      process.stderr.write(`${red('tcts:')} ${error.message}\n`);
    } else if (process.env.TCTS_DEBUG) {
      throw error;
    } else {
      const message = error instanceof Error ? error.message : String(error);
      process.stderr.write(`${red('tcts:')} internal error: ${message} (set TCTS_DEBUG=1 for the stack)\n`);
    }
  }
}
