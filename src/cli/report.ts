import type { Command } from 'commander';
import { runFolder } from './names.js';

interface ReportFlags {
  readonly out?: string;
  readonly baseline?: readonly string[];
  readonly title?: string;
  readonly json: boolean;
}

export function registerReport(program: Command): void {
  program
    .command('report')
    .description('Write tables, figures and a page for all runs and probes in a folder.')
    .argument('<folder>', 'folder with run folders at any depth, or a single run')
    .option('--out <folder>', 'where to write the report (default: report in the folder)')
    .option(
      '--baseline <name>',
      'strategy or method to test the others against; may be repeated (default: fixed and mtl)',
      (name: string, previous: readonly string[] = []) => [...previous, name],
    )
    .option('--title <text>', 'heading of the report')
    .option('--json', 'print the names of the files as JSON', false)
    .addHelpText(
      'after',
      `
Examples:
  tcts report runs
  tcts report runs/csi300 --baseline fixed --title "CSI300" --out reports/csi300`,
    )
    .action(reportCommand);
}

async function reportCommand(folder: string, { out, baseline, title, json }: ReportFlags): Promise<void> {
  const { writeReport } = await import('../report/index.js');
  const files = await writeReport(runFolder(folder), { out, baselines: baseline, title });
  for (const warning of files.warnings) process.stderr.write(`warning: ${warning}\n`);
  if (json) {
    process.stdout.write(`${JSON.stringify(files)}\n`);
    return;
  }
  const { runs, probes, setAside, tables, figures, html } = files;
  const probed = probes === 0 ? '' : ` and ${probes} probe${probes === 1 ? '' : 's'}`;
  const finished = `${runs} finished run${runs === 1 ? '' : 's'}${probed}`;
  const counted = setAside === 0 ? finished : `${finished}, ${setAside} more not counted (the report says why)`;
  const of = (names: readonly string[]) => names.filter((name) => name.endsWith('.csv')).length;
  process.stdout.write(`${counted}: ${of(tables)} tables and ${of(figures)} figures\nreport: ${html}\n`);
}
