import { type DeviceChoice, deviceFor } from '../devices.js';
import { InputError } from '../errors.js';
import type { MaskHash, MaskKey } from '../kernels.js';
import { Random, type RandomState } from '../random.js';
import type { Ranks } from '../ranks.js';
import {
  type DeviceFeeds,
  type Executable,
  firstNonFinite,
  NO_DROPOUT,
  type Program,
  type Run,
  type Value,
} from '../tensor/index.js';
import { Arena } from './arena.js';
import { CpuTraining } from './cpu-training.js';
import { type Clip, DeviceTraining } from './device-training.js';
import { type Feeds, type InputTypes, type Model, parameterFeeds, traceModel, withGradients } from './inference.js';
import { type Optimizer, type OptimizerConfig, type OptimizerState, optimizer } from './optimizer.js';

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
  /** Maximum norm of all gradients together, or maximum absolute value of each element. Default: none. */
  readonly clip?: Clip;
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
  /** Device. Devices other than the CPU support one worker, f32 and no ranks; `auto` chooses by the model. Default cpu. */
  readonly device?: DeviceChoice;
  /** Hash for dropout masks. Default: triple32 on the CPU, portable on other devices. */
  readonly hash?: MaskHash;
}

/** Results of an update. */
export interface StepResult {
  readonly loss: number;
  /** ‖gradient‖₂ before clipping. */
  readonly gradNorm: number;
  /** The model's other outputs; of several accumulated batches, the last one's. */
  readonly outputs: Readonly<Record<string, Value>>;
  /** The same of each batch. */
  readonly batches: readonly Readonly<Record<string, Value>>[];
}

/** What is needed besides the arrays to continue exactly where training stopped; plain JSON. */
export interface TrainingState {
  readonly optimizer: OptimizerState;
  readonly dropout: RandomState;
  /** Hash for dropout masks; absent: triple32. A training keeps it when it continues elsewhere. */
  readonly hash?: MaskHash;
}

/** The loss went to NaN or infinity. */
export class DivergedError extends Error {
  override readonly name = 'DivergedError';
}

/** A batch, and the key of its dropout masks. */
export interface KeyedBatch {
  readonly feeds: Feeds;
  readonly dropoutKey?: Run['dropoutKey'];
}

/** What computes the updates of a training. */
export interface Engine {
  /** Whether the program has random arrays. */
  readonly masked: boolean;
  /**
   * Sums the gradients of the batches and makes an update, if `accept` agrees: it sees the outputs of each batch
   * and ‖g‖ first, and may throw; parameters and optimiser are then unchanged.
   */
  step(
    batches: readonly KeyedBatch[],
    learningRate: number,
    accept: (results: readonly Outputs[], norm: number) => Promise<void>,
  ): Promise<void>;
  /** Writes the sum of the gradients of the batches, laid out like the arena. */
  gradient(batches: readonly KeyedBatch[], out: Float32Array): Promise<void>;
  /** Sets parameters. */
  assign(values: Readonly<Record<string, Value>>): Promise<void>;
  /** Copies parameters and the optimiser's arrays into the arena, if they are elsewhere. */
  toHost(): Promise<void>;
  /** Bytes sent to and received from a device so far. */
  readonly traffic: { readonly up: number; readonly down: number };
  /** The programs that an update of a batch runs, with what they are given. */
  programs(batch: Feeds): Promise<UpdateProgram[]>;
  close(): Promise<void>;
}

type Outputs = Readonly<Record<string, Value>>;

/** A program of an update, with the values of its inputs. */
export interface UpdateProgram {
  readonly executable: Executable;
  readonly feeds: DeviceFeeds;
}

/** A model with its parameters, optimiser and compiled training step. */
export class Training {
  private constructor(
    readonly arena: Arena,
    private readonly optimizer: Optimizer,
    private readonly program: Program,
    private readonly start: (hash: MaskHash) => Promise<Engine>,
    private engine: Engine,
    private readonly config: TrainingConfig<InputTypes>,
    private dropout: Random,
    private hash: MaskHash,
  ) {}

  /** Traces the model with its gradients, initialises its parameters and starts the workers. */
  static async create<I extends InputTypes>(config: TrainingConfig<I>): Promise<Training> {
    const { random, dtype = 'f32', frozen = () => false } = config;
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
    const { clip, workers = 1, ranks } = config;
    const wanted = config.device === 'auto' && ranks !== undefined ? 'cpu' : config.device;
    const device = deviceFor(wanted ?? 'cpu', arena.parameterCount);
    const general = { ...config, device } as unknown as TrainingConfig<InputTypes>;
    if (device !== 'cpu' && ((workers > 1 && config.device !== 'auto') || ranks !== undefined)) {
      throw new InputError(`the device ${device} supports one worker in one process, not several`, {
        key: 'workers',
      });
    }
    const start = (hash: MaskHash): Promise<Engine> =>
      device === 'cpu'
        ? CpuTraining.create(program, { arena, specs, optimizer: rule, config: general })
        : DeviceTraining.create(program, arena, { device, optimizer: rule, clip, hash });
    const hash = config.hash ?? (device === 'cpu' ? 'triple32' : 'portable');
    const engine = await start(hash);
    return new Training(arena, rule, program, start, engine, general, random.fork('dropout'), hash);
  }

