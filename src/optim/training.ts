import type { MaskKey } from '../kernels.js';
import { Random, type RandomState } from '../random.js';
import {
  type Executable,
  firstNonFinite,
  grad,
  lower,
  type Parameter,
  type Program,
  Session,
  type TypedArray,
  type Value,
} from '../tensor/index.js';
import { Arena } from './arena.js';
import { clipByNorm, clipByValue, gradNorm } from './clip.js';
import { type Feeds, type InputTypes, type Model, type Outputs, parameterFeeds, traceModel } from './inference.js';
import { type Optimizer, type OptimizerConfig, type OptimizerState, optimizer } from './optimizer.js';
import { floatsOver, gradientName } from './replica.js';
import { batchAxis, joinOutputs, shard, shardBounds } from './shards.js';
import { ReplicaWorker } from './workers.js';

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
  /** Whether steps will be given several batches to accumulate. Default false. */
  readonly accumulate?: boolean;
  /** Default f32. */
  readonly dtype?: 'f32' | 'f64';
}

export interface StepResult {
  readonly loss: number;
  /** ‖gradient‖₂ before clipping. */
  readonly gradNorm: number;
  /** The model's other outputs; of several accumulated batches, the last one's. */
  readonly outputs: Readonly<Record<string, Value>>;
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
    private readonly session: Session,
    private readonly helpers: readonly ReplicaWorker[],
    private readonly sharedValues: Float32Array | Float64Array | undefined,
    private readonly config: TrainingConfig<InputTypes>,
    private dropout: Random,
  ) {}

  static async create<I extends InputTypes>(config: TrainingConfig<I>): Promise<Training> {
    const { random, workers = 1, threads = 1, accumulate = false, dtype = 'f32' } = config;
    const { program, parameters } = traceModel(config.model, config.inputs, withGradients, dtype);
    const rule = optimizer(config.optimizer);
    // The last slot is scratch: gradients of a shard or batch on their way into the sum.
    const scratch = workers > 1 || accumulate ? 1 : 0;
    const arena = new Arena(parameters, { slots: rule.slots + scratch, dtype });
    for (const { name, shape, initialize } of parameters) {
      initialize(arena.value(name), shape, random.fork(`parameter ${name}`));
    }
    const executable = lower(program);
    const session = await Session.create(executable, { threads: workers > 1 ? 1 : threads });
    let shared: Float32Array | Float64Array | undefined;
    const helpers: ReplicaWorker[] = [];
    if (workers > 1) {
      const buffer = new SharedArrayBuffer(arena.values.byteLength);
      shared = floatsOver(buffer, dtype);
      const places = arena.names.map((name) => {
        const view = arena.value(name);
        const start = (view.byteOffset - arena.values.byteOffset) / view.BYTES_PER_ELEMENT;
        return { name, start, size: view.length, shape: arena.shape(name) };
      });
      const setup = { executable, places, dtype, length: arena.length, sharedValues: buffer };
      helpers.push(...(await Promise.all(Array.from({ length: workers - 1 }, () => ReplicaWorker.start(setup)))));
    }
    const general = config as unknown as TrainingConfig<InputTypes>;
    return new Training(arena, rule, program, executable, session, helpers, shared, general, random.fork('dropout'));
  }

  /** One update of the parameters from one batch, or from several whose gradients are added. */
  async step(batches: Feeds | readonly Feeds[], learningRate: number): Promise<StepResult> {
    const list = (Array.isArray(batches) ? batches : [batches]) as readonly Feeds[];
    this.sharedValues?.set(this.arena.values as never);
    let loss = 0;
    let outputs: Record<string, Value> = {};
    for (const [i, batch] of list.entries()) {
      outputs = await this.addGradients(batch, i === 0);
      loss += outputs.loss.data[0] as number;
    }
    const { clip } = this.config;
    const norm = clip?.norm === undefined ? gradNorm(this.arena) : clipByNorm(this.arena, clip.norm);
    if (clip?.value !== undefined) clipByValue(this.arena, clip.value);
    if (!Number.isFinite(loss) || !Number.isFinite(norm)) throw await this.diverged(list, loss);
    this.optimizer.step(this.arena, learningRate);
    return { loss, gradNorm: norm, outputs };
  }

  /** The gradients of a batch at the current parameters, left in the arena; nothing is updated. */
  async gradients(batch: Feeds): Promise<Readonly<Record<string, Value>>> {
    this.sharedValues?.set(this.arena.values as never);
    return this.addGradients(batch, true);
  }

  /** Updates made so far. */
  get updates(): number {
    return this.optimizer.state().step;
  }

  /** The optimiser's arrays in the arena; any further slot is scratch. */
  get optimizerSlots(): number {
    return this.optimizer.slots;
  }

  state(): TrainingState {
    return { optimizer: this.optimizer.state(), dropout: this.dropout.state() };
  }

  load(state: TrainingState): void {
    this.optimizer.load(state.optimizer);
    this.dropout = Random.restore(state.dropout);
  }

  async close(): Promise<void> {
    await Promise.all(this.helpers.map((helper) => helper.stop()));
    await this.session.close();
  }

  /** Sets the arena's gradients to those of a batch, or adds them. Shards are added in the order of their samples. */
  private async addGradients(batch: Feeds, first: boolean): Promise<Record<string, Value>> {
    const { arena, helpers } = this;
    const name = this.config.batch ?? 'B';
    const shards = shardBounds(this.samplesOf(batch), helpers.length + 1);
    const key: MaskKey | undefined =
      this.executable.masks.length === 0 ? undefined : [this.dropout.uint32(), this.dropout.uint32()];
    const tasks = shards.map((bounds, rank) => ({
      feeds: shards.length === 1 ? batch : shard(batch, this.config.inputs, name, bounds),
      dropoutKey: key === undefined ? undefined : ([(key[0] ^ Math.imul(rank, 0x85ebca6b)) >>> 0, key[1]] as const),
    }));
    const running = tasks.slice(1).map((task, i) => helpers[i].run(task));
    const own = this.run(tasks[0].feeds, tasks[0].dropoutKey, first);
    const parts = [await own];
    for (const [i, run] of running.entries()) {
      parts.push(await run);
      arena.slot(arena.slots - 1).set(helpers[i].grads as never);
      this.addScratch();
    }
    return Object.fromEntries(
      Object.keys(parts[0]).map((output) => {
        const values = parts.map((part) => part[output]);
        return [output, joinOutputs(values, this.executable.outputs[output], name)];
      }),
    );
  }

  private async run(feeds: Feeds, dropoutKey: MaskKey | undefined, first: boolean): Promise<Record<string, Value>> {
    const { arena } = this;
    if (!first && arena.slots === this.optimizer.slots) {
      throw new Error('accumulating several batches in one step needs the option accumulate: true');
    }
    const target = (name: string): TypedArray => (first ? arena.grad(name) : arena.slot(arena.slots - 1, name));
    const into = Object.fromEntries(arena.names.map((name) => [gradientName(name), target(name)]));
    const outputs = await this.session.run({ ...feeds, ...parameterFeeds(arena) }, { into, dropoutKey });
    if (!first) this.addScratch();
    return Object.fromEntries(Object.entries(outputs).filter(([name]) => !(name in into)));
  }

  private addScratch(): void {
    const { kernels, address, length, slots } = this.arena;
    kernels.axpy(address.grads, address.slots[slots - 1], length, 1);
  }

  private samplesOf(batch: Feeds): number {
    const name = this.config.batch ?? 'B';
    for (const [input, type] of Object.entries(this.config.inputs)) {
      const axis = batchAxis(type, name);
      if (axis !== undefined && batch[input] !== undefined) return batch[input].shape[axis];
    }
    if (this.helpers.length > 0) throw new RangeError(`no input of the model has the batch dimension ${name}`);
    return 1;
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

function withGradients(outputs: Outputs, parameters: readonly Parameter[]): Outputs {
  const loss = outputs.loss;
  if (loss === undefined) throw new RangeError("a model to train needs an output named 'loss'");
  const gradients = grad(
    loss,
    parameters.map(({ tensor }) => tensor),
  );
  return { ...outputs, ...Object.fromEntries(parameters.map(({ name }, i) => [gradientName(name), gradients[i]])) };
}
