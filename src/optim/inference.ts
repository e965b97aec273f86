import type { Ranks } from '../ranks.js';
import { TaskThread } from '../task-thread.js';
import {
  type DeviceName,
  type Executable,
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
import type { Arena, ParameterSpec } from './arena.js';
import { Residence, residenceOf, resident } from './residence.js';
import { batchAxis, floatsOver, gradientName, joinOutputs, samplesOf, shard, shardBounds } from './shards.js';

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
  /** Provides the parameters; it must have all that the model declares. */
  readonly arena: Arena;
  /** Threads inside one operation, of a single run. Default 1. */
  readonly threads?: number;
  /** Cores that `runMany` keeps busy, each with its own runs, and `runAround` two of them. Not with ranks. Default 1. */
  readonly workers?: number;
  /** Multiply with 8-bit parameters: faster, accurate to about 1 % (`inEightBits`). Default false. */
  readonly eightBit?: boolean;
  /** Processes that share every run: each computes some of the samples. Default: this one alone. */
  readonly ranks?: Ranks;
  /** Name of the dimension that counts samples. Default 'B'. */
  readonly batch?: string;
  /** Device. Default: the one that the arena's parameters are trained on, otherwise the CPU. */
  readonly device?: DeviceName;
}

/** Runs a model forward with the current parameters of an arena. */
export class Inference {
  /** Whether `runMany` has had too few runs to use threads. */
  private hasRunFew = false;
  /** Space for parameters other than those of the arena. */
  private elsewhere: ReturnType<typeof parametersElsewhere> | undefined;

  private constructor(
    private readonly session: Session,
    private readonly arena: Arena,
    private readonly parameters: Readonly<Record<string, Value>>,
    private readonly division: Division | undefined,
    private readonly helpers: Helpers | undefined,
  ) {}

  /** Traces the model and starts a session for it. */
  static async create<I extends InputTypes>(config: InferenceConfig<I>): Promise<Inference> {
    const { model, inputs, arena, workers = 1, eightBit = false, ranks, batch = 'B' } = config;
    const { program, parameters } = traceModel(model, inputs, undefined, arena.dtype);
    const { device = residenceOf(arena)?.device ?? 'cpu' } = config;
    if (device !== 'cpu') {
      const { buckets } = Residence.of(arena, device);
      const session = await Session.create(lower(resident(program, arena, buckets), { device }));
      return new Inference(session, arena, {}, undefined, undefined);
    }
    const names = parameters.map(({ name }) => name);
    const feeds = parameterFeeds(arena, names);
    const division = ranks === undefined ? undefined : { ranks, inputs, batch };
    const executable = lower(eightBit ? inEightBits(program) : program);
    const helpers = workers > 1 && ranks === undefined ? new Helpers(executable, arena, names, workers - 1) : undefined;
    // Helpers must compute exactly what is computed here.
    const threads = helpers === undefined ? config.threads : 1;
    return new Inference(await Session.create(executable, { threads }), arena, feeds, division, helpers);
  }

  /** Computes the outputs with the current parameters. */
  async run(feeds: Feeds, options?: Run): Promise<Record<string, Value>> {
    const { device } = this.session.executable;
    if (device === 'cpu') return this.runWith({ ...feeds, ...this.parameters }, options);
    return this.session.run({ ...feeds, ...(await Residence.of(this.arena, device).values()) }, options);
  }

  /**
   * Many runs with the same parameters, each as in `run`, on all cores. Inputs are requested when it is their
   * turn, each in its own arrays, which are transferred; outputs come in order of completion.
   */
  async runMany(
    count: number,
    feedsOf: (index: number) => Feeds,
    take: (outputs: Record<string, Value>, index: number) => void,
  ): Promise<void> {
    const { helpers } = this;
    if (helpers === undefined || count === 1 || (count < FEW_RUNS && !helpers.areReady)) {
      // A few runs finish before threads have started; repeated calls are worth them.
      if (helpers !== undefined && count > 1 && this.hasRunFew) helpers.start();
      this.hasRunFew = true;
      for (let i = 0; i < count; i++) take(await this.run(feedsOf(i)), i);
      return;
    }
    helpers.begin();
    let here: Promise<void> | undefined;
    const running = new Set<Promise<void>>();
    const failures: unknown[] = [];
    const start = (job: Promise<void>): Promise<void> => {
      const watched = job.catch((error: unknown) => void failures.push(error)).finally(() => running.delete(watched));
      running.add(watched);
      return watched;
    };
    for (let i = 0; i < count && failures.length === 0; i++) {
      const received = (outputs: Record<string, Value>): void => take(outputs, i);
      const helper = helpers.free();
      if (helper === undefined) here = start(this.run(feedsOf(i)).then(received));
      else start(helpers.send(helper, feedsOf(i)).then(received));
      // One run at a time here, and each helper has its next one queued.
      while (here !== undefined && running.has(here) && helpers.free() === undefined) await Promise.race(running);
    }
    await Promise.all(running);
    if (failures.length > 0) throw failures[0];
  }

