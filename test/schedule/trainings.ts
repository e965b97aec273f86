import { Random } from '../../src/random.js';
import type { Snapshot } from '../../src/run/index.js';
import {
  algorithm1,
  contextual,
  createStrategy,
  type EpisodeRecord,
  type Extent,
  knownAnswer,
  type LinearProblem,
  type StrategyConfig,
  strategySchema,
  type Trainee,
  trainee,
} from '../../src/schedule/index.js';

type Batch = ReturnType<LinearProblem['nextBatch']>;

/** A strategy's configuration, its defaults filled in as when it is read from a file. */
export function strategyConfig(given: { name: string } & Record<string, unknown>): StrategyConfig {
  return strategySchema.parse(given);
}

export const PROBLEMS = { knownAnswer, contextual };

/** A synthetic problem and a strategy, both of one seed. */
export async function start(
  config: StrategyConfig,
  seed: number,
  problem: keyof typeof PROBLEMS = 'knownAnswer',
): Promise<Trainee<Batch>> {
  const random = new Random(seed);
  const made = PROBLEMS[problem](random.fork('problem'));
  return trainee(made, await createStrategy(config, made, random.fork('strategy')));
}

/** Goes on with a training for this many updates, or to its end. */
export async function advance(
  { problem, strategy, course }: Trainee<Batch>,
  extent: Extent,
  updates = Number.POSITIVE_INFINITY,
): Promise<EpisodeRecord[]> {
  const records: EpisodeRecord[] = [];
  let made = 0;
  for await (const { episode } of algorithm1(problem, strategy, extent, course)) {
    if (episode !== undefined) records.push(episode);
    if (++made === updates) break;
  }
  return records;
}

/** A snapshot after a passage through bytes and JSON, as a checkpoint's. */
export function stored({ tensors, state }: Snapshot): Snapshot {
  const copies = [...tensors].map(([name, tensor]) => [name, { ...tensor, data: tensor.data.slice() }] as const);
  return { tensors: new Map(copies), state: JSON.parse(JSON.stringify(state)) };
}

/** All bits of a snapshot, to be compared. */
export function bits({ tensors, state }: Snapshot) {
  const arrays = [...tensors].map(([name, { data }]) => [
    name,
    Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64'),
  ]);
  return { arrays, state: JSON.parse(JSON.stringify(state)) };
}
