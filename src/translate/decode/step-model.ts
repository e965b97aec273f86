import type { Value } from '../../tensor/index.js';
import { Cache } from './cache.js';
import type { Answers } from './token-model.js';

/** One of the two programs of `steps.ts`, with its runtime. */
export interface StepProgram {
  /** Names of its inputs. */
  readonly inputs: readonly string[];
  /** Names of its outputs. */
  readonly outputs: readonly string[];
  /** Runs it for the outputs of these names; it may write them to the arrays of `into`. */
  run(
    feeds: Readonly<Record<string, Value>>,
    outputs: readonly string[],
    into: Readonly<Record<string, Float32Array>>,
  ): Promise<Readonly<Record<string, Value>>>;
  close(): Promise<void>;
}

/** Properties of a model that its programs do not tell. */
export interface StepShape {
  readonly width: number;
  /** Longest sentence, its end counted. */
  readonly maxPositions: number;
  /** Largest beam that it proposes enough candidates for. */
  readonly beam: number;
  readonly encoder: 'unidirectional' | 'bidirectional';
  /** What is written is re-decoded after every READ. */
  readonly redecodes: boolean;
  /** Of the decoder. */
  readonly decoderLayers: number;
  readonly heads: number;
}

/** What is known of the source of some sentences. */
export interface SourceCache {
  /** Tokens encoded so far, for the encoder itself; undefined if it re-encodes all with every token. */
  readonly encoder: Cache | undefined;
  /** Keys and values for the decoder. */
  readonly memory: Cache;
}

/** What a decoder takes in: some tokens of each row, as many of all. */
export interface StepRows {
  readonly tokens: readonly (readonly number[])[];
  /** Tokens of each row that were taken in before. */
  readonly lengths: readonly number[];
  /** Source tokens that each row may see. */
  readonly visible: readonly number[];
  /** Whether these are all. Only models that decide when to read need it. Default: false for each row. */
  readonly ended?: readonly boolean[];
  /** Whether the attention over the source is wanted. Default false. */
  readonly attention?: boolean;
}

/** Answers, with the attention of every head if it was wanted: [B, layers · heads, S]. */
export interface StepAnswers extends Answers {
  readonly weights?: Value;
}

/** A trained model, ready to read and write token by token. It holds no sentence: those are the caller's caches. */
export class StepModel {
  readonly maxPositions: number;
  readonly beam: number;
  readonly redecodes: boolean;
  /** A bidirectional encoder: each token that is read changes the encoding of all before it. */
  readonly reencodes: boolean;
  private readonly width: number;
  /** Its attention decides itself when to read, one token at a time. */
  readonly decides: boolean;
  /** It says how ready it is to write. */
  readonly tellsReadiness: boolean;
  /** The decoder whose attention can be asked for; undefined if none can. */
  readonly attention: { readonly layers: number; readonly heads: number } | undefined;
  private attending: Promise<StepProgram> | undefined;

  /** @param openAttending opens a decoder with the output `attention`, where `decoder` has none; it is called once */
  constructor(
    private readonly encoder: StepProgram,
    private readonly decoder: StepProgram,
    shape: StepShape,
    private readonly openAttending?: () => Promise<StepProgram>,
  ) {
    this.maxPositions = shape.maxPositions;
    this.beam = shape.beam;
    this.redecodes = shape.redecodes;
    this.reencodes = shape.encoder === 'bidirectional';
    this.width = shape.width;
    this.decides = decoder.outputs.includes('needed');
    this.tellsReadiness = decoder.outputs.includes('readiness');
    const tells = openAttending !== undefined || decoder.outputs.includes('attention');
    this.attention = tells ? { layers: shape.decoderLayers, heads: shape.heads } : undefined;
  }

  /** Nothing read yet, for `batch` sentences; the decoder's keys and values in `arrays`, if they are given. */
  source(batch: number, arrays?: Float32Array[]): SourceCache {
    return {
      encoder: this.reencodes ? undefined : this.cache(this.encoder, 'encoder', batch),
      memory: this.cache(this.decoder, 'source', batch, arrays),
    };
  }

  /** Nothing written yet, for `batch` sentences; in `arrays`, if they are given. */
  target(batch: number, arrays?: Float32Array[]): Cache {
    return this.cache(this.decoder, 'decoder', batch, arrays);
  }

