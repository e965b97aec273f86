import { type Command, Option } from 'commander';
import type { FairseqImportOptions } from '../translate/exchange/fairseq.js';
import type { ForeignModel } from '../translate/exchange/foreign.js';
import type { HuggingFaceImportOptions } from '../translate/exchange/huggingface.js';

interface ImportFlags {
  readonly out: string;
  readonly data?: string;
  readonly json?: boolean;
}

/** `tcts import`: a model that another tool has trained as a run folder. */
export function registerImport(program: Command): void {
  const command = program
    .command('import')
    .description('Make a run folder of a translation model that fairseq, Marian or M2M-100 has trained.');
  shared(
    command
      .command('fairseq')
      .description(
        'A Transformer of fairseq: a folder with checkpoint_best.pt or model.pt, and dict.L.txt of both languages.',
      )
      .argument('<folder>', 'folder with the checkpoint and the dictionaries')
      .option('--checkpoint <name>', 'another checkpoint of the folder')
      .option('--source <language>', 'source language (default: as the checkpoint says)')
      .option('--target <language>', 'target language (default: as the checkpoint says)')
      .option('--codes <file>', 'merges of subword-nmt (default: bpecodes in the folder, if it is there)')
      .option('--spm <model...>', 'models of SentencePiece: one for both languages, or one for each')
      .addOption(
        new Option('--tokenizer <kind>', 'how text is cut before that (default: moses with merges, else none)').choices(
          ['moses', 'none', 'char', 'jieba'],
        ),
      )
      .option('--lowercase', 'put text into lower case')
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
      .option('--source <language>', 'source language (default: as tokenizer_config.json says)')
      .option('--target <language>', 'target language (default: as tokenizer_config.json says)')
      .option('--prefix <token>', 'token before every source line, such as >>fra<< of a model for several languages')
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
