import { type Arena, traceModel } from '../../optim/index.js';
import { type Executable, lower, Session, type Value } from '../../tensor/index.js';
import { Cache } from '../decode/cache.js';
import { frozen } from '../decode/frozen.js';
import { candidatesFor, searchDefaults } from '../decode/search.js';
import type { Source } from '../decode/step-model.js';
import type { Step } from '../decode/steps.js';
import type { Answers, StepRows, StepwiseModel } from '../decode/token-model.js';
import { evaluationMode } from '../model/config.js';
import type { MonotonicModel } from './config.js';
import { monotonicCaches, monotonicDecoderStep, monotonicEncoderStep } from './steps.js';

export interface MonotonicStepOptions {
  /** Largest beam that will be searched with. Default 5. */
  readonly beam?: number;
  /** Threads inside one operation. Default 1. */
  readonly threads?: number;
}

/**
 * A trained model with monotonic attention, ready to read and write token by token. It holds no sentence: those are the
 * caller's caches, and where the heads stand is part of the target's.
 */
export class MonotonicStepModel implements StepwiseModel {
  readonly reencodes = false;
  readonly redecodes = false;

  private constructor(
    readonly model: MonotonicModel,
    readonly beam: number,
    private readonly encoder: Session,
    private readonly decoder: Session,
  ) {}

  static async create(
    model: MonotonicModel,
    arena: Arena,
    { beam = searchDefaults.beam, threads = 1 }: MonotonicStepOptions = {},
  ): Promise<MonotonicStepModel> {
    const still = { ...model, ...evaluationMode(model) };
    const compile = ({ model: fn, inputs }: Step): Executable =>
      lower(frozen(traceModel(fn, inputs, undefined, arena.dtype).program, arena));
    return new MonotonicStepModel(
      model,
      beam,
      await Session.create(compile(monotonicEncoderStep(still)), { threads }),
      await Session.create(compile(monotonicDecoderStep(still, candidatesFor(beam))), { threads }),
    );
  }

  get maxPositions(): number {
    return this.model.maxPositions;
  }

  source(batch: number): Source {
    return { encoder: this.cache('encoder', batch), memory: this.cache('source', batch) };
  }

  target(batch: number): Cache {
    return this.cache('decoder', batch);
  }

  /** Encodes one more token of each sentence; `lengths` are those read before. */
  async read({ encoder, memory }: Source, tokens: ArrayLike<number>, lengths: ArrayLike<number>): Promise<void> {
    const into = { ...encoder!.room(1), ...memory.room(1) };
    const outputs = await this.encoder.run(
      { tokens: integers(tokens, [1, tokens.length]), lengths: integers(lengths), ...encoder!.feeds() },
      { into },
    );
    encoder!.append(outputs);
    memory.append(outputs);
  }

  /** Encodes sentences from their beginning, each the first `lengths[b]` tokens of `sources[b]`. */
  async encode(sources: readonly ArrayLike<number>[], lengths: ArrayLike<number>): Promise<Cache> {
    const batch = sources.length;
    const steps = Math.max(...Array.from(lengths));
    const tokens = new Int32Array(steps * batch);
    sources.forEach((source, b) => {
      for (let t = 0; t < lengths[b]; t++) tokens[t * batch + b] = source[t];
    });
    const { encoder, memory } = this.source(batch);
    const into = memory.room(steps);
    const outputs = await this.encoder.run(
      {
        tokens: { data: tokens, shape: [steps, batch] },
        lengths: integers(new Int32Array(batch)),
        ...encoder!.feeds(),
      },
      { outputs: Object.keys(into), into },
    );
    memory.append(outputs);
    return memory;
  }

  /**
   * Takes in one token of each row and proposes the next one, or asks for more of the source. `lengths` are the tokens
   * taken in before, `visible` the source tokens to be seen.
   */
  async write(target: Cache, memory: Cache, { tokens, lengths, visible, ended }: StepRows): Promise<Answers> {
    if (tokens.some(({ length }) => length !== 1)) throw new RangeError('expected one token of each row');
    const into = target.room(1);
    const outputs = await this.decoder.run(
      {
        tokens: integers(tokens.flat(), [1, tokens.length]),
        lengths: integers(lengths),
        visible: integers(visible),
        ended: integers(ended.map(Number)),
        ...target.feeds(),
        ...memory.feeds(),
      },
      { into },
    );
    target.append(outputs);
    const needed = outputs.needed.data as Float32Array;
    return {
      width: outputs.candidates.shape[1],
      tokens: Int32Array.from(outputs.candidates.data as BigInt64Array, Number),
      scores: outputs.scores.data as Float32Array,
      wantsMore: visible.map((count, row) => needed[row] > count),
    };
  }

  async close(): Promise<void> {
    await this.encoder.close();
    await this.decoder.close();
  }

  private cache(owner: keyof ReturnType<typeof monotonicCaches>, batch: number): Cache {
    return new Cache(monotonicCaches(this.model)[owner], this.model.width, batch);
  }
}

function integers(values: ArrayLike<number>, shape: readonly number[] = [values.length]): Value {
  return { data: Int32Array.from(values), shape };
}
