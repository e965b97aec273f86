import type { Value } from '../../tensor/index.js';
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

/** Properties of a model that its programs do not contain. */
export interface StepShape {
  readonly width: number;
  /** Longest sentence, including its end. */
  readonly maxPositions: number;
  /** Largest beam for which it proposes enough candidates. */
  readonly beam: number;
  readonly encoder: 'unidirectional' | 'bidirectional';
  /** What is written is re-decoded after every READ. */
  readonly redecodes: boolean;
  /** Of the decoder. */
  readonly decoderLayers: number;
  readonly heads: number;
}

/** What is known about the source of some sentences. */
export interface SourceCache {
  /** Tokens encoded so far, for the encoder itself; undefined if it re-encodes all with every token. */
  readonly encoder: Cache | undefined;
  /** Keys and values for the decoder. */
  readonly memory: Cache;
}

/** What a decoder processes: the same number of tokens for each row. */
export interface StepRows {
  readonly tokens: readonly (readonly number[])[];
  /** Tokens of each row processed before. */
  readonly lengths: readonly number[];
  /** Source tokens that each row may see. */
  readonly visible: readonly number[];
  /** Whether these are all. Only models that decide when to read need it. Default: false for each row. */
  readonly ended?: readonly boolean[];
  /** Whether to return the attention over the source. Default false. */
  readonly attention?: boolean;
}

/** Answers, with the attention of every head if requested: [B, layers · heads, S]. */
export interface StepAnswers extends Answers {
  readonly weights?: Value;
}

/** A trained model, ready to read and write token by token. It holds no sentences: those are in the caller's caches. */
export class StepModel {
  readonly maxPositions: number;
  readonly beam: number;
  readonly redecodes: boolean;
  /** A bidirectional encoder: each token that is read changes the encoding of all before it. */
  readonly reencodes: boolean;
  private readonly width: number;
  /** Its attention decides when to read, one token at a time. */
  readonly decides: boolean;
  /** It says how ready it is to write. */
  readonly tellsReadiness: boolean;
  /** The decoder that can return its attention; undefined if there is none. */
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

  /** Processes one or more tokens of each row and proposes the next one, or asks for more of the source. */
  async write(target: Cache, memory: Cache, rows: StepRows): Promise<StepAnswers> {
    const { tokens, lengths, visible, ended = [], attention = false } = rows;
    const batch = tokens.length;
    const added = tokens[0].length;
    if (this.decides && added !== 1) throw new RangeError('expected one token per row');
    const timeMajor = Array.from({ length: added * batch }, (_, i) => tokens[i % batch][Math.floor(i / batch)]);
    const into = target.room(added);
    const decoder = attention ? await this.attendingDecoder() : this.decoder;
    // Source tokens that no row may see yet are skipped, except for attention that decides when to read.
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
    if (this.openAttending === undefined) throw new TypeError('this decoder does not expose its attention');
    this.attending ??= this.openAttending();
    return this.attending;
  }

  /** The programs' inputs define what is kept: all whose names begin with their owner's. */
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

/** The output of a program that holds the new steps of a cache's tensor. */
export function newName(name: string): string {
  return `new.${name}`;
}

/**
 * Cached keys and values of attention: several named tensors [length, B, D], one
 * column for each sentence. Time-major, so a new step is appended in place and the rest is passed to the runtime
 * without a copy.
 */
export class Cache {
  private steps = 0;

  /** @param arrays where to keep the steps; replaced by larger ones if too small */
  constructor(
    readonly names: readonly string[],
    readonly width: number,
    readonly batch: number,
    private capacity = 0,
    private readonly arrays: Float32Array[] = names.map(() => new Float32Array(capacity * batch * width)),
  ) {}

  /** Steps that are kept. */
  get length(): number {
    return this.steps;
  }

  /** The arrays, for another cache once this one is no longer used. */
  get storage(): Float32Array[] {
    return this.arrays;
  }

  /** What is kept, or its first steps, as inputs of a program. The views are valid until the next `append`. */
  feeds(steps = this.steps): Record<string, Value> {
    const size = steps * this.batch * this.width;
    const shape = [steps, this.batch, this.width];
    return Object.fromEntries(this.names.map((name, i) => [name, { data: this.arrays[i].subarray(0, size), shape }]));
  }

  /** Where a program can write the next `added` steps before they are appended, to avoid copies. */
  room(added: number): Record<string, Float32Array> {
    const row = this.batch * this.width;
    this.reserve(this.steps + added);
    const [from, to] = [this.steps * row, (this.steps + added) * row];
    return Object.fromEntries(this.names.map((name, i) => [newName(name), this.arrays[i].subarray(from, to)]));
  }

