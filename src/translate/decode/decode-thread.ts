import { parentPort, workerData } from 'node:worker_threads';
import { answerTasks } from '../../task-thread.js';
import type { DecodeSetup, DecodeTask } from './decode-threads.js';
import { Translator } from './translator.js';

/** Entry point of a thread of `DecodeThreads`. */
const { run, options, more } = workerData as DecodeSetup;
const translator = await Translator.open(run, options, more);
answerTasks(parentPort!, ({ sources, policy, options }: DecodeTask) =>
  translator.translate(sources, translator.policy(policy), options),
);
