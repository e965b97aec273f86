import { InputError } from '../../errors.js';
import { Random, type RandomState } from '../../random.js';
import type { Samples } from './panel.js';

/** How samples are grouped into batches: `size` samples from anywhere, or the samples of `days` whole days (for GAT). */
export type BatchPlan = { readonly size: number } | { readonly days: number };

/** Where a stream of batches stands; plain JSON. */
export interface BatchSamplerState {
  /** The generator as it was before the running epoch was shuffled. */
  readonly random: RandomState;
  readonly epoch: number;
  /** Units (samples or days) of the running epoch already handed out. */
  readonly taken: number;
}

/**
 * An endless stream of training batches: each epoch goes through all samples once in a new random order; the last batch
 * of an epoch may be smaller. A batch is the positions of its samples.
 */
export class BatchSampler {
  private readonly samples: Samples;
  private readonly plan: BatchPlan;
  private readonly random: Random;
  /** What is shuffled: positions of samples, or numbers of days. */
  private readonly order: Int32Array;
  private atEpochStart: RandomState;
  private finished: number;
  private taken: number;

  constructor(samples: Samples, plan: BatchPlan, random: Random, state?: BatchSamplerState) {
    const wanted = 'size' in plan ? plan.size : plan.days;
    const key = 'size' in plan ? 'batch.size' : 'batch.days';
    if (!Number.isInteger(wanted) || wanted < 1)
      throw new InputError(`${wanted} is not a positive whole number`, { key });
    this.samples = samples;
    this.plan = plan;
    this.order = new Int32Array('size' in plan ? samples.length : samples.dayStarts.length - 1);
    if (this.order.length === 0) throw new InputError('there is no sample to make batches of');
    if (state !== undefined && !(state.taken >= 0 && state.taken <= this.order.length)) {
      throw new InputError(`the saved position ${state.taken} lies outside the ${this.order.length} units of an epoch`);
    }
    this.random = state === undefined ? random : Random.restore(state.random);
    this.atEpochStart = this.random.state();
    this.finished = state?.epoch ?? 0;
    this.taken = state?.taken ?? 0;
    this.shuffle();
  }

  /** Epochs completed. An epoch is completed by the batch that takes its last sample. */
  get epoch(): number {
    return this.taken === this.order.length ? this.finished + 1 : this.finished;
  }

  get batchesPerEpoch(): number {
    return Math.ceil(this.order.length / ('size' in this.plan ? this.plan.size : this.plan.days));
  }

  /** Positions of the next batch's samples; the array is the caller's. */
  next(): Int32Array {
    if (this.taken === this.order.length) {
      this.finished++;
      this.taken = 0;
      this.atEpochStart = this.random.state();
      this.shuffle();
    }
    const count = 'size' in this.plan ? this.plan.size : this.plan.days;
    const units = this.order.slice(this.taken, this.taken + count);
    this.taken += units.length;
    return 'size' in this.plan ? units : positionsOfDays(this.samples, units);
  }

  state(): BatchSamplerState {
    return { random: this.atEpochStart, epoch: this.finished, taken: this.taken };
  }

  /** Each epoch starts from the ordered list, so that its order follows from the generator's state alone. */
  private shuffle(): void {
    for (let i = 0; i < this.order.length; i++) this.order[i] = i;
    this.random.shuffle(this.order);
  }
}

/** All positions in order, `size` at a time: for evaluation. */
export function* chunks(samples: Samples, size: number): Generator<Int32Array> {
  for (let from = 0; from < samples.length; from += size) {
    yield Int32Array.from({ length: Math.min(size, samples.length - from) }, (_, i) => from + i);
  }
}

/** The positions of one day after the other: for evaluation of models that see a day at once. */
export function* dayChunks(samples: Samples): Generator<Int32Array> {
  for (let d = 0; d + 1 < samples.dayStarts.length; d++) yield positionsOfDays(samples, Int32Array.of(d));
}

function positionsOfDays(samples: Samples, days: Int32Array): Int32Array {
  const starts = samples.dayStarts;
  let length = 0;
  for (const d of days) length += starts[d + 1] - starts[d];
  const positions = new Int32Array(length);
  let at = 0;
  for (const d of days) for (let i = starts[d]; i < starts[d + 1]; i++) positions[at++] = i;
  return positions;
}