  /** Takes new steps [n, B, D] from the outputs of a program: `new.<name>` for each tensor of the cache. */
  append(outputs: Readonly<Record<string, Value>>): void {
    const row = this.batch * this.width;
    const added = outputs[newName(this.names[0])].shape[0];
    this.reserve(this.steps + added);
    this.names.forEach((name, i) => {
      const { data } = outputs[newName(name)];
      if (data.buffer !== this.arrays[i].buffer) this.arrays[i].set(data as Float32Array, this.steps * row);
    });
    this.steps += added;
  }

  /** An empty cache in reused arrays. */
  static within(names: readonly string[], width: number, batch: number, arrays: Float32Array[]): Cache {
    return new Cache(names, width, batch, Math.floor((arrays[0]?.length ?? 0) / (batch * width)), arrays);
  }

  /**
   * A cache with the given columns of this one, in that order; a column may occur several times. With `arrays` to keep
   * them in, which must not be those of this cache.
   */
  select(columns: ArrayLike<number>, arrays?: Float32Array[]): Cache {
    const taken =
      arrays === undefined
        ? new Cache(this.names, this.width, columns.length, this.capacity)
        : Cache.within(this.names, this.width, columns.length, arrays);
    taken.reserve(this.steps + 1);
    taken.steps = this.steps;
    for (let step = 0; step < this.steps; step++) {
      for (let to = 0; to < columns.length; to++) this.copyStep(step, columns[to], taken, step, to);
    }
    return taken;
  }

  /**
   * A cache with the given columns of this one, in ascending order. The others are closed up in place, without a new array:
   * this object must no longer be used.
   */
  narrowed(columns: readonly number[]): Cache {
    const { width, batch, arrays, steps } = this;
    const runs = consecutive(columns);
    for (const array of arrays) {
      let to = 0;
      for (let step = 0; step < steps; step++) {
        for (const [first, count] of runs) {
          const from = (step * batch + first) * width;
          array.copyWithin(to, from, from + count * width);
          to += count * width;
        }
      }
    }
    const capacity = Math.floor(arrays[0].length / (columns.length * width));
    const narrow = new Cache(this.names, width, columns.length, capacity, arrays);
    narrow.steps = steps;
    return narrow;
  }

  /**
   * Joins caches of one sentence each. Aligned at the `end`, shorter ones have zeros before their first step, so
   * that the next step of every sentence is appended in the same place; aligned at the `start`, after their last. With
   * `arrays` to keep them in, their old content may appear instead of the zeros.
   */
  static join(caches: readonly Cache[], aligned: 'start' | 'end', arrays?: Float32Array[]): Cache {
    const [{ names, width }] = caches;
    const batch = caches.length;
    const length = Math.max(...caches.map((cache) => cache.length));
    const joined =
      arrays === undefined ? new Cache(names, width, batch, length + 1) : Cache.within(names, width, batch, arrays);
    joined.reserve(length + 1);
    joined.steps = length;
    caches.forEach((cache, column) => {
      const gap = aligned === 'end' ? length - cache.length : 0;
      for (let step = 0; step < cache.length; step++) cache.copyStep(step, 0, joined, step + gap, column);
    });
    return joined;
  }

  /** Forgets all but the first `length` steps. */
  truncate(length: number): void {
    this.steps = Math.min(this.steps, length);
  }

  /** Appends `count` steps of a column of another cache, from step `first` on, to this one of one sentence. */
  appendColumn(from: Cache, column: number, first: number, count: number): void {
    this.reserve(this.steps + count);
    for (let step = first; step < first + count; step++) from.copyStep(step, column, this, this.steps++, 0);
  }

  private copyStep(step: number, column: number, to: Cache, toStep: number, toColumn: number): void {
    const { width } = this;
    const from = (step * this.batch + column) * width;
    const target = (toStep * to.batch + toColumn) * width;
    for (let i = 0; i < this.arrays.length; i++) {
      to.arrays[i].set(this.arrays[i].subarray(from, from + width), target);
    }
  }

  /** Makes room for this many steps. */
  reserve(steps: number): void {
    if (steps <= this.capacity) return;
    this.capacity = Math.max(steps, 2 * this.capacity, 16);
    const size = this.capacity * this.batch * this.width;
    for (let i = 0; i < this.names.length; i++) {
      const larger = new Float32Array(size);
      // There may be room for part of a step after the last one.
      if (this.steps > 0) larger.set(this.arrays[i].subarray(0, this.steps * this.batch * this.width));
      this.arrays[i] = larger;
    }
  }
}

/** Ascending numbers as runs of neighbours: the first of each run, and how many there are. */
function consecutive(numbers: readonly number[]): [first: number, count: number][] {
  const runs: [number, number][] = [];
  for (const number of numbers) {
    const last = runs.at(-1);
    if (last !== undefined && last[0] + last[1] === number) last[1]++;
    else runs.push([number, 1]);
  }
  return runs;
}