  /**
   * The outputs with the trained parameters θ + shift and θ − shift, in parallel if there is another core. The arena stays
   * as it is.
   */
  async runAround(
    feeds: Feeds,
    shift: Float32Array,
  ): Promise<[ahead: Record<string, Value>, behind: Record<string, Value>]> {
    const { helpers, arena } = this;
    if (this.session.executable.device !== 'cpu') {
      const run = () => this.run(feeds);
      return [await arena.shifted(shift, 1, run), await arena.shifted(shift, -1, run)];
    }
    this.elsewhere ??= parametersElsewhere(arena, Object.keys(this.parameters));
    const { values, parameters } = this.elsewhere;
    const runHere = (factor: number): Promise<Record<string, Value>> => {
      arena.writeShifted(shift, factor, values);
      return this.runWith({ ...feeds, ...parameters });
    };
    // Callers will call again; nobody waits for the threads to start.
    helpers?.start();
    const helper = helpers?.areReady ? helpers.free() : undefined;
    if (helpers === undefined || helper === undefined) return [await runHere(1), await runHere(-1)];
    helpers.begin((shared) => arena.writeShifted(shift, -1, shared));
    const behind = helpers.send(helper, feeds, 'copied');
    return Promise.all([runHere(1), behind]);
  }

  /** Releases native memory and threads. */
  async close(): Promise<void> {
    await this.helpers?.stop();
    await this.session.close();
  }

  /** @param given inputs and parameters */
  private runWith(given: Feeds, options?: Run): Promise<Record<string, Value>> {
    const { division } = this;
    if (division === undefined) return this.session.run(given, options);
    const samples = samplesOf(given, division.inputs, division.batch) ?? 0;
    // A few samples are computed by all ranks: faster than sending them, and the same as in a single process.
    return samples < WORTH_SENDING * division.ranks.size
      ? this.session.run(given, options)
      : this.runTogether(given, samples, division, options);
  }

  private async runTogether(
    given: Feeds,
    samples: number,
    { ranks, inputs, batch }: Division,
    options: Run = {},
  ): Promise<Record<string, Value>> {
    const types = this.session.executable.outputs;
    const outputs = options.outputs ?? Object.keys(types);
    const whole = outputs.find((name) => batchAxis(types[name], batch) === undefined);
    if (whole !== undefined || options.into !== undefined) {
      throw new RangeError(`ranks can compute only outputs over samples together, not ${whole ?? 'into'}`);
    }
    const range = shardBounds(samples, ranks.size)[ranks.rank];
    const own = { ...given, ...shard(given, inputs, batch, range) };
    const parts = ranks.share(await this.session.run(own, options));
    return Object.fromEntries(
      outputs.map((name) => {
        const values = parts.map((part) => part[name]);
        return [name, joinOutputs(values, types[name], batch)];
      }),
    );
  }
}

/** Parameters of a program in their own array, laid out as the arena's values. */
function parametersElsewhere(arena: Arena, names: readonly string[]) {
  const values = arena.values.slice();
  const parameters = names.map((name) => [name, { data: arena.view(values, name), shape: arena.shape(name) }] as const);
  return { values, parameters: Object.fromEntries(parameters) as Record<string, Value> };
}

/** Runs for which starting threads is worthwhile. */
const FEW_RUNS = 4;

/** Everything a helper needs; sent to it once. */
export interface ForwardSetup {
  readonly executable: Executable;
  readonly parameters: readonly ParameterSpec[];
  /** Those of the program. */
  readonly names: readonly string[];
  readonly dtype: 'f32' | 'f64';
  readonly sharedValues: SharedArrayBuffer;
}

