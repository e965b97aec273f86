import { parentPort, workerData } from 'node:worker_threads';
import { Session } from '../tensor/index.js';
import { Arena } from './arena.js';
import { type ForwardTask, type HelperSetup, parameterFeeds } from './inference.js';
import { answerTasks, floatsOver } from './shards.js';

/** Entry of a worker thread: runs a program forward with the parameters that it finds in the shared memory. */
const { executable, parameters, names, dtype, sharedValues } = workerData as HelperSetup;
const arena = new Arena(parameters, { dtype });
const session = await Session.create(executable, { threads: 1 });
let seen = -1;
answerTasks(parentPort!, ({ feeds, version }: ForwardTask) => {
  if (version !== seen) arena.values.set(floatsOver(sharedValues, dtype) as never);
  seen = version;
  return session.run({ ...feeds, ...parameterFeeds(arena, names) });
});
