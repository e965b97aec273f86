import type { MaskKey } from '../kernels.js';
import { Random, type RandomState } from '../random.js';
import type { Ranks } from '../ranks.js';
import { type Executable, firstNonFinite, lower, NO_DROPOUT, type Program, type Value } from '../tensor/index.js';
import { Arena } from './arena.js';
import { type Feeds, type InputTypes, type Model, parameterFeeds, traceModel, withGradients } from './inference.js';
import {
  clipByNorm,
  clipByValue,
  gradNorm,
  type Optimizer,
  type OptimizerConfig,
  type OptimizerState,
  optimizer,
} from './optimizer.js';
import {
  floatsOver,
  GradientExchange,
  joinOutputs,
  Replica,
  ReplicaWorker,
  type ShardTask,
  samplesOf,
  shard,
  shardBounds,
} from './shards.js';

/** What to train, how, and with how many workers. */
export interface TrainingConfig<I extends InputTypes> {
  /**
   * Its output `loss` is what is minimised: a SUM over the samples of the batch (normalise with weights), so that
   * the gradients of shards and of accumulated batches add up. Other outputs are returned by each step.
   */
  readonly model: Model<I>;
  readonly inputs: I;
  /** Name of the dimension that counts samples. Default 'B'. */
  readonly batch?: string;
  /** Start values and dropout come from streams of this generator. */
  readonly random: Random;
  readonly optimizer: OptimizerConfig;
  /** Largest norm of all gradients together, or largest absolute value of each element. Default: none. */
  readonly clip?: { readonly norm?: number; readonly value?: number };
  /** Threads that each compute a shard of every batch. Default 1. */
  readonly workers?: number;
  /** Threads inside one operation, when there is one worker. Default 1. */
  readonly threads?: number;
  /** Processes that each compute a shard of every batch, each with as many workers. Default: this one alone. */
  readonly ranks?: Ranks;
  /** Default f32. */
  readonly dtype?: 'f32' | 'f64';
  /** Which parameters are not trained: they start at 0, and the caller sets them. Default none. */
  readonly frozen?: (name: string) => boolean;
}

/** What an update has computed. */
export interface StepResult {
  readonly loss: number;
  /** ‖gradient‖₂ before clipping. */
  readonly gradNorm: number;
  /** The model's other outputs; of several accumulated batches, the last one's. */
  readonly outputs: Readonly<Record<string, Value>>;
  /** The same of each batch. */
  readonly batches: readonly Readonly<Record<string, Value>>[];
}

/** What is needed besides the arrays to go on exactly where training stopped; plain JSON. */
export interface TrainingState {
  readonly optimizer: OptimizerState;
  readonly dropout: RandomState;
}

/** The loss went to NaN or infinity. */
export class DivergedError extends Error {
  override readonly name = 'DivergedError';
}

/** A model with its parameters, optimiser and compiled training step. */
export class Training {
  private constructor(
    readonly arena: Arena,
    private readonly optimizer: Optimizer,
    private readonly program: Program,
    private readonly executable: Executable,
    private readonly replica: Replica,
    private readonly helpers: readonly ReplicaWorker[],
    private readonly sharedValues: Float32Array | Float64Array | undefined,
    private readonly exchange: GradientExchange | undefined,
    private readonly config: TrainingConfig<InputTypes>,
    private dropout: Random,
  ) {}

  /** Traces the model with its gradients, initialises its parameters and starts the workers. */
  static async create<I extends InputTypes>(config: TrainingConfig<I>): Promise<Training> {
    const { random, workers = 1, threads = 1, dtype = 'f32', ranks, frozen = () => false } = config;
    const gradients: typeof withGradients = (outputs, all) =>
      withGradients(
        outputs,
        all.filter(({ name }) => !frozen(name)),
      );
    const { program, parameters } = traceModel(config.model, config.inputs, gradients, dtype);
    const rule = optimizer(config.optimizer);
    const specs = parameters.map(({ name, shape }) => ({ name, shape, frozen: frozen(name) }));
    const arena = new Arena(specs, { slots: rule.slots, dtype });
    for (const { name, shape, initialize } of parameters) {
      if (!frozen(name)) initialize(arena.value(name), shape, random.fork(`parameter ${name}`));
    }
    const executable = lower(program);
    let shared: Float32Array | Float64Array | undefined;
    let starting: Promise<ReplicaWorker>[] = [];
    if (workers > 1) {
      const sharedValues = new SharedArrayBuffer(arena.values.byteLength);
      shared = floatsOver(sharedValues, dtype);
      const setup = { executable, parameters: specs, dtype, sharedValues, gradBytes: arena.grads.byteLength };
      starting = Array.from({ length: workers - 1 }, () => ReplicaWorker.start(setup));
    }
    // While the threads start: compiling the program takes half a second on each of them.
    const compiled = Replica.create(executable, arena, workers > 1 ? 1 : threads);
    const [replica, ...helpers] = await Promise.all([compiled, ...starting]);
    const exchange = ranks === undefined ? undefined : new GradientExchange(ranks, arena);
    const general = config as unknown as TrainingConfig<InputTypes>;
    const dropout = random.fork('dropout');
    return new Training(arena, rule, program, executable, replica, helpers, shared, exchange, general, dropout);
  }

