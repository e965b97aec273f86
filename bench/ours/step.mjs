/** What the measured models share: a training step on one fixed batch, with or without the optimiser's update. */

import { Training } from '../../dist/optim/index.js';
import { Random } from '../../dist/random.js';
import { launch, Ranks } from '../../dist/ranks.js';

/**
 * @param {{ model: Function, inputs: object, batch: object }} problem
 * @param {{ workers: number, threads: number, adam?: boolean }} options
 */
export async function trainingSide({ model, inputs, batch }, { workers, threads, adam = false }) {
  const random = new Random('bench');
  const config = adam ? { name: 'adam' } : { name: 'sgd' };
  const ranks = await openRanks();
  const training = await Training.create({ model, inputs, random, optimizer: config, workers, threads, ranks });
  const gradient = new Float32Array(training.arena.grads.length);
  return {
    async step() {
      if (adam) return (await training.step(batch, 1e-4)).loss;
      await training.gradient(batch, gradient);
    },
    async close() {
      await training.close();
      ranks?.close();
    },
  };
}

/** The processes that mpirun has started; undefined if this one is alone. */
export async function openRanks() {
  const job = launch();
  return job === undefined ? undefined : Ranks.open(job);
}

/** Random ids below `vocabulary`, as an i64 value. */
export function randomIds(seed, vocabulary, shape) {
  const random = new Random(seed);
  const size = shape.reduce((a, b) => a * b, 1);
  return { data: BigInt64Array.from({ length: size }, () => BigInt(random.int(vocabulary))), shape };
}
