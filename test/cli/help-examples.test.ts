import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { configFile, shippedConfig } from '../../src/cli/names.js';
import { program } from '../../src/cli/program.js';
import { loadTrainConfig } from '../../src/cli/sizing.js';
import { planOf } from '../../src/cli/sweep-run.js';
import { assignments } from '../../src/cli/train.js';
import { trainConfigSchema, withModules } from '../../src/problems/index.js';
import { loadConfig } from '../../src/run/index.js';
import { loadGrid } from '../../src/sweep/index.js';
import { parsePolicies, policyTexts } from '../../src/translate/policies/index.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const leaves = (command: Command): Command[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);
const within = (command: Command): Command[] => [command, ...command.commands.flatMap(within)];
const pathOf = (command: Command): string =>
  command.parent === null ? '' : `${pathOf(command.parent)} ${command.name()}`.trim();

/** The lines below "Examples:" of a help text, with their continuations. */
function examplesIn(help: string): string[] {
  const sections = help.replace(/ *\\\n */g, ' ').matchAll(/^Examples?:.*\n((?: {2}.*(?:\n|$))+)/gm);
  return [...sections].flatMap(([, lines]) => lines.trimEnd().split('\n')).map((line) => line.trim());
}

function helpOf(command: Command): string {
  let help = '';
  command.configureOutput({ writeOut: (text) => (help += text) });
  command.outputHelp();
  return help;
}

/** What the tool is given by a line of a shell, without a pipe before it and files behind < and >. */
function argumentsOf(line: string): string[] {
  const words = [...line.matchAll(/'([^']*)'|"([^"]*)"|\S+/g)].map(([word, one, two]) => one ?? two ?? word);
  const own = words.slice(words.lastIndexOf('tcts') + 1);
  const redirected = own.findIndex((word) => word === '<' || word === '>');
  return redirected === -1 ? own : own.slice(0, redirected);
}

interface Call {
  readonly verb: string;
  readonly given: readonly string[];
  // biome-ignore lint/suspicious/noExplicitAny: the flags of any verb
  readonly flags: any;
}

/** Parses a command line as the tool does; nothing is run. */
async function parsed(args: readonly string[]): Promise<Call> {
  const calls: Call[] = [];
  const tcts = program();
  for (const command of within(tcts)) {
    command.exitOverride().configureOutput({ writeOut: () => {}, writeErr: () => {}, outputError: () => {} });
    if (command.commands.length > 0) continue;
    command.action(() => {
      calls.push({ verb: pathOf(command), given: command.args, flags: command.opts() });
    });
  }
  await tcts.parseAsync(['node', 'tcts', ...args]);
  expect(calls).toHaveLength(1);
  return calls[0];
}

/** Files of the reader's own in the examples, and shipped ones of their kind. */
const OWN: Readonly<Record<string, string>> = {
  'translator.yaml': 'verb-final',
  'stocks.yaml': 'csi300',
  'grid.yaml': 'sweeps/stock-small',
};
const configurationOf = (given: string, under?: string): string =>
  given in OWN ? shippedConfig(OWN[given]) : configFile(given, under);

/** What a verb looks at before it begins, as far as the files are there. */
const CHECKS: Readonly<Record<string, (call: Call) => unknown>> = {
  train: ({ given: [config], flags }) =>
    flags.resume ? undefined : loadTrainConfig(configurationOf(config), assignments(flags)),
  probe: ({ given: [config], flags }) =>
    withModules(() => loadConfig(trainConfigSchema, configurationOf(config), { set: flags.set })),
  sweep: ({ given: [grid], flags }) => {
    const loaded = loadGrid(configurationOf(grid, 'sweeps'), flags.seeds);
    return withModules(() => planOf(loaded, flags));
  },
  reproduce: ({ given: [name], flags }) => loadGrid(shippedConfig(`sweeps/${name}-${flags.scale}`), flags.seeds),
  translate: ({ flags }) => policyTexts(flags)?.map(parsePolicies),
  evaluate: ({ flags }) => policyTexts(flags)?.map(parsePolicies),
  serve: ({ flags }) => flags.policy && parsePolicies(flags.policy),
};

const examples = [...new Set(within(program()).flatMap((command) => examplesIn(helpOf(command))))];

describe('the examples of the help', () => {
  it('show every verb', async () => {
    const shown = new Set<string>();
    for (const example of examples) shown.add((await parsed(argumentsOf(example))).verb);
    expect(leaves(program()).map(pathOf).sort()).toEqual([...shown].sort());
  });

  it.each(examples)('%s', async (example) => {
    const args = argumentsOf(example);
    for (const file of args.filter((word) => word.startsWith('configs/'))) {
      expect(existsSync(join(root, file)), file).toBe(true);
    }
    const call = await parsed(args);
    await CHECKS[call.verb]?.(call);
  });

  it('would be found wrong', async () => {
    await expect(parsed(['train', 'demo', '--stategy', 'mtl'])).rejects.toThrow('unknown option');
    await expect(parsed(['export'])).rejects.toThrow('missing required argument');
    await expect(parsed(['evaluate', 'runs/a', '--k', 'x'])).rejects.toThrow('whole number');
    const wrong = await parsed(['train', 'configs/demo.yaml', '--set', 'trainin.steps=3']);
    await expect(async () => CHECKS.train(wrong)).rejects.toThrow('trainin');
  });
});
