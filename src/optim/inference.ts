import type { Ranks } from '../ranks.js';
import {
  grad,
  inEightBits,
  input,
  lower,
  type Parameter,
  Parameters,
  type Program,
  programOf,
  type Run,
  Session,
  type Tensor,
  type TensorType,
  type Value,
} from '../tensor/index.js';
import type { Arena } from './arena.js';
import { batchAxis, gradientName, joinOutputs, samplesOf, shard, shardBounds } from './shards.js';

/** A model: a function that declares its parameters while it computes on symbolic inputs. */
export type Model<I extends InputTypes, O extends Outputs = Outputs> = (
  parameters: Parameters,
  inputs: { [K in keyof I]: Tensor },
) => O;

/** Types of a model's inputs, by name. */
export type InputTypes = Readonly<Record<string, TensorType>>;
/** A model's outputs, by name. */
export type Outputs = Readonly<Record<string, Tensor>>;
/** Values of the inputs, by name. */
export type Feeds = Readonly<Record<string, Value>>;

/** Traces a model. The program's inputs are the model's, followed by its parameters. */
export function traceModel<I extends InputTypes>(
  model: Model<I>,
  inputTypes: I,
  extend: (outputs: Outputs, parameters: readonly Parameter[]) => Outputs = (outputs) => outputs,
  dtype: 'f32' | 'f64' = 'f32',
): { program: Program; parameters: readonly Parameter[] } {
  const declared = Parameters.root(dtype);
  const inputs = new Map(Object.entries(inputTypes).map(([name, type]) => [name, input(name, type)]));
  const outputs = model(declared, Object.fromEntries(inputs) as { [K in keyof I]: Tensor });
  const parameters = declared.list();
  const all = new Map(inputs);
  for (const { name, tensor } of parameters) {
    if (all.has(name)) throw new RangeError(`'${name}' names both an input and a parameter of the model`);
    all.set(name, tensor);
  }
  return { program: programOf(all, new Map(Object.entries(extend(outputs, parameters)))), parameters };
}

/** The parameters of an arena as inputs of a program; no copies are made. */
export function parameterFeeds(arena: Arena, names: readonly string[] = arena.names): Record<string, Value> {
  return Object.fromEntries(names.map((name) => [name, { data: arena.value(name), shape: arena.shape(name) }]));
}

/** Which model to run, with whose parameters. */
export interface InferenceConfig<I extends InputTypes> {
  readonly model: Model<I>;
  readonly inputs: I;
  /** Whose parameters to use; it must have all that the model declares. */
  readonly arena: Arena;
  /** Default 1. */
  readonly threads?: number;
  /** Multiply with parameters in 8 bits: faster, right to about 1 % (`inEightBits`). Default false. */
  readonly eightBit?: boolean;
  /** Processes that share every run: each computes some of the samples. Default: this one alone. */
  readonly ranks?: Ranks;
  /** Name of the dimension that counts samples. Default 'B'. */
  readonly batch?: string;
}

/** Runs a model forward with the current parameters of an arena. */
export class Inference {
  private constructor(
    private readonly session: Session,
    private readonly parameters: Readonly<Record<string, Value>>,
    private readonly division: Division | undefined,
  ) {}

  /** Traces the model and starts a session for it. */
  static async create<I extends InputTypes>(config: InferenceConfig<I>): Promise<Inference> {
    const { model, inputs, arena, threads, eightBit = false, ranks, batch = 'B' } = config;
    const { program, parameters } = traceModel(model, inputs, undefined, arena.dtype);
    const feeds = parameterFeeds(
      arena,
      parameters.map(({ name }) => name),
    );
    const division = ranks === undefined ? undefined : { ranks, inputs, batch };
    const executable = lower(eightBit ? inEightBits(program) : program);
    return new Inference(await Session.create(executable, { threads }), feeds, division);
  }