  /** One update of the parameters from one batch, or from several whose gradients are added. */
  async step(batches: Feeds | readonly Feeds[], learningRate: number): Promise<StepResult> {
    const list = (Array.isArray(batches) ? batches : [batches]) as readonly Feeds[];
    const results = await this.sumGradients(list);
    const loss = results.reduce((sum, outputs) => sum + (outputs.loss.data[0] as number), 0);
    const { clip } = this.config;
    const norm = clip?.norm === undefined ? gradNorm(this.arena) : clipByNorm(this.arena, clip.norm);
    if (clip?.value !== undefined) clipByValue(this.arena, clip.value);
    if (!Number.isFinite(loss) || !Number.isFinite(norm)) throw await this.diverged(list, loss);
    this.optimizer.step(this.arena, learningRate);
    return { loss, gradNorm: norm, outputs: results.at(-1) ?? {}, batches: results };
  }

  /**
   * Writes ∇ loss of one batch, or of several together, without dropout: that of the model in evaluation mode, if nothing
   * but dropout tells the two modes apart. Divided over workers and ranks like a step; parameters, optimiser and random
   * numbers stay as they are.
   */
  async gradient(batches: Feeds | readonly Feeds[], out: Float32Array): Promise<void> {
    const list = (Array.isArray(batches) ? batches : [batches]) as readonly Feeds[];
    await this.sumGradients(list, false);
    out.set(this.arena.grads);
  }

  /**
   * Writes the direction of the optimiser's next step for a gradient alone, without momentum: for Adam g ∕ (√v̂ + δ)
   * with its second moments v̂, else g. A parameter that is rarely trained has a tiny v̂, which would make it the whole of
   * the direction: δ is the mean of √v̂. Returns the length of the direction.
   */
  direction(gradient: Float32Array, out: Float32Array): number {
    const { optimizer } = this.config;
    const isAdam = optimizer.name === 'adam' || optimizer.name === 'adamw';
    const squares = isAdam ? this.arena.slot(1) : []; // v̂ without its bias correction, a common factor that δ has as well
    let [floor, norm] = [0, 0];
    for (let i = 0; i < squares.length; i++) floor += Math.sqrt(squares[i]);
    floor /= this.arena.parameterCount;
    if (floor === 0) {
      out.set(gradient);
      for (let i = 0; i < out.length; i++) norm += out[i] * out[i];
      return Math.sqrt(norm);
    }
    for (let i = 0; i < out.length; i++) {
      const step = Math.fround(gradient[i] / (Math.sqrt(squares[i]) + floor));
      out[i] = step;
      norm += step * step;
    }
    return Math.sqrt(norm);
  }

  /** Updates made so far. */
  get updates(): number {
    return this.optimizer.state().step;
  }

  /** The optimiser's arrays in the arena. */
  get optimizerSlots(): number {
    return this.optimizer.slots;
  }

  /** State of the optimiser and of the dropout as plain JSON, without the arena. */
  state(): TrainingState {
    return { optimizer: this.optimizer.state(), dropout: this.dropout.state() };
  }

  /** Takes over what `state` has given; parameters and slots lie in the arena. */
  load(state: TrainingState): void {
    this.optimizer.load(state.optimizer);
    this.dropout = Random.restore(state.dropout);
  }

  /** Ends the workers and releases native memory. */
  async close(): Promise<void> {
    await Promise.all(this.helpers.map((helper) => helper.stop()));
    await this.replica.close();
  }

