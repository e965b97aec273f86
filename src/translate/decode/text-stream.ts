import { InputError } from '../../errors.js';
import type { LatencyUnit } from '../../metrics/index.js';
import type { Policy } from '../policies/policy.js';
import type { TextPipeline, TokenDecoder, WordEncoder } from '../text/pipeline.js';
import { special, type Vocabulary } from '../text/vocabulary.js';
import type { Decoded } from './search.js';
import { type StreamOptions, TokenStream } from './stream.js';
import type { TokenModel } from './token-model.js';

/** One side of a language pair: how text becomes ids, and back. */
export interface TextSide {
  readonly pipeline: TextPipeline;
  readonly vocabulary: Vocabulary;
}

export interface TextStreamOptions extends StreamOptions {
  /** Called with each piece of text as soon as it is final; `push` and `end` return the same pieces, joined. */
  readonly onText?: (text: string) => void;
}

/** Translates one sentence as its words arrive. The returned pieces of text, joined, are the translation. */
export class TextStream {
  private readonly stream: TokenStream;
  private readonly encoder: WordEncoder;
  private readonly decoder: TokenDecoder;
  /** Text that is final but not yet returned. */
  private settled = '';

  constructor(
    models: readonly TokenModel[],
    private readonly source: TextSide,
    { pipeline, vocabulary }: TextSide,
    policy: Policy,
    private readonly options: TextStreamOptions = {},
  ) {
    const onEvent: StreamOptions['onEvent'] = (event) => {
      options.onEvent?.(event);
      if (event.action === 'WRITE') this.settle(this.decoder.push(vocabulary.tokens[event.token]));
    };
    this.stream = new TokenStream(models, policy, { ...options, onEvent });
    this.encoder = source.pipeline.wordEncoder();
    this.decoder = pipeline.textDecoder();
  }

  get policy(): Policy {
    return this.stream.policy;
  }

  /** Another policy for the same models from here on. What is written stays. */
  set policy(policy: Policy) {
    this.stream.policy = policy;
  }

  /** The translation is complete, even if more words come. */
  get done(): boolean {
    return this.stream.done;
  }

  /** The translation so far, in tokens. */
  get decoded(): Decoded {
    return this.stream.decoded;
  }

  /** Takes a word and returns the text that becomes final with it, which may be empty. `joined`: no space is before it. */
  async push(word: string, joined = false): Promise<string> {
    await this.stream.push(this.ids(this.encoder.push(word, joined)));
    return this.taken();
  }

  /** The sentence is complete: returns the rest of the translation. */
  async end(): Promise<string> {
    await this.stream.push(this.ids(this.encoder.end()));
    await this.stream.end();
    this.settle(this.decoder.end());
    return this.taken();
  }

  private ids(tokens: readonly string[]): number[] {
    return tokens.map((token) => this.source.vocabulary.id(token));
  }

  private settle(text: string): void {
    if (text === '') return;
    this.settled += text;
    this.options.onText?.(text);
  }

  private taken(): string {
    const text = this.settled;
    this.settled = '';
    return text;
  }
}

/** What a reader of the stream has seen after each token, and after the end. */
export function writtenText({ pipeline, vocabulary }: TextSide, ids: ArrayLike<number>): string[] {
  const decoder = pipeline.textDecoder();
  let seen = '';
  const texts = Array.from(ids, (id) => {
    seen += decoder.push(vocabulary.tokens[id]);
    return seen;
  });
  return [...texts, seen + decoder.end()];
}

/** Source tokens that are settled after each word of a line; the last number is all of them. */
export function tokensByWord({ pipeline }: TextSide, words: readonly ArrivingWord[]): number[] {
  const encoder = pipeline.wordEncoder();
  let count = 0;
  const counts = words.map(({ word, joined }) => {
    count += encoder.push(word, joined).length;
    return count;
  });
  const held = encoder.end().length;
  if (counts.length > 0) counts[counts.length - 1] += held;
  return counts;
}

/** Ids of a line of text with the end of the sentence. */
export function lineIds({ pipeline, vocabulary }: TextSide, line: string): Int32Array {
  return vocabulary.encode(pipeline.encode(line));
}

/** A word, or a character of a language without spaces; `joined`: no space is before it. */
export interface ArrivingWord {
  readonly word: string;
  readonly joined?: boolean;
}

