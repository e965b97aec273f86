import {
  add,
  clip as clipped,
  concat,
  type DeviceFeeds,
  type DeviceName,
  type DeviceValue,
  div,
  f32,
  fill,
  lower,
  type MaskHash,
  minimum,
  mul,
  NO_DROPOUT,
  type Program,
  programOf,
  reshape,
  Session,
  slice,
  sqrt,
  square,
  sum,
  type Tensor,
  type TensorType,
  trace,
  type Value,
} from '../tensor/index.js';
import type { Arena } from './arena.js';
import type { Feeds } from './inference.js';
import type { Optimizer, TracedRule } from './optimizer.js';
import { type Bucket, Residence, ROW, resident } from './residence.js';
import { gradientName } from './shards.js';
import type { Engine, KeyedBatch, UpdateProgram } from './training.js';

/** Maximum norm of all gradients together, or maximum absolute value of each element. */
export interface Clip {
  readonly norm?: number;
  readonly value?: number;
}

/**
 * The updates of a training on a device. Parameters, gradients and the optimiser's arrays stay there; a batch goes up,
 * the loss, the other outputs of the model and ‖g‖ come down.
 */
export class DeviceTraining implements Engine {
  private constructor(
    private readonly optimizer: Optimizer,
    private readonly residence: Residence,
    private readonly gradients: Session,
    private readonly sum: Session,
    private readonly update: Session,
  ) {}

  /** @param program the model with the gradients of its parameters */
  static async create(
    program: Program,
    arena: Arena,
    options: { device: DeviceName; optimizer: Optimizer; clip?: Clip; hash: MaskHash },
  ): Promise<DeviceTraining> {
    const { device, optimizer, clip, hash } = options;
    const residence = Residence.of(arena, device);
    const trained = residence.buckets.filter(({ frozen }) => !frozen);
    const joined = resident(joinGradients(program, trained), arena, residence.buckets);
    const kept = trained.map((_, i) => `gradients.${i}`);
    const update = lower(updateProgram(trained, optimizer.traced, clip), { device });
    return new DeviceTraining(
      optimizer,
      residence,
      await Session.create(lower(joined, { device, masksInside: hash === 'portable' }), { keep: kept }),
      await Session.create(lower(sumProgram(trained), { device }), { keep: kept }),
      await Session.create(update, { keep: Object.keys(update.outputs).filter((name) => name !== 'norm') }),
    );
  }

  get traffic(): { readonly up: number; readonly down: number } {
    const sessions = [this.gradients, this.sum, this.update];
    const total = (way: 'up' | 'down'): number => sessions.reduce((sum, { traffic }) => sum + traffic[way], 0);
    return { up: total('up'), down: total('down') };
  }

  get masked(): boolean {
    return this.gradients.executable.masks.length > 0;
  }

  async step(
    batches: readonly KeyedBatch[],
    learningRate: number,
    accept: (results: readonly Record<string, Value>[], norm: number) => Promise<void>,
  ): Promise<void> {
    const { results, gradients } = await this.sumGradients(batches);
    const { residence } = this;
    const slots = await residence.slots();
    const feeds = await this.updateFeeds(gradients, learningRate);
    const { outputs, kept } = await this.update.runKeeping(feeds);
    for (const gradient of gradients) gradient.release();
    try {
      await accept(results, outputs.norm.data[0] as number);
    } catch (error) {
      for (const value of Object.values(kept)) value.release();
      throw error;
    }
    const listed = (prefix: string): DeviceValue[] => gradients.map((_, i) => kept[`${prefix}.${i}`]);
    residence.replace(
      listed('values'),
      slots.map((_, i) => listed(`next.${i}`)),
    );
    this.optimizer.advance();
  }

  /** Writes the sum of the batches' gradients as the arena lays them out. */
  async gradient(batches: readonly KeyedBatch[], out: Float32Array): Promise<void> {
    const { gradients } = await this.sumGradients(batches);
    out.fill(0);
    for (const [i, gradient] of gradients.entries()) {
      this.residence.scatter(this.residence.buckets[i], await this.residence.download(gradient), out);
      gradient.release();
    }
  }

  assign(values: Readonly<Record<string, Value>>): Promise<void> {
    return this.residence.assign(values);
  }

  /** Copies parameters and the optimiser's arrays into the arena. */
  toHost(): Promise<void> {
    return this.residence.toHost();
  }

  async programs(batch: Feeds): Promise<UpdateProgram[]> {
    const values = await this.residence.values();
    const { executable } = this.gradients;
    const dropoutKey = this.masked ? NO_DROPOUT : undefined;
    const { kept } = await this.gradients.runKeeping({ ...batch, ...values }, { dropoutKey });
    return [
      { executable, feeds: { ...batch, ...values } },
      { executable: this.update.executable, feeds: await this.updateFeeds(Object.values(kept), 0) },
    ];
  }

