import { readFileSync } from 'node:fs';
import { Command } from 'commander';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

/** The whole command line. Each verb lives in a file of its own and adds itself here. */
export function program(): Command {
  const tcts = new Command('tcts')
    .description('Temporally correlated task scheduling for sequence learning.')
    .version(version)
    .showHelpAfterError()
    .configureHelp({ sortSubcommands: false });
  return tcts;
}
