import { type InferenceSession, Tensor } from 'onnxruntime-web/wasm';
import { Cache, newName } from 'tcts/translate/decode/cache.js';
import type { Answers, StepRows, StepwiseModel } from 'tcts/translate/decode/token-model.js';

/** What is used of the `settings.json` that `tcts export` writes. */
export interface ExportSettings {
  readonly main: number;
  readonly waits: number | 'full';
  readonly model: { readonly encoder: string; readonly width: number; readonly maxPositions: number };
  readonly encoderStep: ExportedStep;
  readonly decoderStep: ExportedStep;
}

interface ExportedStep {
  readonly file: string;
  readonly inputs: Readonly<Record<string, string>>;
}

type Source = Parameters<StepwiseModel['read']>[0];

/** The two exported models as one that reads and writes token by token (docs/translation.md, Export). */
export class ExportedSteps implements StepwiseModel {
  readonly beam = 1;

  constructor(
    private readonly settings: ExportSettings,
    private readonly encoder: InferenceSession,
    private readonly decoder: InferenceSession,
  ) {}

  get maxPositions(): number {
    return this.settings.model.maxPositions;
  }

  get reencodes(): boolean {
    return this.settings.model.encoder === 'bidirectional';
  }

  get redecodes(): boolean {
    return this.settings.waits === 'full';
  }

  source(batch: number): Source {
    return {
      encoder: this.reencodes ? undefined : this.cache(this.settings.encoderStep, 'encoder', batch),
      memory: this.cache(this.settings.decoderStep, 'source', batch),
    };
  }

  target(batch: number): Cache {
    return this.cache(this.settings.decoderStep, 'decoder', batch);
  }

  async read({ encoder, memory }: Source, tokens: ArrayLike<number>, lengths: ArrayLike<number>): Promise<void> {
    if (encoder === undefined) throw new TypeError('this encoder cannot read on, it begins anew (encode)');
    const outputs = await run(
      this.encoder,
      { tokens: integers(tokens, [1, tokens.length]), lengths: integers(lengths), ...feeds(encoder) },
      [...encoder.names, ...memory.names].map(newName),
    );
    encoder.append(outputs);
    memory.append(outputs);
  }

  async encode(sources: readonly ArrayLike<number>[], lengths: ArrayLike<number>): Promise<Cache> {
    const batch = sources.length;
    const steps = Math.max(...Array.from(lengths));
    const tokens = Array.from({ length: steps * batch }, (_, i) => {
      const [t, b] = [Math.floor(i / batch), i % batch];
      return t < lengths[b] ? sources[b][t] : 0;
    });
    const { encoder, memory } = this.source(batch);
    const before = this.reencodes ? lengths : new Array<number>(batch).fill(0);
    const inputs = { tokens: integers(tokens, [steps, batch]), lengths: integers(before) };
    const outputs = await run(this.encoder, { ...inputs, ...(encoder && feeds(encoder)) }, memory.names.map(newName));
    memory.append(outputs);
    return memory;
  }

  async write(target: Cache, memory: Cache, { tokens, lengths, visible }: StepRows): Promise<Answers> {
    const [batch, added] = [tokens.length, tokens[0].length];
    const timeMajor = Array.from({ length: added * batch }, (_, i) => tokens[i % batch][Math.floor(i / batch)]);
    const outputs = await run(
      this.decoder,
      {
        tokens: integers(timeMajor, [added, batch]),
        lengths: integers(lengths),
        visible: integers(visible),
        ...feeds(target),
        ...feeds(memory),
      },
      [...target.names.map(newName), 'candidates', 'scores'],
    );
    target.append(outputs);
    const { candidates, scores } = outputs;
    return {
      width: candidates.shape[1],
      tokens: Int32Array.from(candidates.data as BigInt64Array, Number),
      scores: scores.data as Float32Array,
    };
  }

  async close(): Promise<void> {
    await this.encoder.release();
    await this.decoder.release();
  }

  private cache({ inputs }: ExportedStep, owner: string, batch: number): Cache {
    const names = Object.keys(inputs).filter((name) => name.startsWith(`${owner}.`));
    return new Cache(names, this.settings.model.width, batch);
  }
}

interface Output {
  readonly data: Float32Array<ArrayBuffer> | BigInt64Array<ArrayBuffer>;
  readonly shape: readonly number[];
}

async function run(
  session: InferenceSession,
  inputs: Readonly<Record<string, Tensor>>,
  names: readonly string[],
): Promise<Record<string, Output>> {
  const outputs = await session.run(inputs, names);
  return Object.fromEntries(
    names.map((name) => [name, { data: outputs[name].data as Output['data'], shape: outputs[name].dims }]),
  );
}

function feeds(cache: Cache): Record<string, Tensor> {
  return Object.fromEntries(
    Object.entries(cache.feeds()).map(([name, { data, shape }]) => [
      name,
      new Tensor('float32', data as Float32Array, [...shape]),
    ]),
  );
}

function integers(values: ArrayLike<number>, shape: readonly number[] = [values.length]): Tensor {
  return new Tensor('int64', BigInt64Array.from(Array.from(values), BigInt), [...shape]);
}
