import type { Command } from 'commander';
import { InputError } from '../errors.js';
import type { CheckpointChoice } from '../translate/index.js';
import { checkpointOption } from './flags.js';
import { runFolder } from './names.js';

interface ExportFlags {
  readonly onnx?: string;
  readonly parameters?: string;
  readonly checkpoint: CheckpointChoice;
  readonly json?: boolean;
}

/** `tcts export`: a trained model as ONNX files, or its parameters alone. */
export function registerExport(program: Command): void {
  program
    .command('export')
    .description('Write a trained translation model as ONNX files, or its parameters, for use without tcts.')
    .argument('<run>', 'run folder of a translation model')
    .option('--onnx <folder>', 'where to write encoder-step.onnx, decoder-step.onnx, settings.json and vocabularies')
    .option('--parameters <file>', 'where to write the parameters as safetensors, without the state of the optimiser')
    .addOption(checkpointOption().default('best'))
    .option('--json', 'print what was written as JSON')
    .addHelpText(
      'after',
      `
Example:
  tcts export runs/multi30k --onnx exported/multi30k
  tcts export runs/multi30k --parameters multi30k.safetensors --checkpoint average:5

How the two models are called step by step is described in docs/translation.md.`,
    )
    .action(exportCommand);
}

async function exportCommand(run: string, flags: ExportFlags): Promise<void> {
  const { checkpoint, onnx: folder, parameters } = flags;
  if (folder === undefined && parameters === undefined) {
    throw new InputError('missing: say what to write with --onnx or --parameters', { key: '--onnx' });
  }
  const { exportParameters, exportTranslation } = await import('../translate/export.js');
  const from = runFolder(run);
  const written = folder === undefined ? [] : exportTranslation(from, folder, { checkpoint }).files;
  const own =
    parameters === undefined ? [] : [{ name: parameters, bytes: exportParameters(from, parameters, checkpoint) }];
  const files = [...written, ...own];
  if (flags.json) {
    process.stdout.write(`${JSON.stringify({ folder, files })}\n`);
    return;
  }
  for (const { name, bytes } of files) process.stdout.write(`${name}  ${Math.ceil(bytes / 1000)} kB\n`);
  if (folder !== undefined) process.stdout.write(`and the vocabularies, in ${folder}\n`);
}
