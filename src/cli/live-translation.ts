import { InputError } from '../errors.js';
import { openRun } from '../run/index.js';
import { wrapped } from '../text-table.js';
import { lineIds, type TextStream } from '../translate/decode/text-stream.js';
import type { Translator } from '../translate/decode/translator.js';
import { exampleSentences } from '../translate/examples.js';
import { type ArrivingWord, arrivedWords } from '../translate/text/arriving.js';
import { special } from '../translate/text/vocabulary.js';
import { colorsFor } from './terminal.js';

/** The ends of a terminal that are needed; for tests they may be others. */
export interface LiveTerminal {
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
}

/**
 * Translates while the user types: each word when its space is typed, or each character if the source is read by
 * characters; the rest with Enter. Typed text can be corrected; the sentence is then read again from its first word.
 * Ends with Ctrl-C or Ctrl-D.
 */
export async function translateLive(
  run: string,
  translator: Translator,
  begin: () => TextStream,
  { input, output }: LiveTerminal = { input: process.stdin, output: process.stdout },
): Promise<void> {
  const sentence = new LiveSentence(translator, begin, output);
  const unit = translator.source.pipeline.byCharacter ? 'character' : 'word';
  const when = unit === 'word' ? 'its space' : 'it';
  const how = `each ${unit} is translated when ${when} is typed; Enter ends a sentence, Ctrl-C the program.`;
  output.write(`${wrapped(`${begin().policy.name}: ${how}`, 79)}\n${exampleOf(run, translator)}\n`);
  sentence.draw();
  input.setRawMode(true);
  input.setEncoding('utf8');
  try {
    for await (const chunk of input) {
      const keys = [...(chunk as string).replaceAll(ESCAPES, '')];
      for (const key of keys) {
        if (key === CTRL_C || key === CTRL_D) return;
        await sentence.press(key);
      }
      // Once for all that was pasted.
      await sentence.refresh();
    }
  } finally {
    input.setRawMode(false);
    sentence.leave();
  }
}