  async close(): Promise<void> {
    for (const session of [this.gradients, this.sum, this.update]) await session.close();
    await this.residence.close();
  }

  private async updateFeeds(gradients: readonly DeviceValue[], learningRate: number): Promise<DeviceFeeds> {
    const feeds: Record<string, Value | DeviceValue> = {
      ...(await this.residence.values()),
      ...byName('gradients', gradients),
    };
    for (const [i, list] of (await this.residence.slots()).entries()) Object.assign(feeds, byName(`slot.${i}`, list));
    const rates = Float32Array.from(this.optimizer.rates(learningRate));
    return { ...feeds, rates: { data: rates, shape: [rates.length] } };
  }

  private async sumGradients(batches: readonly KeyedBatch[]) {
    const results: Record<string, Value>[] = [];
    let total: DeviceValue[] | undefined;
    for (const { feeds, dropoutKey } of batches) {
      const values = await this.residence.values();
      const { outputs, kept } = await this.gradients.runKeeping({ ...feeds, ...values }, { dropoutKey });
      results.push(outputs);
      const own = Object.keys(kept).map((_, i) => kept[`gradients.${i}`]);
      total = total === undefined ? own : await this.added(total, own);
    }
    return { results, gradients: total ?? [] };
  }

  private async added(a: readonly DeviceValue[], b: readonly DeviceValue[]): Promise<DeviceValue[]> {
    const { kept } = await this.sum.runKeeping({ ...byName('a', a), ...byName('b', b) });
    for (const value of [...a, ...b]) value.release();
    return a.map((_, i) => kept[`gradients.${i}`]);
  }
}

function byName(prefix: string, values: readonly DeviceValue[]): Record<string, DeviceValue> {
  return Object.fromEntries(values.map((value, i) => [`${prefix}.${i}`, value]));
}

/** The program with one output for the gradients of each bucket. */
function joinGradients({ inputs, outputs }: Program, buckets: readonly Bucket[]): Program {
  const own = new Map([...outputs].filter(([name]) => !name.startsWith(gradientName(''))));
  for (const [i, { places, length }] of buckets.entries()) {
    const parts = places.map(({ name }) => reshape(outputs.get(gradientName(name))!, [-1]));
    const missing = length - places.reduce((total, { size }) => total + size, 0);
    own.set(`gradients.${i}`, concat(missing === 0 ? parts : [...parts, fill(0, [missing])], 0));
  }
  return programOf(inputs, own);
}

function sumProgram(buckets: readonly Bucket[]): Program {
  const types = buckets.flatMap(({ length }, i) => ['a', 'b'].map((name) => [`${name}.${i}`, f32(length)] as const));
  return trace(Object.fromEntries(types), (inputs) =>
    Object.fromEntries(buckets.map((_, i) => [`gradients.${i}`, add(inputs[`a.${i}`], inputs[`b.${i}`])])),
  );
}

/** Clipping and the optimiser's rule, on whole buckets. `rates` are the numbers that change from update to update. */
function updateProgram(buckets: readonly Bucket[], rule: TracedRule, clip: Clip = {}): Program {
  const types = buckets.flatMap(({ name, length }, i) => [
    [name, f32(length)] as const,
    [`gradients.${i}`, f32(length)] as const,
    ...Array.from({ length: rule.slots }, (_, slot) => [`slot.${slot}.${i}`, f32(length)] as const),
  ]);
  const all: Record<string, TensorType> = { ...Object.fromEntries(types), rates: f32(rule.rates) };
  return trace(all, (inputs) => {
    const squares = buckets.map(({ length }, i) => {
      const rows = reshape(square(inputs[`gradients.${i}`]), [length / ROW, ROW]);
      return sum(sum(rows, { axes: [1] }));
    });
    const norm = sqrt(squares.reduce(add));
    const rates = Array.from({ length: rule.rates }, (_, i) => slice(inputs.rates, 0, i, 1));
    const outputs: Record<string, Tensor> = { norm };
    for (const [i, { name }] of buckets.entries()) {
      const gradient = limited(inputs[`gradients.${i}`], norm, clip);
      const slots = Array.from({ length: rule.slots }, (_, slot) => inputs[`slot.${slot}.${i}`]);
      const next = rule.update(inputs[name], gradient, slots, rates);
      outputs[`values.${i}`] = next.value;
      for (const [slot, tensor] of next.slots.entries()) outputs[`next.${slot}.${i}`] = tensor;
    }
    return outputs;
  });
}

/** Like `clipByNorm` and `clipByValue`. */
function limited(gradient: Tensor, norm: Tensor, { norm: largest, value }: Clip): Tensor {
  const scaled = largest === undefined ? gradient : mul(gradient, minimum(div(largest, add(norm, 1e-6)), 1));
  return value === undefined ? scaled : clipped(scaled, -value, value);
}
