import { type Command, Option } from 'commander';
import type { FairseqImportOptions } from '../translate/exchange/fairseq.js';
import type { ForeignModel } from '../translate/exchange/foreign.js';
import type { HuggingFaceImportOptions } from '../translate/exchange/huggingface.js';

interface ImportFlags {
  readonly out: string;
  readonly data?: string;
  readonly json?: boolean;
}

/** `tcts import`: makes a run folder from a model trained with another tool. */
export function registerImport(program: Command): void {
  const command = program
    .command('import')
    .description('Make a run folder from a translation model trained with fairseq, Marian or M2M-100.');
  shared(
    command
      .command('fairseq')
      .description(
        'A fairseq Transformer: a folder with checkpoint_best.pt or model.pt, and dict.L.txt of both languages.',
      )
      .argument('<folder>', 'folder with the checkpoint and the dictionaries')
      .option('--checkpoint <name>', 'another checkpoint in the folder')
      .option('--source <language>', 'source language (default: from the checkpoint)')
      .option('--target <language>', 'target language (default: from the checkpoint)')
      .option('--codes <file>', 'merges of subword-nmt (default: bpecodes in the folder, if present)')
      .option('--spm <model...>', 'SentencePiece models: one for both languages, or one each')
      .addOption(
        new Option(
          '--tokenizer <kind>',
          'how text is tokenised before that (default: moses with merges, otherwise none)',
        ).choices(['moses', 'none', 'char', 'jieba']),
      )
      .option('--lowercase', 'lowercase the text')
      .option('--normalize', 'normalise punctuation as Moses does')
      .addHelpText('after', '\nExample:\n  tcts import fairseq wmt.en-de --codes wmt.en-de/bpecodes --out runs/wmt'),
  ).action((folder: string, flags: ImportFlags & FairseqImportOptions) =>
    importCommand(folder, flags, async () =>
      (await import('../translate/exchange/fairseq.js')).readFairseq(folder, flags),
    ),
  );
  shared(
    command
      .command('hf')
      .description(
        "Marian (OPUS-MT) or M2M-100 in Hugging Face's layout: config.json, model.safetensors, vocab.json, …",
      )
      .argument('<folder>', 'folder of the model')
      .option('--source <language>', 'source language (default: from tokenizer_config.json)')
      .option('--target <language>', 'target language (default: from tokenizer_config.json)')
      .option('--prefix <token>', 'token before every source line, such as >>fra<< for a model with several languages')
      .addHelpText(
        'after',
        `
Examples:
  tcts import hf opus-mt-en-de --out runs/opus
  tcts import hf m2m100_418M --source en --target de --out runs/m2m`,
      ),
  ).action((folder: string, flags: ImportFlags & HuggingFaceImportOptions) =>
    importCommand(folder, flags, async () =>
      (await import('../translate/exchange/huggingface.js')).readHuggingFace(folder, flags),
    ),
  );
}

function shared(command: Command): Command {
  return command
    .requiredOption('--out <run>', 'the run folder to make')
    .option('--data <corpus>', 'corpus for tcts evaluate, made with tcts prepare translate --like RUN')
    .option('--json', 'print what was imported as JSON');
}

async function importCommand(folder: string, flags: ImportFlags, read: () => Promise<ForeignModel>): Promise<void> {
  const foreign = await read();
  const { saveImported } = await import('../translate/exchange/foreign.js');
  saveImported(flags.out, foreign, { data: flags.data, from: folder });
  const { model, languages, parameters } = foreign;
  const count = [...parameters.values()].reduce((sum, { length }) => sum + length, 0);
  const { source, target } = languages;
  if (flags.json) {
    process.stdout.write(`${JSON.stringify({ run: flags.out, parameters: count, model })}\n`);
    return;
  }
  const [from, to] = [source.config.language, target.config.language];
  process.stdout.write(
    [
      `${from}→${to}, ${model.encoderLayers}+${model.decoderLayers} layers, d ${model.width}, ${count.toLocaleString('en')} parameters`,
      `text: ${source.config.tokenizer.kind}${source.codes ? ' and merges' : ''}; vocabulary of ${source.vocabulary.size} and ${target.vocabulary.size}`,
      `translate:  tcts translate ${flags.out} --policy wait-k:3`,
      `data:       tcts prepare translate --source ${from} --target ${to} --like ${flags.out} --train … --valid … --out …`,
      `train:      a configuration with "extends: ${flags.out}/start.yaml"`,
      '',
    ].join('\n'),
  );
}
