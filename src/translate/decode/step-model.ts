import { type Arena, traceModel } from '../../optim/index.js';
import { type Executable, lower, Session, type Value } from '../../tensor/index.js';
import { evaluationMode, type TranslationModel } from '../model/index.js';
import { Cache } from './cache.js';
import { frozen } from './frozen.js';
import { type Candidates, candidatesFor, searchDefaults } from './search.js';
import { cacheNames, decoderStep, encoderStep, type Step } from './steps.js';

export interface StepModelOptions {
  /** Largest beam that will be searched with. Default 5. */
  readonly beam?: number;
  /**
   * Decode what is written anew whenever something was read. Right for a model that was trained on whole sentences: all
   * states of its decoder saw the same source. Default false.
   */
  readonly redecodes?: boolean;
  /** Threads inside one operation. Default 1. */
  readonly threads?: number;
}

/** What is known of the source of some sentences. */
export interface Source {
  /** Tokens encoded so far, for the encoder itself; undefined where it begins anew with every token. */
  readonly encoder: Cache | undefined;
  /** Keys and values for the decoder. */
  readonly memory: Cache;
}

/** A trained model, ready to read and write token by token. It holds no sentence: those are the caller's caches. */
export class StepModel {
  private constructor(
    readonly model: TranslationModel,
    /** Largest beam that it proposes enough candidates for. */
    readonly beam: number,
    /** What is written is decoded anew whenever something was read. */
    readonly redecodes: boolean,
    private readonly encoder: Session,
    private readonly decoder: Session,
  ) {}

  static async create(model: TranslationModel, arena: Arena, options: StepModelOptions = {}): Promise<StepModel> {
    const { beam = searchDefaults.beam, redecodes = false, threads = 1 } = options;
    const { encoder, decoder } = stepPrograms(model, arena, beam);
    return new StepModel(
      model,
      beam,
      redecodes,
      await Session.create(encoder, { threads }),
      await Session.create(decoder, { threads }),
    );
  }

  /** A bidirectional encoder: each token that is read changes the encoding of all before it. */
  get reencodes(): boolean {
    return this.model.encoder === 'bidirectional';
  }

  /** Longest sentence, its end counted. */
  get maxPositions(): number {
    return this.model.maxPositions;
  }

  /** Nothing read yet, for `batch` sentences. */
  source(batch: number): Source {
    const { width, encoderLayers, decoderLayers } = this.model;
    return {
      encoder: this.reencodes ? undefined : new Cache(cacheNames('encoder', encoderLayers), width, batch),
      memory: new Cache(cacheNames('source', decoderLayers), width, batch),
    };
  }

  /** Nothing written yet, for `batch` sentences. */
  target(batch: number): Cache {
    const { width, decoderLayers } = this.model;
    return new Cache(cacheNames('decoder', decoderLayers), width, batch);
  }

  /** Encodes one more token of each sentence; `lengths` are those read before. For unidirectional encoders. */
  async read({ encoder, memory }: Source, tokens: ArrayLike<number>, lengths: ArrayLike<number>): Promise<void> {
    if (encoder === undefined) throw new TypeError('this encoder cannot read on, it begins anew (encode)');
    const into = { ...encoder.room(1), ...memory.room(1) };
    const outputs = await this.encoder.run(
      { tokens: integers(tokens, [1, tokens.length]), lengths: integers(lengths), ...encoder.feeds() },
      { into },
    );
    encoder.append(outputs);
    memory.append(outputs);
  }

  /** Encodes sentences from their beginning, each the first `lengths[b]` tokens of `sources[b]`. */
  async encode(sources: readonly ArrayLike<number>[], lengths: ArrayLike<number>): Promise<Cache> {
    const batch = sources.length;
    const steps = Math.max(...Array.from(lengths));
    const tokens = new Array<number>(steps * batch).fill(0);
    sources.forEach((source, b) => {
      for (let t = 0; t < lengths[b]; t++) tokens[t * batch + b] = source[t];
    });
    const { encoder, memory } = this.source(batch);
    const before = this.reencodes ? lengths : new Array<number>(batch).fill(0);
    const into = memory.room(steps);
    const outputs = await this.encoder.run(
      { tokens: integers(tokens, [steps, batch]), lengths: integers(before), ...encoder?.feeds() },
      { outputs: Object.keys(into), into },
    );
    memory.append(outputs);
    return memory;
  }

  /**
   * Takes in one or more tokens of each row, as many of all, and proposes the next one. `lengths` are the tokens taken
   * in before, `visible` the source tokens to be seen.
   */
  async write(
    target: Cache,
    memory: Cache,
    rows: { tokens: readonly (readonly number[])[]; lengths: readonly number[]; visible: readonly number[] },
  ): Promise<Candidates> {
    const batch = rows.tokens.length;
    const added = rows.tokens[0].length;
    const timeMajor = Array.from({ length: added * batch }, (_, i) => rows.tokens[i % batch][Math.floor(i / batch)]);
    const into = target.room(added);
    const outputs = await this.decoder.run(
      {
        tokens: integers(timeMajor, [added, batch]),
        lengths: integers(rows.lengths),
        visible: integers(rows.visible),
        ...target.feeds(),
        ...memory.feeds(),
      },
      { outputs: [...Object.keys(into), 'candidates', 'scores'], into },
    );
    target.append(outputs);
    return {
      width: outputs.candidates.shape[1],
      tokens: Int32Array.from(outputs.candidates.data as BigInt64Array, Number),
      scores: outputs.scores.data as Float32Array,
    };
  }

  async close(): Promise<void> {
    await this.encoder.close();
    await this.decoder.close();
  }
}

/** Both programs with the parameters inside them, in evaluation mode. */
export function stepPrograms(
  model: TranslationModel,
  arena: Arena,
  beam = searchDefaults.beam,
): { readonly encoder: Executable; readonly decoder: Executable } {
  const compile = ({ model: fn, inputs }: Step): Executable =>
    lower(frozen(traceModel(fn, inputs, undefined, arena.dtype).program, arena));
  const still = evaluationMode(model);
  return { encoder: compile(encoderStep(still)), decoder: compile(decoderStep(still, candidatesFor(beam))) };
}

function integers(values: ArrayLike<number>, shape: readonly number[] = [values.length]): Value {
  const data = new BigInt64Array(values.length);
  for (let i = 0; i < values.length; i++) data[i] = BigInt(values[i]);
  return { data, shape };
}