export interface ForwardTask {
  readonly feeds: Feeds;
  /** Differs from the previous one: the shared parameters have changed. */
  readonly version: number;
}

type Helper = TaskThread<ForwardTask, Record<string, Value>>;

/** Threads that run a program forward alongside this one, with the parameters of the same arena. */
class Helpers {
  /** Of the parameters in the shared memory. */
  private version = 0;
  private readonly ready: Helper[] = [];
  private starting: Promise<void>[] | undefined;
  private readonly failures: unknown[] = [];
  private readonly sharedValues: SharedArrayBuffer;

  constructor(
    private readonly executable: Executable,
    private readonly arena: Arena,
    private readonly names: readonly string[],
    private readonly count: number,
  ) {
    this.sharedValues = new SharedArrayBuffer(arena.values.byteLength);
  }

  /** Shares the current parameters, or others. The first call starts the threads, which help as soon as they can. */
  begin(write = (shared: Float32Array | Float64Array) => shared.set(this.arena.values as never)): void {
    write(floatsOver(this.sharedValues, this.arena.dtype));
    this.version++;
    this.start();
  }

  /** Starts the threads, if not running. */
  start(): void {
    if (this.starting !== undefined) return;
    const { arena, executable, names, sharedValues } = this;
    const parameters = arena.names.map((name) => ({ name, shape: arena.shape(name) }));
    const setup: ForwardSetup = { executable, parameters, names, dtype: arena.dtype, sharedValues };
    this.starting = Array.from({ length: this.count }, async () => {
      this.ready.push(await TaskThread.start('optim/worker.js', setup, 'forward worker'));
    });
    for (const start of this.starting) start.catch((error: unknown) => void this.failures.push(error));
  }

  /** Whether all threads have started. */
  get areReady(): boolean {
    return this.ready.length === this.count;
  }

  /** A helper with room for another run. */
  free(): Helper | undefined {
    if (this.failures.length > 0) throw this.failures[0];
    return this.ready.find(({ pending }) => pending < DEPTH);
  }

  /** Inputs are transferred, or copied if they are needed again. */
  send(helper: Helper, feeds: Feeds, how: 'given' | 'copied' = 'given'): Promise<Record<string, Value>> {
    const buffers = new Set(Object.values(feeds).map(({ data }) => data.buffer as ArrayBuffer));
    return helper.run({ feeds, version: this.version }, how === 'given' ? [...buffers] : []);
  }

  async stop(): Promise<void> {
    await Promise.allSettled(this.starting ?? []);
    await Promise.all(this.ready.map((helper) => helper.stop()));
  }
}

/** Runs sent to a helper at a time: while it works on one, the next is queued. */
const DEPTH = 2;

interface Division {
  readonly ranks: Ranks;
  readonly inputs: InputTypes;
  readonly batch: string;
}

/** Samples for each rank. */
const WORTH_SENDING = 16;

/** Which gradients to compute, and where to write them. */
export interface GradientsConfig<I extends InputTypes> {
  /** Its output `loss` is differentiated. In evaluation mode: it must not contain dropout. */
  readonly model: Model<I>;
  readonly inputs: I;
  /** Provides the parameters; it must have all that the model declares. */
  readonly arena: Arena;
  /** Default 1. */
  readonly threads?: number;
}

/**
 * Gradients of a model at the current parameters of an arena, separate from its training: nothing in the arena is
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
    const names = parameters.map(({ name }) => name);
    return new Gradients(arena, await Session.create(executable, { threads }), names);
  }

  /** Writes ∇ loss into an array laid out like the arena's values: 0 where the model has no parameter. Returns the loss. */
  async write(feeds: Feeds, out: Float32Array): Promise<number> {
    const { arena, names } = this;
    // It computes on the CPU, wherever the training runs.
    await residenceOf(arena)?.toHost();
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

/** A model's outputs with the gradients of its `loss`. */
export function withGradients(outputs: Outputs, parameters: readonly Parameter[]): Outputs {
  const loss = outputs.loss;
  if (loss === undefined) throw new RangeError("a model to train needs an output named 'loss'");
  const gradients = grad(
    loss,
    parameters.map(({ tensor }) => tensor),
  );
  return { ...outputs, ...Object.fromEntries(parameters.map(({ name }, i) => [gradientName(name), gradients[i]])) };
}
