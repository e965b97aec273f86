import type { LatencyUnit } from '../../metrics/index.js';
import type { Policy } from '../policies/policy.js';
import type { ArrivingWord } from '../text/arriving.js';
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
