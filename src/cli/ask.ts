import { createInterface } from 'node:readline/promises';
import { InputError } from '../errors.js';

/** Asks for a yes on the terminal. Where there is none, `--yes` has to be said instead: `InputError`. */
export async function askToGoOn(question: string): Promise<boolean> {
  requireSomebodyToAsk(question);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await terminal.question(`${question} [y/N] `);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}

export function requireSomebodyToAsk(question: string): void {
  if (process.stdin.isTTY && process.stderr.isTTY) return;
  throw new InputError(`${question} There is nobody to ask: say --yes`);
}
