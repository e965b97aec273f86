import { parentPort, workerData } from 'node:worker_threads';
import { answerTasks } from '../task-thread.js';
import { Session } from '../tensor/index.js';
import { Arena } from './arena.js';
import { type ForwardSetup, type ForwardTask, parameterFeeds } from './inference.js';
import { floatsOver, Replica, type ReplicaSetup, type ShardTask } from './shards.js';

/**
 * Entry point of a worker thread. With memory for gradients it answers shards with their outputs; without it
 * runs a program forward. The runtime does not accept shared memory, so parameters and gradients pass through an arena of
 * the worker.
 */
const setup = workerData as ReplicaSetup | ForwardSetup;
const { executable, parameters, dtype, sharedValues } = setup;
const arena = new Arena(parameters, { dtype });
const readParameters = (): void => arena.values.set(floatsOver(sharedValues, dtype) as never);

if ('sharedGrads' in setup) await answerShards(setup);
else await answerForward(setup);

async function answerShards({ sharedGrads }: ReplicaSetup): Promise<void> {
  const replica = await Replica.create(executable, arena, 1);
  answerTasks(parentPort!, async (tasks: readonly ShardTask[]) => {
    readParameters();
    const outputs = await replica.run(tasks);
    floatsOver(sharedGrads, dtype).set(arena.grads as never);
    return outputs;
  });
}

async function answerForward({ names }: ForwardSetup): Promise<void> {
  const session = await Session.create(executable, { threads: 1 });
  let seen = -1;
  answerTasks(parentPort!, ({ feeds, version }: ForwardTask) => {
    if (version !== seen) readParameters();
    seen = version;
    return session.run({ ...feeds, ...parameterFeeds(arena, names) });
  });
}
