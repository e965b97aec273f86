import { type GradientAccess, scatteredPieces } from '../schedule/index.js';
import { type Batch, type BatchIterator, collate } from './corpus/batches.js';
import type { PairedSequences } from './corpus/corpus.js';
import { batchesInOrder } from './loss-evaluation.js';

/** The parts that gradients for schedulers are made from. */
export interface RewardGradientsOptions {
  /** Length of a gradient. */
  readonly size: number;
  readonly main: number;
  /** What validation gradients are taken from. */
  readonly pairs: PairedSequences;
  /** Most target tokens in a batch of them. */
  readonly tokens: number;
  /** Writes ∇θ of the mean loss of the batches with every pair on one task. */
  readonly gradient: (batches: readonly Batch[], task: number, out: Float32Array) => Promise<void>;
}

/** Gradients of tasks on training batches, and of the main task on one batch of validation pairs after the other. */
export class RewardGradients implements GradientAccess<readonly Batch[]> {
  /** Which batch the next validation gradient is taken from; part of the state of a problem. */
  turn = 0;
  private batches: BatchIterator | undefined;

  constructor(private readonly options: RewardGradientsOptions) {}

  get size(): number {
    return this.options.size;
  }

  ofTask(batches: readonly Batch[], task: number, out: Float32Array): Promise<void> {
    return this.options.gradient(batches, task, out);
  }

  ofValidation(out: Float32Array): Promise<void> {
    const { pairs, tokens, main, gradient } = this.options;
    this.batches ??= batchesInOrder(pairs, tokens);
    return gradient([this.batches.at(this.turn++ % this.batches.count)], main, out);
  }
}

/** Reward pairs in pieces of half a training batch, each spread over all of them: the next measurement has another one. */
export function rewardPieces(reward: PairedSequences, tokens: number) {
  const all = reward.target.lengths.reduce((sum, length) => sum + length, 0);
  const pieces = scatteredPieces(reward.count, (2 * all) / tokens);
  return {
    count: pieces.length,
    batchesOf: (piece: number): readonly Batch[] => [collate(reward, pieces[piece], { split: 'valid' })],
  };
}