  /** Encodes one more token of each sentence; `lengths` are those read before. For unidirectional encoders. */
  async read({ encoder, memory }: SourceCache, tokens: ArrayLike<number>, lengths: ArrayLike<number>): Promise<void> {
    if (encoder === undefined) throw new TypeError('this encoder re-encodes the source with every token: call encode');
    const into = { ...encoder.room(1), ...memory.room(1) };
    const outputs = await this.encoder.run(
      { tokens: integers(tokens, [1, tokens.length]), lengths: integers(lengths), ...encoder.feeds() },
      Object.keys(into),
      into,
    );
    encoder.append(outputs);
    memory.append(outputs);
  }

  /** Encodes sentences from their beginning, each the first `lengths[b]` tokens of `sources[b]`. */
  async encode(
    sources: readonly ArrayLike<number>[],
    lengths: ArrayLike<number>,
    arrays?: Float32Array[],
  ): Promise<Cache> {
    const batch = sources.length;
    const steps = Math.max(...Array.from(lengths));
    const tokens = new Array<number>(steps * batch).fill(0);
    sources.forEach((source, b) => {
      for (let t = 0; t < lengths[b]; t++) tokens[t * batch + b] = source[t];
    });
    const { encoder, memory } = this.source(batch, arrays);
    const before = this.reencodes ? lengths : new Array<number>(batch).fill(0);
    const into = memory.room(steps);
    const outputs = await this.encoder.run(
      { tokens: integers(tokens, [steps, batch]), lengths: integers(before), ...encoder?.feeds() },
      Object.keys(into),
      into,
    );
    memory.append(outputs);
    return memory;
  }

  /** Takes in one or more tokens of each row and proposes the next one, or asks for more of the source. */
  async write(target: Cache, memory: Cache, rows: StepRows): Promise<StepAnswers> {
    const { tokens, lengths, visible, ended = [], attention = false } = rows;
    const batch = tokens.length;
    const added = tokens[0].length;
    if (this.decides && added !== 1) throw new RangeError('expected one token of each row');
    const timeMajor = Array.from({ length: added * batch }, (_, i) => tokens[i % batch][Math.floor(i / batch)]);
    const into = target.room(added);
    const decoder = attention ? await this.attendingDecoder() : this.decoder;
    // What no row may see yet need not be looked at. Attention that decides itself looks ahead.
    const seen = this.decides ? memory.length : Math.min(memory.length, Math.max(...visible));
    const outputs = await decoder.run(
      {
        tokens: integers(timeMajor, [added, batch]),
        lengths: integers(lengths),
        visible: integers(visible),
        ...(this.decoder.inputs.includes('ended')
          ? { ended: integers(visible.map((_, row) => Number(ended[row] ?? false))) }
          : {}),
        ...target.feeds(),
        ...memory.feeds(seen),
      },
      [
        ...Object.keys(into),
        'candidates',
        'scores',
        ...(this.decides ? ['needed'] : []),
        ...(this.tellsReadiness ? ['readiness'] : []),
        ...(attention ? ['attention'] : []),
      ],
      into,
    );
    target.append(outputs);
    const { candidates, scores, needed, readiness } = outputs;
    return {
      width: candidates.shape[1],
      tokens: Int32Array.from(candidates.data as BigInt64Array, Number),
      scores: scores.data as Float32Array,
      ...(this.decides ? { wantsMore: visible.map((count, row) => Number(needed.data[row]) > count) } : {}),
      ...(this.tellsReadiness ? { readiness: Array.from(readiness.data, Number) } : {}),
      ...(attention ? { weights: outputs.attention } : {}),
    };
  }

  async close(): Promise<void> {
    await this.encoder.close();
    await this.decoder.close();
    await (await this.attending)?.close();
  }

  private async attendingDecoder(): Promise<StepProgram> {
    if (this.decoder.outputs.includes('attention')) return this.decoder;
    if (this.openAttending === undefined) throw new TypeError('this decoder does not tell its attention');
    this.attending ??= this.openAttending();
    return this.attending;
  }

  /** The programs' inputs say what is kept: all whose names begin with their owner's. */
  private cache(
    { inputs }: StepProgram,
    owner: 'encoder' | 'source' | 'decoder',
    batch: number,
    arrays?: Float32Array[],
  ): Cache {
    const names = inputs.filter((name) => name.startsWith(`${owner}.`));
    return arrays === undefined ? new Cache(names, this.width, batch) : Cache.within(names, this.width, batch, arrays);
  }
}

function integers(values: ArrayLike<number>, shape: readonly number[] = [values.length]): Value {
  const data = new BigInt64Array(values.length);
  for (let i = 0; i < values.length; i++) data[i] = BigInt(values[i]);
  return { data, shape };
}
