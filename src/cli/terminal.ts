import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import pc from 'picocolors';
import { InputError } from '../errors.js';
import { ERASE_LINE } from '../run/progress.js';
import { wrapped } from '../text-table.js';
import { nearestFile } from './names.js';

/** Colours for a stream, where a person reads it: not in pipes and files, in CI neither, nor with NO_COLOR set. */
export function colorsFor(stream: NodeJS.WriteStream): ReturnType<typeof pc.createColors> {
  return pc.createColors(stream.isTTY === true && !process.env.NO_COLOR);
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** A warning about figures that are printed anyway. */
export function warn(sentence: string): void {
  process.stderr.write(`${colorsFor(process.stderr).yellow('tcts: warning:')} ${sentence}\n`);
}

/** What to try next, one command per line, as it can be typed here. */
export function nextLines(commands: readonly string[]): string {
  const by = isInstalled() ? '' : 'npx ';
  return commands.map((command, i) => `${i === 0 ? 'next:' : '     '} ${by}${command}`).join('\n');
}

/** Whether a shell finds `tcts`, without the path that npm adds for its own commands. */
function isInstalled(): boolean {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => !/^$|node_modules|_npx/.test(folder));
  const names = process.platform === 'win32' ? ['tcts.cmd', 'tcts.exe'] : ['tcts'];
  return folders.some((folder) => names.some((name) => existsSync(join(folder, name))));
}

/** Shows on the terminal what is being done while it runs. */
export async function saying<T>(what: string, work: () => Promise<T>): Promise<T> {
  const isShown = process.stderr.isTTY;
  if (isShown) process.stderr.write(`${ERASE_LINE}${what} …`);
  try {
    return await work();
  } finally {
    if (isShown) process.stderr.write(ERASE_LINE);
  }
}

/**
 * Help in lines of at most 80 characters: prose is re-wrapped, and explanations are indented. Examples,
 * which may be copied, are unchanged.
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

/** Asks for confirmation on the terminal. Without one, `--yes` is required: `InputError`. */
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
  throw new InputError(`${question} There is no terminal to ask on: use --yes`);
}

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

/** The reader of the output may close it early, as `head` does: then the process ends quietly. */
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
  if (error instanceof InputError) return `${error.message}${fileHint(error)}`;
  if (process.env.TCTS_DEBUG && error instanceof Error) return error.stack ?? error.message;
  const message = error instanceof Error ? error.message : String(error);
  return `internal error: ${message} (set TCTS_DEBUG=1 for the stack)`;
}

/** For a missing file: one whose name a typo could have turned into it. */
function fileHint(error: InputError): string {
  const { file } = error.where;
  const near = file !== undefined && 'code' in error && error.code === 'ENOENT' ? nearestFile(file) : undefined;
  return near === undefined ? '' : `; did you mean ${near}?`;
}

/** Milliseconds in which what is still open can close. */
const GRACE = 2000;
