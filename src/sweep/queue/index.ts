export { parseAddress, type RedisAddress, redacted } from './connection.js';
export { type QueueExecutorOptions, queueExecutor } from './executor.js';
export { type Attempt, attemptsAt } from './shared-folder.js';
export { serveQueue, type WorkerOptions } from './worker.js';
