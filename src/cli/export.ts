import { type Command, Option } from 'commander';
import type { DeviceName } from '../devices.js';
import { InputError } from '../errors.js';
import type { CheckpointChoice } from '../translate/index.js';
import { checkpointOption } from './flags.js';
import { runFolder } from './names.js';

interface ExportFlags {
  readonly onnx?: string;
  readonly parameters?: string;
  readonly hf?: string;
  readonly checkpoint: CheckpointChoice;
  readonly device?: DeviceName;
  readonly json?: boolean;
}

/** `tcts export`: a trained model as ONNX files, for transformers, or its parameters alone. */
export function registerExport(program: Command): void {
  program
    .command('export')
    .description('Write a trained translation model as ONNX files, for transformers, or only its parameters.')
    .argument('<run>', 'run folder of a translation model')
    .option('--onnx <folder>', 'where to write encoder-step.onnx, decoder-step.onnx, settings.json and vocabularies')
    .option('--hf <folder>', "where to write a Marian model for Hugging Face's transformers")
    .option('--parameters <file>', 'where to write the parameters as safetensors, without the optimiser state')
    .addOption(checkpointOption().default('best'))
    .addOption(new Option('--device <name>', 'device that --onnx targets (default: cpu)').choices(['cpu', 'webgpu']))
    .option('--json', 'print what was written as JSON')
    .addHelpText(
      'after',
      `
Example:
  tcts export runs/multi30k --onnx exported/multi30k
  tcts export runs/multi30k --parameters multi30k.safetensors --checkpoint average:5
  tcts export runs/opus-en-de-wait-3 --hf exported/opus-en-de

docs/translation.md describes how to call the two models step by step, docs/import.md what transformers loads.`,
    )
    .action(exportCommand);
}

async function exportCommand(run: string, flags: ExportFlags): Promise<void> {
  const { checkpoint, device, onnx: folder, parameters, hf } = flags;
  if (folder === undefined && parameters === undefined && hf === undefined) {
    throw new InputError('missing: expected --onnx, --hf or --parameters', { key: '--onnx' });
  }
  const { exportParameters, exportTranslation } = await import('../translate/export.js');
  const from = runFolder(run);
  const written = folder === undefined ? [] : exportTranslation(from, folder, { checkpoint, device }).files;
  const own =
    parameters === undefined ? [] : [{ name: parameters, bytes: exportParameters(from, parameters, checkpoint) }];
  const { exportHuggingFace } = await import('../translate/export.js');
  const files = [...written, ...(hf === undefined ? [] : exportHuggingFace(from, hf, checkpoint).files), ...own];
  if (flags.json) {
    process.stdout.write(`${JSON.stringify({ folder, files })}\n`);
    return;
  }
  for (const { name, bytes } of files) process.stdout.write(`${name}  ${Math.ceil(bytes / 1000)} kB\n`);
  if (folder !== undefined) process.stdout.write(`and the vocabularies, in ${folder}\n`);
}
