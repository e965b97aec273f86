export { parseAddress, type RedisAddress, redacted } from './address.js';
export { type Attempt, attemptsAt } from './attempts.js';
export { type QueueExecutorOptions, queueExecutor } from './executor.js';
export { serveQueue, type WorkerOptions } from './worker.js';
