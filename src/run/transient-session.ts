import { setImmediate } from 'node:timers/promises';
import type { Snapshot } from './checkpoint.js';
import { EarlyStopping, type EarlyStoppingOptions } from './early-stopping.js';
import type { LogRecord } from './metrics-log.js';
import type { Resumable, Session } from './session.js';

export interface TransientSession extends Session {
  /** What was logged. */
  readonly records: readonly LogRecord[];
  /** The state at the best score. */
  readonly bestSnapshot: Snapshot | undefined;
}

/** A session without a folder: for a library call, or a test, that needs no files and cannot be resumed. */
export function transientSession(subject: Resumable, options: EarlyStoppingOptions): TransientSession {
  const stopping = new EarlyStopping(options);
  const records: LogRecord[] = [];
  let done = 0;
  let bestSnapshot: Snapshot | undefined;
  return {
    records,
    stopRequested: false,
    get step() {
      return done;
    },
    get shouldStop() {
      return stopping.stop;
    },
    get bestSoFar() {
      return stopping.best;
    },
    get bestSnapshot() {
      return bestSnapshot;
    },
    log: (step, record) => {
      records.push({ step, ...record });
    },
    progress: () => {},
    note: () => {},
    best: (step, score) => {
      const isBest = stopping.update(step, score);
      if (isBest) bestSnapshot = copy(subject.capture());
      return isBest;
    },
    maybeSave: async (step) => {
      done = step;
      await setImmediate();
    },
  };
}

/** What is captured may be a view of parameters that training goes on to change. */
function copy({ tensors, state }: Snapshot): Snapshot {
  const copies = [...tensors].map(([name, tensor]) => [name, { ...tensor, data: tensor.data.slice() }] as const);
  return { tensors: new Map(copies), state: structuredClone(state) };
}
