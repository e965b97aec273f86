import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Command } from 'commander';
import { InputError } from '../errors.js';
import { isRun, listenForInterrupt } from '../run/index.js';
import { wrapped } from '../text-table.js';
import { addSearchFlags, fromEnvironment, policyHelp, type SearchFlags, searchOf, speculateOption } from './flags.js';
import { builtInModel, runFolder } from './names.js';

interface ServeFlags extends SearchFlags {
  readonly port: string;
  readonly host: string;
  readonly name?: readonly string[];
  readonly token?: string;
  readonly tokenEnv?: string;
  readonly browser?: boolean;
  readonly module?: readonly string[];
  readonly simuleval?: string;
  readonly policy?: string;
  readonly speculate?: number;
}

/** `tcts serve`: the page with live translation and the runs, or an agent for SimulEval. */
export function registerServe(program: Command): void {
  const command = program
    .command('serve')
    .description('Open a page that shows models translating as you type and runs as they train.')
    .argument('[folder]', 'a folder of runs, or one run (default: runs, and the bundled model)')
    .option('--port <n>', 'port of the page', '8470')
    .option(
      '--host <address>',
      'address to bind to; beyond loopback a token is needed and, if not given, generated',
      '127.0.0.1',
    )
    .option('--token <text>', 'secret needed to open the page; it is part of the printed link')
    .option('--token-env <name>', 'environment variable with that token, which keeps it out of the process list')
    .option('--name <host...>', 'additional host names for the page')
    .option('--module <file...>', 'modules to load first, such as one that adds your own policy')
    .option('--browser', 'offer to run the model in the page itself, with ONNX Runtime for the web')
    .option('--simuleval <port>', 'instead of the page, serve one run as a remote agent for SimulEval')
    .option('--policy <spec>', 'policy of that agent, such as wait-k:3 (default: the one the run was trained for)');
  addSearchFlags(command)
    .addOption(speculateOption())
    .addHelpText(
      'after',
      `
With a beam, what is left to be written after the last word comes at once; --speculate needs one above 1. Ctrl-C
stops when the current translations are complete.

${policyHelp()}

Examples:
  tcts serve
  tcts serve runs
  tcts serve runs/multi30k --simuleval 8888 --policy wait-k:5`,
    )
    .action(serveCommand);
  // Elsewhere a beam is the default; here words should appear as soon as they are found.
  command.options.find((option) => option.attributeName() === 'beam')?.default('1');
  command.setOptionValueWithSource('beam', '1', 'default');
}

async function serveCommand(given: string | undefined, flags: ServeFlags): Promise<void> {
  const folder = given === undefined ? RUNS : runFolder(given);
  if (given !== undefined && !existsSync(folder)) {
    throw new InputError('there is no such folder: give one with runs, or train a run first', { file: folder });
  }
  const missing = flags.module?.find((file) => !existsSync(file));
  if (missing !== undefined) throw new InputError('there is no such module', { file: missing });
  const modules = (flags.module ?? []).map((file) => pathToFileURL(resolve(file)).href);
  for (const module of modules) await import(module);
  const search = { ...searchOf(flags), speculate: flags.speculate };
  if ((search.speculate ?? 0) > 0 && search.beam === 1) {
    throw new InputError('there is nothing to choose from with a beam of 1: also give --beam', {
      key: '--speculate',
    });
  }
  const common = { host: flags.host, names: flags.name, modules, ...search };
  const { isLoopback, startAgent, startServer } = await import('../serve/index.js');
  const isLocal = isLoopback(flags.host);
  if (flags.simuleval !== undefined) {
    const run = given === undefined ? builtInModel.folder : folder;
    if (!isRun(run)) throw new InputError('an agent translates with one run: give its folder', { file: run });
    if (given === undefined) sayBuiltIn();
    const port = portOf('--simuleval', flags.simuleval);
    if (flags.token !== undefined || flags.tokenEnv !== undefined) {
      throw new InputError('SimulEval cannot send a token: leave it out', { key: '--token' });
    }
    if (!isLocal) warn(`${flags.host} can be reached from other machines, and SimulEval does not support passwords`);
    return untilStopped(await startAgent({ ...common, run, port, policy: flags.policy }), 'agent of SimulEval at');
  }
  const port = portOf('--port', flags.port);
  const token = flags.tokenEnv === undefined ? flags.token : fromEnvironment('--token-env', flags.tokenEnv);
  const builtIn = given === undefined ? builtInModel : undefined;
  const { link, close } = await startServer({ ...common, folder, port, token, browser: flags.browser, builtIn });
  if (builtIn !== undefined && !existsSync(folder)) sayBuiltIn();
  if (!isLocal) {
    warn(`${flags.host} can be reached from other machines: whoever has the link can use the models and see the runs`);
  }
  await untilStopped({ url: link, close }, 'open');
}

/** Where runs are unless a configuration says otherwise. */
const RUNS = 'runs';

function sayBuiltIn(): void {
  process.stderr.write(`${wrapped(`there are no runs yet: built-in model, ${builtInModel.about}`)}\n`);
}

function warn(sentence: string): void {
  process.stderr.write(`warning: ${sentence}\n`);
}

/** Serves until Ctrl-C. */
async function untilStopped(server: { url: string; close(): Promise<void> }, what: string): Promise<void> {
  process.stderr.write(`${what} ${server.url}  (Ctrl-C stops)\n`);
  await new Promise<void>((resolve) => {
    listenForInterrupt({
      announce: () => {
        process.stderr.write('stopping when the current translations are complete; again to stop at once\n');
        resolve();
      },
    });
  });
  await server.close();
}

function portOf(flag: string, text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65535) return port;
  throw new InputError(`expected a port from 0 (any free one) to 65535, found ${JSON.stringify(text)}`, {
    key: flag,
  });
}
