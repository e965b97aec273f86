import { join } from 'node:path';
import { type Command, Option } from 'commander';
import { InputError } from '../errors.js';
import { removeAbandoned } from '../files.js';
import { LATENCY_UNITS } from '../metrics/index.js';
import type { Evaluate, EvaluateFlags } from '../schedule/index.js';
import {
  addPolicyFlags,
  checkpointOption,
  columnsOption,
  deviceOption,
  mapOf,
  neutraliseOption,
  penaltyOf,
  policyHelp,
  positiveNumber,
  speculateOption,
  wholeNumber,
} from './flags.js';
import { runFolder } from './names.js';
import { nextLines, warn } from './terminal.js';

/** Scores the best model of a run: `tcts evaluate`. */
export function registerEvaluate(program: Command): void {
  const command = program
    .command('evaluate')
    .description('Score the best model of a run on the test data.')
    .argument('<run>', 'run folder')
    .option('--split <name>', 'part of the data to score (default: test)')
    .option('--data <path>', "other data than the run's own")
    .addOption(columnsOption())
    .option('--from <YYYY-MM-DD>', 'forecast: first day, instead of a part')
    .option('--to <YYYY-MM-DD>', 'forecast: last day, instead of a part')
    .addOption(
      new Option('--backtest <map>', "forecast: keys of problem.backtest that override the run's").argParser((text) =>
        mapOf(text, '--backtest'),
      ),
    )
    .addOption(
      neutraliseOption("forecast: keys of problem.neutralise, such as '{group: sector}', instead of the run's"),
    )
    .option('--predictions <file>', 'forecast: also write the predictions to this .csv or .parquet file')
    .option('--against <run>', 'forecast: test the difference from another evaluated run');
  addPolicyFlags(command)
    .addOption(
      new Option('--beam <size>', 'translation: beam size after the end of the source').argParser(
        wholeNumber('--beam'),
      ),
    )
    .addOption(
      new Option(
        '--early-end <rule>',
        'translation: what to do if the model ends a sentence before its source',
      ).choices(['allow', 'block']),
    )
    .addOption(
      new Option(
        '--length-penalty <a>',
        'translation: hypotheses are compared by log p over length^a (default: 1)',
      ).argParser(penaltyOf),
    )
    .addOption(speculateOption())
    .addOption(checkpointOption())
    .addOption(
      new Option(
        '--unit <name>',
        "translation: unit of SimulEval's latency (default: char for targets without spaces, otherwise word)",
      ).choices(LATENCY_UNITS),
    )
    .addOption(
      new Option(
        '--computation-aware [ms]',
        'translation: sentence by sentence, latency including computation time; a source word lasts ms',
      )
        .argParser(positiveNumber('--computation-aware'))
        .preset('300'),
    )
    .option('--loss', 'translation: only the validation loss under each wait of --k; nothing is translated')
    .addOption(
      new Option('--threads <n>', 'threads; translations: each with a copy of the model')
        .argParser(wholeNumber('--threads'))
        .default(2),
    )
    .addOption(deviceOption())
    .option('--all', 'print all figures: sacreBLEU, chrF, lengths and all latency metrics')
    .option('--json', 'print the figures as JSON', false)
    .addHelpText(
      'after',
      `
Besides what is printed, everything behind it is written to RUN/evaluation: a forecast's scores of each day, returns by
quintile, the course of the backtest and all predictions; a translation's outputs and delays. With --data the folder has
the name of the data as its suffix, and results on the run's own data are kept.

${policyHelp()}
The flag may be repeated; lists as in wait-k:1,3 or wait-if-diff:initial=2,4,step=1,2 stand for all combinations.

Examples:
  tcts evaluate runs/csi300
  tcts evaluate runs/csi300 --split validation --json
  tcts evaluate runs/csi300-mtl --against runs/csi300
  tcts evaluate runs/csi300 --data new.csv --columns '{symbol: ticker}' --backtest '{preset: us, top: 20}'
  tcts evaluate runs/multi30k --k 1,3,5,7,9
  tcts evaluate runs/multi30k --k 1,3,5,7,9 --loss
  tcts evaluate runs/full --policy wait-if-diff:initial=2,4,6,step=1,2`,
    )
    .action(async (given: string, flags: EvaluateFlags & { readonly json: boolean }) => {
      const run = runFolder(given);
      const { INTERRUPTED, listenForInterrupt } = await import('../run/index.js');
      // Between two writes, not within one.
      listenForInterrupt({ announce: () => process.exit(INTERRUPTED) });
      removeAbandoned(join(run, 'evaluation'));
      const { evaluate, next } = await evaluationOf(run);
      const { json, text } = await evaluate(run, { ...flags, warn });
      process.stdout.write(flags.json ? `${JSON.stringify(json)}\n` : `${text}\n${nextLines(next)}\n`);
    });
}

/** What evaluates a run, by the kind of its problem. */
async function evaluationOf(run: string): Promise<{ evaluate: Evaluate; next: string[] }> {
  const { openRun } = await import('../run/index.js');
  const { kindOf, kindsWithEvaluation, loadModule, nextCommands } = await import('../problems/index.js');
  const { problem = {} } = openRun(run).config as { problem?: { kind?: string; module?: string } };
  const where = { file: run, key: 'problem.kind' };
  if (problem.kind === 'module') {
    const kind = await loadModule(String(problem.module));
    if (kind instanceof InputError) throw new InputError(kind.message, { file: run, key: 'problem.module' });
  }
  const evaluate = kindOf(problem)?.evaluate;
  if (evaluate !== undefined) {
    return { evaluate, next: nextCommands(problem, run).filter((command) => !command.startsWith('tcts evaluate')) };
  }
  const found = problem.kind === 'module' ? problem.module : problem.kind;
  const known = kindsWithEvaluation().join(', ');
  throw new InputError(`there is nothing to evaluate in a run of ${found}, expected one of ${known}`, where);
}