/** The words of a line, as they would arrive one by one; characters, if the source is read by characters. */
export function arrivingWords({ pipeline }: TextSide, line: string): ArrivingWord[] {
  const words = line.split(/\s+/u).filter((word) => word !== '');
  if (!pipeline.byCharacter) return words.map((word) => ({ word }));
  return words.flatMap((word) => Array.from(word, (character, i) => ({ word: character, joined: i > 0 })));
}

/** The name of a token for display: the sentence ends by name. */
export function tokenName({ vocabulary }: TextSide, id: number): string {
  return id === special.eos ? '</s>' : vocabulary.tokens[id];
}

/** Written words or characters, each with the source words that had arrived when it was output. */
export interface UnitDelays {
  readonly units: readonly string[];
  readonly delays: readonly number[];
  /** The token whose writing completed each; after the last token, the end. */
  readonly places: readonly number[];
}

/** How a text is split into units of output. */
export interface Handover {
  readonly unit: LatencyUnit;
  /**
   * A later token, such as a comma, may join the previous word. A word is then known to be complete when the next one
   * begins, or at the end: output earlier, the comma would become a separate word.
   */
  readonly attaches: boolean;
}

/**
 * Delays in words or characters instead of tokens, as SimulEval counts them, of an agent that outputs each as soon as
 * it is complete. Spaces are not characters.
 *
 * @param seen what a reader has seen after each token, and after the end (`writtenText`)
 * @param delays source tokens that were read before each of these
 * @param settled source tokens that are known after each source word; a token arrives with the word that settles it
 */
export function unitDelays(
  seen: readonly string[],
  delays: ArrayLike<number>,
  settled: readonly number[],
  { unit, attaches }: Handover,
): UnitDelays {
  const text = seen.at(-1) ?? '';
  const found = [...text.matchAll(unit === 'word' ? /\S+/gu : /[^ ]/gu)];
  const after = unit === 'word' && attaches ? 1 : 0;
  const places = found.map(({ 0: piece, index }) => {
    const complete = seen.findIndex((sofar) => sofar.length >= index + piece.length + after);
    return complete < 0 ? seen.length - 1 : complete;
  });
  return {
    units: found.map(([piece]) => piece),
    delays: places.map((token) => {
      const arrived = settled.findIndex((count) => count >= delays[token]);
      return arrived < 0 ? settled.length : arrived + 1;
    }),
    places,
  };
}

/** A word, or the end of a line. */
export type Arrival = ArrivingWord | { readonly lineEnd: true };

/**
 * The words of a UTF-8 text that arrives in pieces, however it is split. A word has arrived when the white space
 * after it has, a character at once if the source is read by characters; a line ends with "\n" or with the text. `name` is
 * for messages.
 */
export async function* arrivals(
  chunks: AsyncIterable<Uint8Array>,
  name: string,
  byCharacter = false,
): AsyncGenerator<Arrival> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let word = '';
  /** A character of this word has arrived. */
  let joined = false;
  let line = 1;
  let begun = false;
  const decode = (chunk?: Uint8Array): string => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined });
    } catch {
      const sentence = chunk === undefined ? 'the text ends in the middle of a character' : 'the text is not UTF-8';
      throw new InputError(sentence, { file: name, line });
    }
  };
  for await (const chunk of chunks) {
    // Line by line: invalid bytes do not affect the lines before them.
    for (const bytes of withNewlines(chunk)) {
      for (const piece of decode(bytes).split(/(\s)/u)) {
        if (!/^\s$/u.test(piece)) {
          begun ||= piece !== '';
          if (!byCharacter) word += piece;
          else {
            for (const character of piece) {
              yield { word: character, joined };
              joined = true;
            }
          }
          continue;
        }
        if (word !== '') yield { word };
        word = '';
        joined = false;
        begun = piece !== '\n';
        if (begun) continue;
        line++;
        yield { lineEnd: true };
      }
    }
  }
  word += decode();
  if (word !== '') yield { word };
  if (begun) yield { lineEnd: true };
}

const NEWLINE = 0x0a;

/** Cuts bytes after each "\n", which in UTF-8 is never part of another character. */
function* withNewlines(bytes: Uint8Array): Generator<Uint8Array> {
  for (let start = 0; start < bytes.length; ) {
    const newline = bytes.indexOf(NEWLINE, start);
    const end = newline < 0 ? bytes.length : newline + 1;
    yield bytes.subarray(start, end);
    start = end;
  }
}
