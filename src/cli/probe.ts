import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, relative, resolve } from 'node:path';
import type { Command } from 'commander';
import { InputError } from '../errors.js';
import { INTERRUPTED } from '../run/progress.js';
import { positiveNumber, setOption, wholeNumber } from './flags.js';
import { configFile } from './names.js';

interface ProbeFlags {
  readonly set: readonly string[];
  readonly budget: number;
  readonly seeds?: number;
  readonly checkpoints?: number;
  readonly trunk?: number;
  readonly out?: string;
  readonly write?: string;
  readonly quiet: boolean;
  readonly json: boolean;
}

export function registerProbe(program: Command): void {
  const command = program
    .command('probe')
    .description("Find out, for a fraction of a training's cost, whether scheduling pays and which sibling tasks help.")
    .argument('<config>', 'configuration file of a training, or the name of a shipped one');
  setOption(command)
    .option('--budget <share>', "updates of the probe, as a share of the training's", positiveNumber('--budget'), 0.1)
    .option(
      '--seeds <n>',
      'seeds, starting with the configured one (default: 8, fewer for small budgets)',
      wholeNumber('--seeds', 3, 100),
    )
    .option(
      '--checkpoints <n>',
      'checkpoints of each seed (default: 2, or 1 for small budgets)',
      wholeNumber('--checkpoints', 1, 100),
    )
    .option('--trunk <share>', 'share of the updates before the checkpoints (default: 0.25)', positiveNumber('--trunk'))
    .option(
      '--out <folder>',
      'where results are stored (default: runs/<name>-probe); an unfinished probe there continues',
    )
    .option('--write <file>', 'write a configuration that extends this one with the recommended strategy')
    .option('--quiet', 'show no progress', false)
    .option('--json', 'print the result as JSON', false)
    .addHelpText(
      'after',
      `
From common checkpoints, short branches train the main task alone, all tasks equally, the main task with each sibling, and
all tasks but one, on the same batches. docs/probe.md explains the result.

Examples:
  tcts probe configs/demo.yaml
  tcts probe configs/market.yaml --budget 0.5 --write market-probed.yaml`,
    )
    .action(probeCommand);
}

async function probeCommand(given: string, flags: ProbeFlags): Promise<void> {
  const file = configFile(given);
  const { loadConfig, runPath } = await import('../run/index.js');
  const { trainConfigSchema, withModules } = await import('../problems/index.js');
  const { probeRun } = await import('./probe-run.js');
  const { requireFixedSizes } = await import('./sizing.js');
  const { probeText, resultOf, writeProbeResult } = await import('./probe-run.js');

  const config = await withModules(() => loadConfig(trainConfigSchema, file, { set: flags.set }));
  requireFixedSizes(config, 'a probe');
  const { out: folder = `${runPath(config, file)}-probe`, write } = flags;
  if (write !== undefined) requireWritable(write);
  const say = (line: string) => process.stderr.write(`${line}\n`);
  const { budget, seeds, checkpoints, trunk } = flags;
  const quiet = flags.quiet || flags.json;
  const run = await probeRun(config, { folder, budget, seeds, checkpoints, trunk, quiet, say });
  if (!run.finished) {
    say('stopped; the same command continues from here');
    process.exitCode = INTERRUPTED;
    return;
  }
  const result = resultOf(run, config.strategy.name);
  writeProbeResult(folder, result, basename(file));
  const printed = flags.json ? JSON.stringify({ folder, ...result }) : `${probeText(result)}\n\nresults: ${folder}`;
  process.stdout.write(`${printed}\n`);
  if (write === undefined) return;
  await writeConfig(write, file, flags.set, result.recommendation);
  if (!flags.json) process.stdout.write(`configuration: ${write}\n`);
}

const HEADING = '# Written by tcts probe';

/** Checked before anything runs: only files written by an earlier probe are replaced. */
function requireWritable(file: string): void {
  if (!existsSync(dirname(file)))
    throw new InputError('cannot write it: its folder does not exist', { file, key: '--write' });
  if (!existsSync(file)) return;
  if (readFileSync(file, 'utf8').startsWith(HEADING)) return;
  throw new InputError('it already exists and was not written by tcts probe: choose another name', {
    file,
    key: '--write',
  });
}

/** The configuration with what `--set` gave, and the recommended strategy with all its keys instead of its own. */
async function writeConfig(
  target: string,
  base: string,
  set: readonly string[],
  { strategy, reason }: { strategy: { readonly name: string }; reason: string },
): Promise<void> {
  const { Document } = await import('yaml');
  const { readAssignment } = await import('../run/config/sources.js');
  const { strategySchema } = await import('../schedule/index.js');
  const { writeFileAtomic } = await import('../files.js');
  const parsed = strategySchema.safeParse(strategy);
  if (!parsed.success) {
    throw new InputError(`cannot write it: this version of tcts has no strategy ${strategy.name}`, { file: target });
  }
  const path = relative(dirname(resolve(target)), resolve(base));
  const document = new Document({ extends: path.startsWith('.') ? path : `./${path}` });
  for (const assignment of set) {
    const key = assignment.slice(0, assignment.indexOf('=')).trim().split('.');
    if (key[0] === 'strategy') continue;
    const value = key.reduce<unknown>(
      (at, name) => (at as Record<string, unknown>)[name],
      readAssignment(assignment).values,
    );
    document.setIn(key, document.createNode(value));
  }
  document.set('strategy', document.createNode(parsed.data));
  writeFileAtomic(target, `${HEADING}: ${reason}\n${document.toString({ lineWidth: 0 })}`);
}