  /** Computes the outputs with the current parameters. */
  run(feeds: Feeds, options?: Run): Promise<Record<string, Value>> {
    const { division } = this;
    if (division === undefined) return this.runHere(feeds, options);
    const samples = samplesOf(feeds, division.inputs, division.batch) ?? 0;
    // A few samples are computed by all: sooner done than sent, and in the same way as by a single process.
    return samples < WORTH_SENDING * division.ranks.size
      ? this.runHere(feeds, options)
      : this.runTogether(feeds, samples, division, options);
  }

  /** Releases native memory and threads. */
  close(): Promise<void> {
    return this.session.close();
  }

  private runHere(feeds: Feeds, options?: Run): Promise<Record<string, Value>> {
    return this.session.run({ ...feeds, ...this.parameters }, options);
  }

  private async runTogether(
    feeds: Feeds,
    samples: number,
    { ranks, inputs, batch }: Division,
    options: Run = {},
  ): Promise<Record<string, Value>> {
    const types = this.session.executable.outputs;
    const outputs = options.outputs ?? Object.keys(types);
    const whole = outputs.find((name) => batchAxis(types[name], batch) === undefined);
    if (whole !== undefined || options.into !== undefined) {
      throw new RangeError(`what ranks compute together is made of samples and returned, unlike ${whole ?? 'into'}`);
    }
    const range = shardBounds(samples, ranks.size)[ranks.rank];
    const parts = ranks.share(await this.runHere(shard(feeds, inputs, batch, range), options));
    return Object.fromEntries(
      outputs.map((name) => {
        const values = parts.map((part) => part[name]);
        return [name, joinOutputs(values, types[name], batch)];
      }),
    );
  }
}

interface Division {
  readonly ranks: Ranks;
  readonly inputs: InputTypes;
  readonly batch: string;
}

/** Samples for each rank. */
const WORTH_SENDING = 16;

/** Whose gradients to compute, and where they go. */
export interface GradientsConfig<I extends InputTypes> {
  /** Its output `loss` is differentiated. In evaluation mode: it must not contain dropout. */
  readonly model: Model<I>;
  readonly inputs: I;
  /** At whose parameters; it must have all that the model declares. */
  readonly arena: Arena;
  /** Default 1. */
  readonly threads?: number;
}

/**
 * Gradients of a model at the current parameters of an arena, apart from its training: nothing in the arena is
 * written, and no random number is drawn.
 */
export class Gradients {
  private constructor(
    private readonly arena: Arena,
    private readonly session: Session,
    private readonly names: readonly string[],
  ) {}

  /** Traces the model with its gradients and starts a session for it. */
  static async create<I extends InputTypes>(config: GradientsConfig<I>): Promise<Gradients> {
    const { model, inputs, arena, threads } = config;
    const { program, parameters } = traceModel(model, inputs, withGradients, arena.dtype);
    const executable = lower(program);
    if (executable.masks.length > 0) throw new RangeError('gradients in evaluation mode need a model without dropout');
    const session = await Session.create(executable, { threads });
    return new Gradients(
      arena,
      session,
      parameters.map(({ name }) => name),
    );
  }

  /** Writes ∇ loss into an array laid out like the arena's values: 0 where the model has no parameter. Returns the loss. */
  async write(feeds: Feeds, out: Float32Array): Promise<number> {
    const { arena, names } = this;
    out.fill(0);
    const into = Object.fromEntries(names.map((name) => [gradientName(name), arena.view(out, name)]));
    const outputs = ['loss', ...Object.keys(into)];
    const { loss } = await this.session.run({ ...feeds, ...parameterFeeds(arena, names) }, { outputs, into });
    return loss.data[0] as number;
  }

  /** Releases native memory and threads. */
  close(): Promise<void> {
    return this.session.close();
  }
}

/** A model's outputs with the gradients of its `loss` beside them. */
export function withGradients(outputs: Outputs, parameters: readonly Parameter[]): Outputs {
  const loss = outputs.loss;
  if (loss === undefined) throw new RangeError("a model to train needs an output named 'loss'");
  const gradients = grad(
    loss,
    parameters.map(({ tensor }) => tensor),
  );
  return { ...outputs, ...Object.fromEntries(parameters.map(({ name }, i) => [gradientName(name), gradients[i]])) };
}
