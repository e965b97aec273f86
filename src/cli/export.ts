import type { Command } from 'commander';
import type { CheckpointChoice } from '../translate/index.js';
import { checkpointOption } from './search-flags.js';

interface ExportFlags {
  readonly onnx: string;
  readonly checkpoint: CheckpointChoice;
  readonly json?: boolean;
}

/** `tcts export`: a trained model as ONNX files. */
export function registerExport(program: Command): void {
  program
    .command('export')
    .description('Write a trained translation model as ONNX files, for use without tcts.')
    .argument('<run>', 'run folder of a translation model')
    .requiredOption(
      '--onnx <folder>',
      'where to write encoder-step.onnx, decoder-step.onnx, settings.json and vocabularies',
    )
    .addOption(checkpointOption().default('best'))
    .option('--json', 'print what was written as JSON')
    .addHelpText(
      'after',
      `
Example:
  tcts export runs/multi30k --onnx exported/multi30k

How the two models are called step by step is described in docs/translation.md.`,
    )
    .action(exportCommand);
}

async function exportCommand(run: string, flags: ExportFlags): Promise<void> {
  const { checkpoint, onnx: folder } = flags;
  const { exportTranslation } = await import('../translate/export.js');
  const { files } = exportTranslation(run, folder, { checkpoint });
  if (flags.json) {
    process.stdout.write(`${JSON.stringify({ folder, files })}\n`);
    return;
  }
  for (const { name, bytes } of files) process.stdout.write(`${name}  ${Math.ceil(bytes / 1000)} kB\n`);
  process.stdout.write(`and the vocabularies, in ${folder}\n`);
}
