import { type Command, Option } from 'commander';
import { InputError, type Where } from '../errors.js';
import { wrapped } from '../text-table.js';
import type { TextStream, TextStreamOptions } from '../translate/decode/text-stream.js';
import type { Translator } from '../translate/decode/translator.js';
import { policyTexts } from '../translate/policies/index.js';
import {
  addPolicyFlags,
  addSearchFlags,
  type PolicyFlags,
  policyHelp,
  type SearchFlags,
  searchOf,
  speculateOption,
  wholeNumber,
} from './flags.js';
import { builtInModel, runFolder } from './names.js';
import { readInput, splitLines } from './score-input.js';
import { reportError } from './terminal.js';

interface TranslateFlags extends SearchFlags, PolicyFlags {
  readonly nbest?: string;
  readonly speculate?: number;
  readonly input?: string;
  readonly trace?: boolean;
}

/** `tcts translate`: text through a trained model, word by word or in batches. */
export function registerTranslate(program: Command): void {
  const command = program
    .command('translate')
    .description('Translate text as it arrives with a trained model.')
    .argument('[run]', 'run folder of a translation model (default: the bundled model)');
  addSearchFlags(addPolicyFlags(command))
    .addOption(speculateOption())
    .addOption(new Option('--input <file>', 'translate the lines of a file in batches (also .gz)'))
    .option('--nbest <n>', 'with --input: the n best of each line, as NUMBER ||| TEXT ||| SCORE; at most the beam')
    .addOption(new Option('--trace', 'print a line for every READ and WRITE').conflicts('input'))
    .addHelpText(
      'after',
      `
In a terminal it is live: type, and each word is translated when its space is typed. Otherwise
a line of standard input is a sentence; a word is read as soon as the white space after it has arrived, and the
translation is written as soon as the policy allows. An empty line gives an empty line; a sentence that is too long for
the model, or with --input one that is not UTF-8, is left untranslated, with a message and exit code 1. With a beam, what is left to be
written after the last word comes at once; --beam 1 writes it token by token.

${policyHelp()}

Examples:
  tcts translate
  (for word in a man walks ; do printf '%s ' $word; sleep 1; done) | tcts translate runs/multi30k --k 1
  tcts translate runs/multi30k --k 3 --input test.en > test.de
  tcts translate runs/full --policy wait-if-diff:initial=2 --trace < test.en`,
    )
    .action(translateCommand);
}

async function translateCommand(given: string | undefined, flags: TranslateFlags): Promise<void> {
  const run = given === undefined ? builtInModel.folder : runFolder(given);
  const [policyText, ...others] = policyTexts(flags) ?? [];
  if (others.length > 0) throw new InputError('expected one policy, found several', { key: '--policy' });
  const { checkpoint, threads, device, ...settings } = searchOf(flags);
  const search = { ...settings, speculate: flags.speculate };
  const nbest = flags.nbest === undefined ? undefined : wholeNumber('--nbest')(flags.nbest);
  if (nbest !== undefined && flags.input === undefined) {
    throw new InputError('needs --input: a stream writes one translation', { key: '--nbest' });
  }
  if (nbest !== undefined && nbest > search.beam) {
    throw new InputError(`expected at most the beam of ${search.beam}, found ${nbest}`, { key: '--nbest' });
  }
  // Only here: other verbs need not wait until the runtime is loaded.
  const { sharedAmong, Translator } = await import('../translate/decode/translator.js');
  // The lines of a file are shared among threads; those of a stream come one by one.
  const division = flags.input === undefined ? { threads } : sharedAmong(threads, device);
  const translator = await Translator.open(run, { beam: search.beam, device, checkpoint, ...division }, flags.models);
  if (given === undefined) process.stderr.write(`${wrapped(`built-in model, ${builtInModel.about}`)}\n`);
  try {
    const policy = translator.policy(policyText);
    if (flags.input === undefined && !flags.trace && process.stdin.isTTY && process.stdout.isTTY) {
      const { translateLive } = await import('./live-translation.js');
      await translateLive(run, translator, () => translator.stream(policy, search));
      return;
    }
    if (flags.input === undefined) {
      await translateArrivals((show) => translator.stream(policy, { ...search, ...show }), translator, flags.trace);
      return;
    }
    const input = await readInput(flags.input);
    const onTooLong = (line: number, reason: InputError): void => refuseSentence(reason, input.name, line + 1);
    const onBad = (error: InputError): void => refuse(`${error.message}: it is left untranslated`);
    const sources = splitLines(input, onBad);
    const lines =
      nbest === undefined
        ? await translator.lines(sources, policy, { ...search, onTooLong })
        : (await translator.nbestLines(sources, policy, { ...search, onTooLong, nbest })).flatMap((best, i) =>
            best.map(({ text, score }) => `${i} ||| ${text} ||| ${score.toFixed(6)}`),
          );
    process.stdout.write(lines.map((line) => `${line}\n`).join(''));
  } finally {
    await translator.close();
  }
}

/** Translates standard input, one sentence per line, while its words arrive. */
async function translateArrivals(
  begin: (options: TextStreamOptions) => TextStream,
  { source, target }: Translator,
  traced = false,
): Promise<void> {
  const { arrivals } = await import('../translate/text/arriving.js');
  const { tokenName } = await import('../translate/decode/text-stream.js');
  const trace = (action: string, text: string): boolean => process.stdout.write(`${action}\t${text}\n`);
  let written = '';
  const options: TextStreamOptions = {
    onEvent: traced
      ? ({ action, token }) => trace(action, tokenName(action === 'READ' ? source : target, token))
      : undefined,
    onText(text) {
      written += text;
      if (!traced) process.stdout.write(text);
    },
  };
  let sentence: TextStream | undefined;
  let refused = false;
  let line = 1;
  const next = async (step: () => Promise<unknown>): Promise<void> => {
    try {
      await step();
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      refused = true;
      refuseSentence(error, STANDARD_INPUT, line);
    }
  };
  for await (const arrival of arrivals(process.stdin, STANDARD_INPUT, source.pipeline.byCharacter)) {
    if ('word' in arrival) {
      if (refused) continue;
      sentence ??= begin(options);
      const [stream, { word, joined }] = [sentence, arrival];
      await next(() => stream.push(word, joined));
      continue;
    }
    const stream = sentence;
    if (stream !== undefined && !refused) await next(() => stream.end());
    if (traced) trace('TEXT', written);
    else process.stdout.write('\n');
    sentence = undefined;
    refused = false;
    written = '';
    line++;
  }
}

const STANDARD_INPUT = 'standard input';

/** Says which sentence cannot be translated and why. The others are; the exit code tells that something is missing. */
function refuseSentence({ message }: InputError, file: string, line: number): void {
  refuse(`${message}: it is left untranslated`, { file, line });
}

function refuse(message: string, where?: Where): void {
  process.exitCode = 1;
  reportError(new InputError(message, where));
}
