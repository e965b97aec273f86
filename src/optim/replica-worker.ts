import { parentPort, workerData } from 'node:worker_threads';
import { Arena } from './arena.js';
import { answerTasks, floatsOver, Replica, type ShardTask, type WorkerSetup } from './shards.js';

/**
 * Entry of a worker thread: answers the shards it is sent with their outputs. The runtime does not take shared memory, so
 * parameters and gradients pass through an arena of the worker's own.
 */
const { executable, parameters, dtype, sharedValues, sharedGrads } = workerData as WorkerSetup;
const arena = new Arena(parameters, { dtype });
const replica = await Replica.create(executable, arena, 1);
answerTasks(parentPort!, async (tasks: readonly ShardTask[]) => {
  arena.values.set(floatsOver(sharedValues, dtype) as never);
  const outputs = await replica.run(tasks);
  floatsOver(sharedGrads, dtype).set(arena.grads as never);
  return outputs;
});
