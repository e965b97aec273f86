import { join } from 'node:path';
import { type Command, Option } from 'commander';
import { InputError } from '../errors.js';
import { removeAbandoned } from '../files.js';
import { LATENCY_UNITS, type LatencyUnit } from '../metrics/index.js';
import type { EvaluatedData } from '../run/index.js';
import type { CheckpointChoice } from '../translate/index.js';
import { addPolicyFlags, checkpointOption, POLICY_HELP, type PolicyFlags } from './search-flags.js';

/** Flags of all kinds of runs; a flag that a kind does not know is refused by it. */
export interface EvaluateFlags extends PolicyFlags {
  readonly split?: string;
  readonly data?: string;
  readonly against?: string;
  readonly beam?: number;
  readonly earlyEnd?: 'allow' | 'block';
  readonly checkpoint?: CheckpointChoice;
  readonly loss?: boolean;
  readonly unit?: LatencyUnit;
  readonly threads: number;
  readonly json: boolean;
}

/** What is printed: figures for programs, or text for people. */
export interface Evaluated {
  readonly json: unknown;
  readonly text: string;
}

export type Evaluate = (run: string, flags: EvaluateFlags) => Promise<Evaluated>;

/** How a run is evaluated, by its `problem.kind`. Only the one that is needed is loaded. */
const KINDS: Readonly<Record<string, () => Promise<Evaluate>>> = {
  forecast: async () => (await import('./evaluate-forecast.js')).evaluateForecastRun,
  monotonic: async () => (await import('./evaluate-translation.js')).evaluateTranslationRun,
  translation: async () => (await import('./evaluate-translation.js')).evaluateTranslationRun,
};

/** Kinds of problems whose runs can be evaluated. */
export const EVALUATED = Object.keys(KINDS);

export function registerEvaluate(program: Command): void {
  const command = program
    .command('evaluate')
    .description('Score the best model of a run on the test data.')
    .argument('<run>', 'run folder')
    .option('--split <name>', 'part of the data to score on (default: test)')
    .option('--data <path>', "data in place of the run's own")
    .option('--against <run>', 'forecast: test the difference to another run that has been evaluated');
  addPolicyFlags(command)
    .addOption(new Option('--beam <size>', 'translation: beam at the end of the source').argParser(whole))
    .addOption(
      new Option('--early-end <rule>', 'translation: an end that is proposed before the source has ended').choices([
        'allow',
        'block',
      ]),
    )
    .addOption(checkpointOption())
    .addOption(
      new Option(
        '--unit <name>',
        "translation: what SimulEval's latency counts (default: char for targets without spaces, else word)",
      ).choices(LATENCY_UNITS),
    )
    .option(
      '--loss',
      'translation: only the loss with each wait of --k (split: that of validation); nothing is translated',
    )
    .addOption(new Option('--threads <n>', 'threads of the model').argParser(whole).default(2))
    .option('--json', 'print the figures as JSON', false)
    .addHelpText(
      'after',
      `
Besides what is printed, everything behind it is written to RUN/evaluation: a forecast's scores of each day, returns by
quintile, the course of the backtest and all predictions; a translation's outputs and delays. With --data the folder has
the name of the data at its end, and what was measured on the run's own data stays.

${POLICY_HELP}
The flag may be repeated; lists as in wait-k:1,3 or wait-if-diff:initial=2,4,step=1,2 stand for all combinations.

Examples:
  tcts evaluate runs/csi300
  tcts evaluate runs/csi300 --split validation --json
  tcts evaluate runs/csi300-mtl --against runs/csi300
  tcts evaluate runs/multi30k --k 1,3,5,7,9
  tcts evaluate runs/multi30k --k 1,3,5,7,9 --loss
  tcts evaluate runs/full --policy wait-if-diff:initial=2,4,6,step=1,2`,
    )
    .action(async (run: string, flags: EvaluateFlags) => {
      const { INTERRUPTED, listenForInterrupt, openRun } = await import('../run/index.js');
      // Between two writes, not within one.
      listenForInterrupt({ announce: () => process.exit(INTERRUPTED) });
      removeAbandoned(join(run, 'evaluation'));
      const { problem } = openRun(run).config as { problem?: { kind?: string } };
      const kind = KINDS[problem?.kind ?? ''];
      if (kind === undefined) {
        const known = Object.keys(KINDS).join(', ');
        throw new InputError(`there is nothing to evaluate in a run of ${problem?.kind}, expected one of ${known}`, {
          file: run,
          key: 'problem.kind',
        });
      }
      const { json, text } = await (await kind())(run, flags);
      process.stdout.write(flags.json ? `${JSON.stringify(json)}\n` : `${text}\n`);
    });
}

/** `corpora/wmt15 (not the run's own)`. */
export function dataInWords({ name, own }: EvaluatedData): string {
  return own ? name : `${name} (not the run's own)`;
}

/** Refuses flags that mean nothing for a kind of run. */
export function refuseFlags(flags: EvaluateFlags, kind: string, ...names: (keyof EvaluateFlags)[]): void {
  const given = names.find((name) => flags[name] !== undefined);
  if (given === undefined) return;
  const flag = given.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw new InputError(`means nothing for a run of ${kind}`, { key: `--${flag}` });
}

function whole(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text.trim())) return Number(text);
  throw new InputError(`expected whole numbers from 1 on, found ${JSON.stringify(text)}`);
}
