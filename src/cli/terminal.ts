import { createInterface } from 'node:readline/promises';
import pc from 'picocolors';
import { InputError } from '../errors.js';
import { wrapped } from '../text-table.js';

/** Colours for a stream, where a person reads it: not in pipes and files, in CI neither, nor with NO_COLOR set. */
export function colorsFor(stream: NodeJS.WriteStream): ReturnType<typeof pc.createColors> {
  return pc.createColors(stream.isTTY === true && !process.env.NO_COLOR);
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Something that the user should know of figures which are printed all the same. */
export function warn(sentence: string): void {
  process.stderr.write(`${colorsFor(process.stderr).yellow('tcts: warning:')} ${sentence}\n`);
}

/** What to try next, a command a line. */
export function nextLines(commands: readonly string[]): string {
  return commands.map((command, i) => `${i === 0 ? 'next:' : '     '} ${command}`).join('\n');
}

/**
 * Help in lines of at most 80 characters: prose is filled anew, and an explanation goes on below its beginning. Examples,
 * which somebody may copy, stay as they are.
 */
export function fittedHelp(text: string): string {
  const isLong = (line: string): boolean => line.length > 80;
  const prose = text.replaceAll(/^\S.*(?:\n\S.*)*/gm, (paragraph) =>
    paragraph.split('\n').some(isLong) ? wrapped(paragraph.replaceAll('\n', ' '), 80, '') : paragraph,
  );
  return prose.replaceAll(/^( {2,}\S.*? {2,})(\S.*)$/gm, (line: string, term: string, help: string) =>
    isLong(line)
      ? `${term}${wrapped(help, 80 - term.length, '').replaceAll('\n', `\n${' '.repeat(term.length)}`)}`
      : line,
  );
}

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
