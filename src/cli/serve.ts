import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { InputError } from '../errors.js';
import { isRun, listenForInterrupt } from '../run/index.js';
import { addSearchFlags, POLICY_HELP, type SearchFlags, searchOf } from './search-flags.js';

interface ServeFlags extends SearchFlags {
  readonly port: string;
  readonly host: string;
  readonly name?: readonly string[];
  readonly browser?: boolean;
  readonly simuleval?: string;
  readonly policy?: string;
}

/** `tcts serve`: the page with live translation and the runs, or an agent for SimulEval. */
export function registerServe(program: Command): void {
  const command = program
    .command('serve')
    .description('Open a page on which models translate while you type, and runs are watched while they train.')
    .argument('[folder]', 'a folder of runs, or one run', 'runs')
    .option('--port <n>', 'port of the page', '8470')
    .option(
      '--host <address>',
      'address to bind to; beyond loopback, whoever reaches it can use the models',
      '127.0.0.1',
    )
    .option('--name <host...>', 'further names under which the page may be reached')
    .option('--browser', 'offer to run the model in the page itself, with ONNX Runtime for the web')
    .option('--simuleval <port>', 'instead of the page, be a remote agent of SimulEval for one run')
    .option('--policy <spec>', 'policy of that agent, as wait-k:3; default the one that the run was trained for');
  addSearchFlags(command)
    .addHelpText(
      'after',
      `
With a beam, what is left to be written after the last word comes at once. Ctrl-C stops when the translations under way
are complete.

${POLICY_HELP}

Examples:
  tcts serve runs
  tcts serve runs/multi30k --simuleval 8888 --policy wait-k:5`,
    )
    .action(serveCommand);
  // Elsewhere a beam is the default; here words should appear as soon as they are found.
  command.options.find((option) => option.attributeName() === 'beam')?.default('1');
  command.setOptionValueWithSource('beam', '1', 'default');
}

async function serveCommand(folder: string, flags: ServeFlags): Promise<void> {
  if (!existsSync(folder)) {
    throw new InputError('there is no such folder: give one that holds runs, or train one first', { file: folder });
  }
  const common = { host: flags.host, names: flags.name, ...searchOf(flags) };
  const { startAgent, startServer } = await import('../serve/index.js');
  if (flags.simuleval !== undefined) {
    if (!isRun(folder)) throw new InputError('an agent translates with one run: give its folder', { file: folder });
    const port = portOf('--simuleval', flags.simuleval);
    return untilStopped(
      await startAgent({ ...common, run: folder, port, policy: flags.policy }),
      'agent of SimulEval at',
    );
  }
  const port = portOf('--port', flags.port);
  await untilStopped(await startServer({ ...common, folder, port, browser: flags.browser }), 'open');
}

/** Serves until Ctrl-C. */
async function untilStopped(server: { url: string; close(): Promise<void> }, what: string): Promise<void> {
  process.stderr.write(`${what} ${server.url}  (Ctrl-C stops)\n`);
  await new Promise<void>((resolve) => {
    listenForInterrupt({
      announce: () => {
        process.stderr.write('stopping when the translations under way are complete; again to stop at once\n');
        resolve();
      },
    });
  });
  await server.close();
}

function portOf(flag: string, text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65535) return port;
  throw new InputError(`expected a port from 0 (any that is free) to 65535, found ${JSON.stringify(text)}`, {
    key: flag,
  });
}
