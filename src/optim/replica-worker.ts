import { parentPort, workerData } from 'node:worker_threads';
import { Replica, type ReplicaSetup, type ShardTask } from './replica.js';

/** Entry of a worker thread: answers each shard it is sent with the shard's outputs, or with the error's message. */
const port = parentPort!;
const replica = await Replica.create(workerData as ReplicaSetup);
port.postMessage('ready');
port.on('message', (task: ShardTask) => {
  replica.run(task).then(
    (outputs) => port.postMessage({ outputs }),
    (error: unknown) => port.postMessage({ error: error instanceof Error ? error.message : String(error) }),
  );
});
