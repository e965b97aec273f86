import { type Executable, lower, NO_DROPOUT, type Program, type Value } from '../tensor/index.js';
import type { Arena, ParameterSpec } from './arena.js';
import { type Feeds, type InputTypes, parameterFeeds } from './inference.js';
import { clipByNorm, clipByValue, gradNorm, type Optimizer } from './optimizer.js';
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
import type { Engine, KeyedBatch, TrainingConfig, UpdateProgram } from './training.js';

/** What is trained, and how. */
interface CpuSetup {
  readonly arena: Arena;
  readonly specs: readonly ParameterSpec[];
  readonly optimizer: Optimizer;
  readonly config: TrainingConfig<InputTypes>;
}

/** The updates of a training on the CPU: batches are split over workers and ranks, the optimiser is a kernel. */
export class CpuTraining implements Engine {
  private constructor(
    private readonly setup: CpuSetup,
    private readonly executable: Executable,
    private readonly replica: Replica,
    private readonly helpers: readonly ReplicaWorker[],
    private readonly sharedValues: Float32Array | Float64Array | undefined,
    private readonly exchange: GradientExchange | undefined,
  ) {}

  /** @param program the model with the gradients of its parameters */
  static async create(program: Program, setup: CpuSetup): Promise<CpuTraining> {
    const { arena, specs, config } = setup;
    const { workers = 1, threads = 1, dtype = 'f32', ranks } = config;
    const executable = lower(program);
    let shared: Float32Array | Float64Array | undefined;
    let starting: Promise<ReplicaWorker>[] = [];
    if (workers > 1) {
      const sharedValues = new SharedArrayBuffer(arena.values.byteLength);
      shared = floatsOver(sharedValues, dtype);
      const own = { executable, parameters: specs, dtype, sharedValues, gradBytes: arena.grads.byteLength };
      starting = Array.from({ length: workers - 1 }, () => ReplicaWorker.start(own));
    }
    // While the threads start: compiling the program takes half a second on each of them.
    const compiled = Replica.create(executable, arena, workers > 1 ? 1 : threads);
    const [replica, ...helpers] = await Promise.all([compiled, ...starting]);
    const exchange = ranks === undefined ? undefined : new GradientExchange(ranks, arena);
    return new CpuTraining(setup, executable, replica, helpers, shared, exchange);
  }

  readonly traffic = { up: 0, down: 0 };

  get masked(): boolean {
    return this.executable.masks.length > 0;
  }

  async step(
    batches: readonly KeyedBatch[],
    learningRate: number,
    accept: (results: readonly Record<string, Value>[], norm: number) => Promise<void>,
  ): Promise<void> {
    const { arena, optimizer, config } = this.setup;
    const { clip } = config;
    const results = await this.sumGradients(batches);
    const norm = clip?.norm === undefined ? gradNorm(arena) : clipByNorm(arena, clip.norm);
    if (clip?.value !== undefined) clipByValue(arena, clip.value);
    await accept(results, norm);
    optimizer.step(arena, learningRate);
  }

  async gradient(batches: readonly KeyedBatch[], out: Float32Array): Promise<void> {
    await this.sumGradients(batches);
    out.set(this.setup.arena.grads);
  }

  async assign(values: Readonly<Record<string, Value>>): Promise<void> {
    for (const [name, { data }] of Object.entries(values)) this.setup.arena.value(name).set(data as never);
  }

  async toHost(): Promise<void> {}

  async programs(batch: Feeds): Promise<UpdateProgram[]> {
    return [{ executable: this.executable, feeds: { ...batch, ...parameterFeeds(this.setup.arena) } }];
  }

  async close(): Promise<void> {
    await Promise.all(this.helpers.map((helper) => helper.stop()));
    await this.replica.close();
  }

  /**
   * Sets the arena's gradients to those of all batches together and returns the other outputs of each batch. A shard of
   * every batch belongs to each worker of each rank: these sum their gradients, then the sums of the workers of a rank
   * are added in order, then those of the ranks.
   */
  private async sumGradients(batches: readonly KeyedBatch[]): Promise<Record<string, Value>[]> {
    const { helpers, exchange } = this;
    const { arena, config } = this.setup;
    const { ranks } = config;
    const workers = helpers.length + 1;
    const plan = batches.map((batch) => this.divide(batch, workers * (ranks?.size ?? 1)));
    const first = workers * (ranks?.rank ?? 0);
    this.sharedValues?.set(arena.values as never);
    const running = helpers.map((helper, i) => runShards(helper, plan, first + 1 + i));
    const parts = [await runShards(this.replica, plan, first), ...(await Promise.all(running))];
    for (const [i, { grads }] of helpers.entries()) {
      if (plan.some((tasks) => tasks.length > first + 1 + i)) arena.addToGrads(grads);
    }
    const shards = ranks === undefined ? parts : ranks.share(parts).flat();
    exchange?.sum(Math.ceil(Math.max(...plan.map((tasks) => tasks.length)) / workers));
    const outputsOf = (tasks: ShardPlan, batch: number) =>
      shards.slice(0, tasks.length).map((outputs) => outputs[batch]);
    return plan.map((tasks, batch) => this.join(outputsOf(tasks, batch).filter((outputs) => outputs !== undefined)));
  }

  /** The shards of a batch, in the order of its samples. */
  private divide({ feeds: batch, dropoutKey: key }: KeyedBatch, count: number): ShardPlan {
    const { inputs, batch: name = 'B' } = this.setup.config;
    const samples = samplesOf(batch, inputs, name);
    if (samples === undefined && count > 1) {
      throw new RangeError(`no input of the model has the batch dimension ${name}`);
    }
    const bounds = shardBounds(samples ?? 1, count);
    return bounds.map((range, i) => () => ({
      feeds: bounds.length === 1 ? batch : shard(batch, inputs, name, range),
      dropoutKey:
        key === undefined || key === NO_DROPOUT
          ? key
          : ([(key[0] ^ Math.imul(i, 0x85ebca6b)) >>> 0, key[1], key[2]] as const),
    }));
  }

  private join(parts: readonly Record<string, Value>[]): Record<string, Value> {
    const { batch = 'B' } = this.setup.config;
    return Object.fromEntries(
      Object.keys(parts[0]).map((output) => {
        const values = parts.map((part) => part[output]);
        return [output, joinOutputs(values, this.executable.outputs[output], batch)];
      }),
    );
  }
}

/** The inputs of each shard of a batch, made by the rank that needs it. */
type ShardPlan = readonly (() => ShardTask)[];

/** Runs shard i of every batch that has one; the result has an entry for every batch. */
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
