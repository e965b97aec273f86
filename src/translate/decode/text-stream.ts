import type { TextPipeline, TokenDecoder, WordEncoder } from '../text/pipeline.js';
import { special, type Vocabulary } from '../text/vocabulary.js';
import type { Policy } from './policy.js';
import type { Decoded } from './sentence.js';
import { type StreamOptions, TokenStream } from './stream.js';
import type { TokenModel } from './token-model.js';

/** One side of a language pair: how text becomes ids, and back. */
export interface TextSide {
  readonly pipeline: TextPipeline;
  readonly vocabulary: Vocabulary;
}

export interface TextStreamOptions extends StreamOptions {
  /** Called with each piece of text as soon as it is settled; `push` and `end` return the same pieces, joined. */
  readonly onText?: (text: string) => void;
}

/** Translates one sentence while its words arrive. The pieces of text that it returns, one after the other, are the translation. */
export class TextStream {
  private readonly stream: TokenStream;
  private readonly encoder: WordEncoder;
  private readonly decoder: TokenDecoder;
  /** Text that is settled and not yet returned. */
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

  /** Another policy over the same models from here on. What is written stays. */
  set policy(policy: Policy) {
    this.stream.policy = policy;
  }

  /** The translation is complete, whatever words may still come. */
  get done(): boolean {
    return this.stream.done;
  }

  /** The translation so far, in tokens. */
  get decoded(): Decoded {
    return this.stream.decoded;
  }

  /** Takes a word and returns the text that is settled by it, which may be empty. */
  async push(word: string): Promise<string> {
    await this.stream.push(this.ids(this.encoder.push(word)));
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
export function tokensByWord({ pipeline }: TextSide, words: readonly string[]): number[] {
  const encoder = pipeline.wordEncoder();
  let count = 0;
  const counts = words.map((word) => {
    count += encoder.push(word).length;
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

/** The words of a line, as they would arrive one by one. */
export function arrivingWords(line: string): string[] {
  return line.split(/\s+/u).filter((word) => word !== '');
}

/** The name of a token for people: the ends of sentences by name. */
export function tokenName({ vocabulary }: TextSide, id: number): string {
  return id === special.eos ? '</s>' : vocabulary.tokens[id];
}