const [CTRL_C, CTRL_D, CTRL_U] = ['\x03', '\x04', '\x15'];
const BACKSPACE = ['\x7f', '\b'];
// biome-ignore lint/suspicious/noControlCharactersInRegex: arrow keys and the like begin with the control character ESC
const ESCAPES = /\x1b(\[[0-9;?]*[ -/]*[@-~]|O.|.)?/g;

/** A sentence that is being typed, with its translation below it. */
class LiveSentence {
  private typed = '';
  /** The words, or characters, that the stream has been given. */
  private given: ArrivingWord[] = [];
  private stream: TextStream | undefined;
  private translation = '';
  private problem = '';
  /** Lines of the terminal above the cursor that belong to the drawing. */
  private above = 0;

  constructor(
    private readonly translator: Translator,
    private readonly begin: () => TextStream,
    private readonly output: NodeJS.WriteStream,
  ) {}

  async press(key: string): Promise<void> {
    if (key === '\r' || key === '\n') {
      await this.end();
      return;
    }
    if (key === CTRL_U) this.typed = '';
    else if (BACKSPACE.includes(key)) this.typed = [...this.typed].slice(0, -1).join('');
    else if (key === ' ' || key > ' ') this.typed += key;
  }

  /** Shows what was typed, and then its translation. */
  async refresh(): Promise<void> {
    this.draw();
    await this.catchUp();
    this.draw();
  }

  /** The prompt with what was typed, the translation, and the words that the model does not know. */
  draw(): void {
    const { bold, dim, yellow } = colorsFor(this.output);
    const unknown = this.unknown();
    const { byCharacter } = this.translator.source.pipeline;
    const pieces = byCharacter ? Array.from(this.typed) : this.typed.split(' ');
    const marked = pieces.map((piece) => (unknown.includes(piece) ? yellow(piece) : piece));
    const note = this.problem || (unknown.length === 0 ? '' : `unknown to the model: ${unknown.join(', ')}`);
    const typedRows = rowsOf(`> ${this.typed}`, this.output.columns);
    const belowRows =
      rowsOf(`  ${this.translation}`, this.output.columns) +
      (note === '' ? 0 : rowsOf(`  ${note}`, this.output.columns));
    this.clear();
    const below = `\n  ${bold(this.translation)}${note === '' ? '' : `\n  ${dim(note)}`}`;
    // Back to the end of what was typed.
    const column = ((2 + widthOf(this.typed) - 1) % (this.output.columns || 80)) + 1;
    this.output.write(`> ${marked.join(byCharacter ? '' : ' ')}${below}\x1b[${belowRows}A\r\x1b[${column}C`);
    this.above = typedRows - 1;
  }

  /** Puts the cursor below the drawing. */
  leave(): void {
    this.typed = '';
    this.given = [];
    this.translation = '';
    this.problem = '';
    this.clear();
  }

  private async end(): Promise<void> {
    const last = this.typed.split(' ').at(-1) ?? '';
    if (last !== '') this.typed += ' ';
    await this.catchUp();
    const stream = this.stream;
    if (stream !== undefined && this.problem === '') {
      await this.attempt(async () => {
        this.translation += await stream.end();
      });
    }
    this.draw();
    const { translation, typed, problem } = this;
    this.clear();
    if (typed.trim() !== '') this.output.write(`> ${typed.trim()}\n  ${problem === '' ? translation : problem}\n`);
    Object.assign(this, { typed: '', given: [], stream: undefined, translation: '', problem: '', above: 0 });
    this.draw();
  }

  /** Gives the stream the words that are complete; a changed word makes it begin again. */
  private async catchUp(): Promise<void> {
    const words = this.words();
    const same = this.given.every(({ word, joined }, i) => word === words[i]?.word && joined === words[i].joined);
    if (!same) Object.assign(this, { given: [], stream: undefined, translation: '', problem: '' });
    for (const arriving of words.slice(this.given.length)) {
      this.given.push(arriving);
      if (this.problem !== '') continue;
      this.stream ??= this.begin();
      const { stream } = this;
      await this.attempt(async () => {
        this.translation += await stream.push(arriving.word, arriving.joined);
      });
    }
  }

  /** What is complete: each word with a space after it, or every character. */
  private words(): ArrivingWord[] {
    return arrivedWords(this.typed, this.translator.source.pipeline.byCharacter);
  }

  /** Words of what is complete, or its tokens, that the model does not know. */
  private unknown(): string[] {
    const { source } = this.translator;
    const words = this.words().map(({ word }) => word);
    const units = source.pipeline.byCharacter ? source.pipeline.words(this.typed) : words;
    const isUnknown = (unit: string): boolean => lineIds(source, unit).includes(special.unk);
    return [...new Set(units)].filter((unit) => unit.trim() !== '' && isUnknown(unit));
  }

  /** Reports a sentence that is too long for the model; the user can shorten it. */
  private async attempt(step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      this.problem = error.message;
    }
  }

  private clear(): void {
    this.output.write(`${this.above > 0 ? `\x1b[${this.above}A` : ''}\r\x1b[J`);
    this.above = 0;
  }
}

function rowsOf(text: string, columns = 80): number {
  return Math.max(1, Math.ceil(widthOf(text) / (columns || 80)));
}

/** Columns of a text: characters of Chinese, Japanese and Korean take two. */
function widthOf(text: string): number {
  return [...text].reduce((sum, character) => sum + (WIDE.test(character) ? 2 : 1), 0);
}

const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff01-\uff60]/u;

/** A sentence to begin with, if there is one of the language. */
function exampleOf(run: string, { source }: Translator): string {
  const { problem } = openRun(run).config as { problem?: unknown };
  const [example] = exampleSentences(source.pipeline.config, problem);
  return example === undefined ? '' : `For example:\n\n  ${example.source}\n`;
}