  /**
   * Sets the arena's gradients to those of all batches together and returns the other outputs of each batch. A shard of
   * every batch belongs to each worker of each rank: those add up what they find, then the sums of the workers of a rank
   * are added in order, then those of the ranks.
   */
  private async sumGradients(batches: readonly Feeds[], dropout = true): Promise<Record<string, Value>[]> {
    const { arena, helpers, exchange } = this;
    const { ranks } = this.config;
    const workers = helpers.length + 1;
    const plan = batches.map((batch) => this.divide(batch, workers * (ranks?.size ?? 1), dropout));
    const first = workers * (ranks?.rank ?? 0);
    this.sharedValues?.set(arena.values as never);
    const running = helpers.map((helper, i) => runShards(helper, plan, first + 1 + i));
    const parts = [await runShards(this.replica, plan, first), ...(await Promise.all(running))];
    for (const [i, { grads }] of helpers.entries()) {
      if (plan.some((tasks) => tasks.length > first + 1 + i)) arena.addToGrads(grads);
    }
    const shards = ranks === undefined ? parts : ranks.share(parts).flat();
    exchange?.sum(Math.ceil(Math.max(...plan.map((tasks) => tasks.length)) / workers));
    return plan.map((tasks, batch) => this.join(shards.slice(0, tasks.length).map((outputs) => outputs[batch]!)));
  }

  /** The shards of a batch, in the order of its samples. */
  private divide(batch: Feeds, count: number, dropout: boolean): ShardPlan {
    const { inputs, batch: name = 'B' } = this.config;
    const samples = samplesOf(batch, inputs, name);
    if (samples === undefined && count > 1) {
      throw new RangeError(`no input of the model has the batch dimension ${name}`);
    }
    const masked = this.executable.masks.length > 0;
    const key: MaskKey | undefined = masked && dropout ? [this.dropout.uint32(), this.dropout.uint32()] : undefined;
    const without = masked ? NO_DROPOUT : undefined;
    const bounds = shardBounds(samples ?? 1, count);
    return bounds.map((range, i) => () => ({
      feeds: bounds.length === 1 ? batch : shard(batch, inputs, name, range),
      dropoutKey: key === undefined ? without : ([(key[0] ^ Math.imul(i, 0x85ebca6b)) >>> 0, key[1]] as const),
    }));
  }

  private join(parts: readonly Record<string, Value>[]): Record<string, Value> {
    const { batch = 'B' } = this.config;
    return Object.fromEntries(
      Object.keys(parts[0]).map((output) => {
        const values = parts.map((part) => part[output]);
        return [output, joinOutputs(values, this.executable.outputs[output], batch)];
      }),
    );
  }

  /** Finds the operation that went wrong by running the batches again with every value visible. */
  private async diverged(batches: readonly Feeds[], loss: number): Promise<DivergedError> {
    const what = Number.isFinite(loss) ? 'the gradient is not finite' : `the loss is ${loss}`;
    const where = `${what} at update ${this.updates + 1}`;
    for (const batch of batches) {
      const key: MaskKey | undefined = this.executable.masks.length === 0 ? undefined : [0, 0];
      const found = await firstNonFinite(this.program, { ...batch, ...parameterFeeds(this.arena) }, key);
      if (found === undefined) continue;
      return new DivergedError(
        found.op === 'input'
          ? `${where}: input ${found.site} holds ${found.value}`
          : `${where}: the first operation with a value that is not finite is ${found.op} (${found.value}) at ${found.site}`,
      );
    }
    return new DivergedError(`${where}; it could not be found again in a second run`);
  }
}

/** What is to be computed of each shard of a batch, made by the rank that needs it. */
type ShardPlan = readonly (() => ShardTask)[];

/** Runs shard i of every batch that has one; the result has a place for every batch. */
async function runShards(
  replica: Pick<Replica, 'run'>,
  plan: readonly ShardPlan[],
  i: number,
): Promise<(Record<string, Value> | undefined)[]> {
  const tasks = plan.filter((shards) => shards.length > i).map((shards) => shards[i]());
  const results = tasks.length === 0 ? [] : await replica.run(tasks);
  let next = 0;
  return plan.map((shards) => (shards.length > i ? results[next++] : undefined));
}
