import { type Command, Option } from 'commander';
import { InputError } from '../errors.js';

/** The flags of verbs that translate: which parameters, and how to search with them. */
export interface SearchFlags {
  readonly beam: string;
  readonly earlyEnd: 'allow' | 'block';
  readonly checkpoint: 'best' | 'latest';
  readonly threads: string;
}

export interface SearchSettings {
  readonly beam: number;
  readonly earlyEnd: 'allow' | 'block';
  readonly checkpoint: 'best' | 'latest';
  readonly threads: number;
}

export function addSearchFlags(command: Command): Command {
  return command
    .option('--beam <n>', 'hypotheses once the whole source is known; 1 is greedy', '5')
    .addOption(
      new Option('--early-end <rule>', 'an end of the sentence that is proposed before the source has ended')
        .choices(['allow', 'block'])
        .default('allow'),
    )
    .addOption(
      new Option('--checkpoint <which>', 'the parameters that were best on the main task, or the latest')
        .choices(['best', 'latest'])
        .default('best'),
    )
    .option('--threads <n>', 'threads of the runtime', '1');
}

export function searchOf({ beam, earlyEnd, checkpoint, threads }: SearchFlags): SearchSettings {
  return { beam: wholeFrom1('--beam', beam), earlyEnd, checkpoint, threads: wholeFrom1('--threads', threads) };
}

/** One wait. */
export function waitOf(text: string): number {
  return wholeFrom1('--k', text);
}

/** Waits set apart by commas. */
export function waitsOf(text: string): number[] {
  return text.split(',').map((part) => wholeFrom1('--k', part.trim()));
}

function wholeFrom1(flag: string, text: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= 1 && Number.isSafeInteger(value)) return value;
  throw new InputError(`expected a whole number from 1 on, found ${JSON.stringify(text)}`, { key: flag });
}
