import { type Command, Option } from 'commander';
import { InputError } from '../errors.js';
import type { CheckpointChoice } from '../translate/index.js';

/** The flags of verbs that translate: which parameters, and how to search with them. */
export interface SearchFlags {
  readonly beam: string;
  readonly earlyEnd: 'allow' | 'block';
  readonly checkpoint: CheckpointChoice;
  readonly threads: string;
}

export interface SearchSettings {
  readonly beam: number;
  readonly earlyEnd: 'allow' | 'block';
  readonly checkpoint: CheckpointChoice;
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
    .addOption(checkpointOption().default('best'))
    .option('--threads <n>', 'threads of the runtime', '1');
}

export function searchOf({ beam, earlyEnd, checkpoint, threads }: SearchFlags): SearchSettings {
  return { beam: wholeFrom1('--beam', beam), earlyEnd, checkpoint, threads: wholeFrom1('--threads', threads) };
}

/** `--checkpoint`: which parameters of a run. */
export function checkpointOption(): Option {
  const what = 'parameters: best on the main task, latest, or average:N of the last N checkpoints';
  return new Option('--checkpoint <which>', what).argParser((text): CheckpointChoice => {
    if (/^(best|latest|average:([2-9]|[1-9]\d{1,5}))$/.test(text)) return text as CheckpointChoice;
    const sentence = `expected best, latest or average:N with N from 2 on, found ${JSON.stringify(text)}`;
    throw new InputError(sentence, { key: '--checkpoint' });
  });
}

/** Flags that name policies: `--k` is short for wait-k. */
export interface PolicyFlags {
  readonly k?: readonly number[];
  readonly policy?: readonly string[];
  readonly models?: readonly string[];
}

export function addPolicyFlags(command: Command): Command {
  const waits = (text: string): number[] => text.split(',').map((part) => wholeFrom1('--k', part.trim()));
  const more = (text: string, others: readonly string[] = []): string[] => [...others, text];
  return command
    .addOption(new Option('--k <k,…>', 'translation: short for --policy wait-k:k,…').argParser(waits))
    .addOption(
      new Option('--policy <policy>', 'translation: when to write (default: as in training; see below)').argParser(
        more,
      ),
    )
    .option('--models <run...>', 'translation: further runs for adaptive to choose among, each of another wait');
}

/** The help on `--policy`. */
export const POLICY_HELP = `Policies, with their defaults:
  wait-k:3                              read k tokens, then write and read in turn; wait-k:full reads all first
  wait-if-diff:initial=3,step=1         write what a further read has not changed
  wait-if-worse:initial=3,step=1        the same, unless it has become less likely
  adaptive:min=1,max=10,from=1,to=0     wait-min … wait-max by confidence, thresholds from … to
  monotonic                             the decision of a model with monotonic attention`;

/** The policies of both flags; undefined where none is given. */
export function policiesOf({ k, policy }: PolicyFlags): string[] | undefined {
  if (k === undefined && policy === undefined) return undefined;
  return [...(k === undefined ? [] : [`wait-k:${k.join(',')}`]), ...(policy ?? [])];
}

function wholeFrom1(flag: string, text: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= 1 && Number.isSafeInteger(value)) return value;
  throw new InputError(`expected a whole number from 1 on, found ${JSON.stringify(text)}`, { key: flag });
}
