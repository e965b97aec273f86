import { type Command, Option } from 'commander';
import { InputError } from '../errors.js';
import type { StreamOptions } from '../translate/decode/stream.js';
import type { TextStream } from '../translate/decode/text-stream.js';
import type { Translator } from '../translate/decode/translator.js';
import { readInput, splitLines } from './score-input.js';
import {
  addPolicyFlags,
  addSearchFlags,
  POLICY_HELP,
  type PolicyFlags,
  policiesOf,
  type SearchFlags,
  searchOf,
} from './search-flags.js';

interface TranslateFlags extends SearchFlags, PolicyFlags {
  readonly input?: string;
  readonly trace?: boolean;
}

/** `tcts translate`: text through a trained model, word by word or in batches. */
export function registerTranslate(program: Command): void {
  const command = program
    .command('translate')
    .description('Translate text with a trained model while it arrives.')
    .argument('<run>', 'run folder of a translation model');
  addSearchFlags(addPolicyFlags(command))
    .addOption(new Option('--input <file>', 'translate the lines of a file in batches (.gz is read too)'))
    .addOption(new Option('--trace', 'print every READ and WRITE as a line of its own').conflicts('input'))
    .addHelpText(
      'after',
      `
A line of standard input is a sentence; a word is read as soon as the white space after it has arrived, and the
translation is written as soon as the policy allows. An empty line gives an empty line. With a beam, what is left to be
written after the last word comes at once; --beam 1 writes it token by token.

${POLICY_HELP}

Examples:
  (for word in a man walks ; do printf '%s ' $word; sleep 1; done) | tcts translate runs/multi30k --k 1
  tcts translate runs/multi30k --k 3 --input test.en > test.de
  tcts translate runs/full --policy wait-if-diff:initial=2 --trace < test.en`,
    )
    .action(translateCommand);
}

async function translateCommand(run: string, flags: TranslateFlags): Promise<void> {
  // Whoever reads the output may leave before its end, as `head` does.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit();
  });
  const [policyText, ...others] = policiesOf(flags) ?? [];
  if (others.length > 0) throw new InputError('expected one policy, found several', { key: '--policy' });
  const { checkpoint, threads, ...search } = searchOf(flags);
  // Only here: other verbs need not wait until the runtime is loaded.
  const { Translator } = await import('../translate/decode/translator.js');
  const translator = await Translator.open(run, { beam: search.beam, threads, checkpoint }, flags.models);
  try {
    const policy = translator.policy(policyText);
    if (flags.input === undefined) {
      await translateArrivals((onEvent) => translator.stream(policy, { ...search, onEvent }), translator, flags.trace);
      return;
    }
    const input = await readInput(flags.input);
    const lines = await located(input.name, undefined, () => translator.lines(splitLines(input), policy, search));
    process.stdout.write(lines.map((line) => `${line}\n`).join(''));
  } finally {
    await translator.close();
  }
}

/** Translates standard input, a sentence a line, while its words arrive. */
async function translateArrivals(
  begin: (onEvent?: StreamOptions['onEvent']) => TextStream,
  { source, target }: Translator,
  traced = false,
): Promise<void> {
  const { arrivals } = await import('../translate/decode/arrivals.js');
  const { tokenName } = await import('../translate/decode/text-stream.js');
  const trace = (action: string, text: string): boolean => process.stdout.write(`${action}\t${text}\n`);
  const onEvent: StreamOptions['onEvent'] = traced
    ? ({ action, token }) => trace(action, tokenName(action === 'READ' ? source : target, token))
    : undefined;
  let sentence: TextStream | undefined;
  let written = '';
  let line = 1;
  const show = async (piece: Promise<string>): Promise<void> => {
    const text = await located(STANDARD_INPUT, line, () => piece);
    written += text;
    if (!traced) process.stdout.write(text);
  };
  for await (const arrival of arrivals(process.stdin, STANDARD_INPUT)) {
    if ('word' in arrival) {
      sentence ??= begin(onEvent);
      await show(sentence.push(arrival.word));
      continue;
    }
    if (sentence !== undefined) await show(sentence.end());
    if (traced) trace('TEXT', written);
    else process.stdout.write('\n');
    sentence = undefined;
    written = '';
    line++;
  }
}

const STANDARD_INPUT = 'standard input';

/** Says where a sentence stands that cannot be translated. */
async function located<T>(file: string, line: number | undefined, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof InputError ? new InputError(error.message, { file, line }) : error;
  }
}