  /** One update of the parameters from one batch, or from several whose gradients are added. */
  async step(batches: Feeds | readonly Feeds[], learningRate: number): Promise<StepResult> {
    const list = (Array.isArray(batches) ? batches : [batches]) as readonly Feeds[];
    let result: StepResult | undefined;
    await this.engine.step(this.keyed(list), learningRate, async (results, gradNorm) => {
      const loss = results.reduce((sum, outputs) => sum + (outputs.loss.data[0] as number), 0);
      if (!Number.isFinite(loss) || !Number.isFinite(gradNorm)) throw await this.diverged(list, loss);
      result = { loss, gradNorm, outputs: results.at(-1) ?? {}, batches: results };
    });
    return result!;
  }

  /**
   * Writes ∇ loss of one batch, or of several together, without dropout: that of the model in evaluation mode, if only
   * dropout distinguishes the two modes. Split over workers and ranks like a step; parameters, optimiser and random
   * numbers are unchanged.
   */
  async gradient(batches: Feeds | readonly Feeds[], out: Float32Array): Promise<void> {
    const list = (Array.isArray(batches) ? batches : [batches]) as readonly Feeds[];
    const dropoutKey = this.engine.masked ? NO_DROPOUT : undefined;
    await this.engine.gradient(
      list.map((feeds) => ({ feeds, dropoutKey })),
      out,
    );
  }

  /**
   * Writes the direction of the optimiser's next step for a gradient alone, without momentum: for Adam g ∕ (√v̂ + δ)
   * with its second moments v̂, otherwise g. A parameter that is rarely trained has a tiny v̂, which would let it dominate
   * the direction, so δ is the mean of √v̂. Returns the length of the direction.
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

  /** Sets parameters to values that the model has computed. */
  assign(values: Readonly<Record<string, Value>>): Promise<void> {
    return this.engine.assign(values);
  }

  /**
   * Copies parameters and the optimiser's arrays into the arena, if they are on a device; call it before reading the
   * arena.
   */
  settle(): Promise<void> {
    return this.engine.toHost();
  }

  /** State of the optimiser and of the dropout as plain JSON, without the arena. */
  state(): TrainingState {
    const state = { optimizer: this.optimizer.state(), dropout: this.dropout.state() };
    return this.hash === 'triple32' ? state : { ...state, hash: this.hash };
  }

  /** Restores what `state` returned; parameters and slots are in the arena. */
  load(state: TrainingState): void {
    const { hash = 'triple32' } = state;
    this.optimizer.load(state.optimizer);
    this.dropout = Random.restore(state.dropout);
    this.arena.touch();
    if (hash === this.hash) return;
    this.hash = hash;
    // On the CPU masks are made outside, by either hash; elsewhere the program makes them.
    if (!this.engine.masked || (this.config.device ?? 'cpu') === 'cpu') return;
    this.engine = restarting(this.engine, () => this.start(hash));
  }

  /** Bytes that updates have sent to and received from a device. */
  get traffic(): { readonly up: number; readonly down: number } {
    return this.engine.traffic;
  }

  /** The programs that an update of this batch runs, with their inputs: to inspect where they are computed. */
  programs(batch: Feeds): Promise<UpdateProgram[]> {
    return this.engine.programs(batch);
  }

  /** Ends the workers and releases native memory. */
  close(): Promise<void> {
    return this.engine.close();
  }

  private keyed(batches: readonly Feeds[]): KeyedBatch[] {
    const { masked } = this.engine;
    return batches.map((feeds) => {
      if (!masked) return { feeds };
      const key: MaskKey = [this.dropout.uint32(), this.dropout.uint32(), this.hash];
      return { feeds, dropoutKey: key };
    });
  }

  /** Finds the operation that failed by running the batches again with every value visible. */
  private async diverged(batches: readonly Feeds[], loss: number): Promise<DivergedError> {
    const what = Number.isFinite(loss) ? 'the gradient is not finite' : `the loss is ${loss}`;
    const where = `${what} at update ${this.updates + 1}`;
    await this.settle();
    for (const batch of batches) {
      const key: MaskKey | undefined = this.engine.masked ? [0, 0] : undefined;
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

/** An engine that is closed and recreated before its next use. */
function restarting(old: Engine, start: () => Promise<Engine>): Engine {
  let next: Promise<Engine> | undefined;
  const now = (): Promise<Engine> => {
    next ??= old.close().then(start);
    return next;
  };
  return {
    masked: old.masked,
    traffic: { up: 0, down: 0 },
    step: async (...args) => (await now()).step(...args),
    gradient: async (...args) => (await now()).gradient(...args),
    assign: async (...args) => (await now()).assign(...args),
    // Before it is used again, what is in the arena is the newest.
    toHost: async () => (await next)?.toHost(),
    programs: async (batch) => (await now()).programs(batch),
    close: async () => (next === undefined ? old : await next).close(),
  };
}
