import { type Command, Option } from 'commander';
import { parse } from 'yaml';
import { type DeviceChoice, deviceChoices } from '../devices.js';
import { InputError } from '../errors.js';
import type { CheckpointChoice } from '../translate/index.js';
import { policies, policyExample } from '../translate/policies/index.js';

/** The parser of a flag whose value is a whole number. */
export function wholeNumber(flag: string, least = 1, most = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    const from = least === 0 ? '' : ` of at least ${least}`;
    const limits = most === Number.MAX_SAFE_INTEGER ? from : ` from ${least} to ${most}`;
    throw new InputError(`expected a whole number${limits}, found ${JSON.stringify(text)}`, { key: flag });
  };
}

/** The parser of a flag whose value is a number above 0. */
export function positiveNumber(flag: string): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== '' && value > 0 && Number.isFinite(value)) return value;
    throw new InputError(`expected a number above 0, found ${JSON.stringify(text)}`, { key: flag });
  };
}

/** The parser of a flag that may be repeated. */
export function collect(value: string, previous: string[]): string[] {
  return [...previous, value];
}

/** `--set`, for every command that reads a configuration. */
export function setOption(command: Command): Command {
  return command.option('--set <key=value>', 'override a key of the configuration; may be repeated', collect, []);
}

export interface QueueFlags {
  readonly queue?: string;
  readonly queueName?: string;
}

/**
 * The options that select a queue. The environment keeps a password out of the process list.
 *
 * @param asked whether TCTS_QUEUE is not enough: a worker of the queue that is told about it must not queue its own
 *   job's parts
 */
export function queueOptions(command: Command, asked = false): Command {
  const queue = new Option(
    '--queue <url>',
    'a queue in Redis: redis://[user:password@]host[:port], or rediss:// for TLS',
  );
  return command
    .addOption(asked ? queue : queue.env('TCTS_QUEUE'))
    .option(
      '--queue-env <name>',
      'environment variable with that address: the process list shows a password on the command line',
    )
    .option('--queue-name <name>', 'which queue, if there are several in that Redis (default: "runs")')
    .hook('preAction', (_, action) => {
      const { queueEnv: name } = action.opts<{ queueEnv?: string }>();
      if (name !== undefined) action.setOptionValueWithSource('queue', fromEnvironment('--queue-env', name), 'env');
    });
}

/** A secret in the environment variable that a flag names. */
export function fromEnvironment(flag: string, name: string): string {
  const value = process.env[name];
  if (value !== undefined && value !== '') return value;
  throw new InputError(`the environment variable ${name} is not set`, { key: flag });
}

/** The flags of verbs that translate: which parameters, and how to search with them. */
export interface SearchFlags {
  readonly beam: string;
  readonly earlyEnd: 'allow' | 'block';
  readonly lengthPenalty: string;
  readonly checkpoint: CheckpointChoice;
  readonly threads: string;
  readonly device?: DeviceChoice;
}

/** `--speculate`. */
export function speculateOption(): Option {
  const what = 'tokens that the beam looks ahead before one is written, until the source ends (default: 0)';
  return new Option('--speculate <n>', what).argParser(wholeNumber('--speculate', 0, 100));
}

export interface SearchSettings {
  readonly beam: number;
  readonly earlyEnd: 'allow' | 'block';
  readonly lengthPenalty: number;
  readonly checkpoint: CheckpointChoice;
  readonly threads: number;
  readonly device?: DeviceChoice;
}

export function addSearchFlags(command: Command): Command {
  return command
    .option('--beam <n>', 'beam size once the whole source is known; 1 is greedy', '5')
    .addOption(
      new Option('--early-end <rule>', 'what to do if the model ends a sentence before its source')
        .choices(['allow', 'block'])
        .default('allow'),
    )
    .option('--length-penalty <a>', 'compare finished hypotheses by their sum of log p over length^a', '1')
    .addOption(checkpointOption().default('best'))
    .option('--threads <n>', 'threads of the runtime', '1')
    .addOption(deviceOption());
}

export function searchOf({ beam, earlyEnd, lengthPenalty, checkpoint, threads, device }: SearchFlags): SearchSettings {
  return {
    beam: wholeNumber('--beam')(beam),
    earlyEnd,
    lengthPenalty: penaltyOf(lengthPenalty),
    checkpoint,
    threads: wholeNumber('--threads')(threads),
    device,
  };
}

/** `--device`: what computes. */
export function deviceOption(): Option {
  return new Option('--device <name>', 'what computes; auto uses a graphics card if it helps (default: cpu)').choices(
    deviceChoices,
  );
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
  const whole = wholeNumber('--k');
  const waits = (text: string): number[] => text.split(',').map((part) => whole(part.trim()));
  const more = (text: string, others: readonly string[] = []): string[] => [...others, text];
  return command
    .addOption(new Option('--k <k,…>', 'translation: short for --policy wait-k:k,…').argParser(waits))
    .addOption(
      new Option('--policy <policy>', 'translation: when to write (default: as in training; see below)').argParser(
        more,
      ),
    )
    .option('--models <run...>', 'translation: additional runs for adaptive to choose from, each with another wait');
}

/** The help on `--policy`. */
export function policyHelp(): string {
  const lines = policies.map((policy) => `  ${policyExample(policy).padEnd(36)}  ${policy.help}`);
  return ['Policies, with their defaults:', ...lines].join('\n');
}

/** `--length-penalty`. */
export function penaltyOf(text: string): number {
  const value = Number(text);
  if (/^\d*\.?\d+$/.test(text) && value <= 10) return value;
  throw new InputError(`expected a number from 0 to 10, found ${JSON.stringify(text)}`, { key: '--length-penalty' });
}

/** `--columns '{symbol: ticker}'`: names of columns in data other than the run's own. */
export function columnsOption(): Option {
  return new Option('--columns <map>', "forecast: columns of --data whose names differ from the run's data").argParser(
    (text) => mapOf(text, '--columns'),
  );
}

/** `--neutralise '{group: sector}'`: what to remove from forecasts; `null` for nothing, which commander makes an empty text. */
export function neutraliseOption(of: string): Option {
  return new Option('--neutralise <map>', of).argParser((text) =>
    text === 'null' ? null : mapOf(text, '--neutralise'),
  );
}

/** A map in YAML's short form. */
export function mapOf(text: string, key: string): Record<string, never> {
  let value: unknown;
  try {
    value = parse(text);
  } catch {
    value = undefined;
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, never>;
  throw new InputError(`expected a map such as '{key: value}', found ${JSON.stringify(text)}`, { key });
}
