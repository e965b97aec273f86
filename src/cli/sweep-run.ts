import { dirname } from 'node:path';
import { INTERRUPTED, listenForInterrupt } from '../run/index.js';
import { countRuns, type Executor, localExecutor, type Plan, runSweep, type SweepRecord } from '../sweep/index.js';
import type { QueueFlags } from './queue-flags.js';
import { SweepView } from './sweep-view.js';

export interface SweepRunOptions extends QueueFlags {
  /** Cores of this machine to use; those of the workers of a queue are theirs. */
  readonly cores: number;
  readonly quiet: boolean;
  readonly json: boolean;
}

/** Runs a sweep, shows how it goes, prints what has come of it and sets the exit code. */
export async function sweepRun(plan: Plan, options: SweepRunOptions): Promise<SweepRecord> {
  const { quiet, json } = options;
  const view = new SweepView({ total: countRuns(plan.grid), quiet });
  const ending = new AbortController();
  const interrupt = listenForInterrupt({
    announce: (signal) => {
      view.note(`${signal}: the runs save themselves and stop; once more not to wait for them`);
      ending.abort();
    },
  });
  try {
    const executor = await executorFor(plan, options, view.note.bind(view));
    const record = await runSweep(plan, { executor, signal: ending.signal, onChange: view.change.bind(view) });
    view.clear();
    report(record, plan, json);
    return record;
  } finally {
    view.clear();
    interrupt.dispose();
  }
}

async function executorFor(plan: Plan, options: SweepRunOptions, note: (line: string) => void): Promise<Executor> {
  const { queue, queueName: name, cores } = options;
  if (queue === undefined) return localExecutor({ cores });
  const { queueExecutor } = await import('../sweep/queue/index.js');
  return queueExecutor(queue, { runs: dirname(plan.folder), name, note });
}

function report(record: SweepRecord, { folder }: Plan, json: boolean): void {
  const count = (state: string) => record.runs.filter((run) => run.state === state).length;
  const [failed, stopped] = [count('failed'), count('stopped')];
  if (stopped > 0) process.exitCode = INTERRUPTED;
  else if (failed > 0) process.exitCode = 1;
  if (json) {
    process.stdout.write(`${JSON.stringify({ folder, ...record })}\n`);
    return;
  }
  const choices = record.choices.map(({ step, for: where, chosen }) => {
    const shown = (labels: Readonly<Record<string, string>>) =>
      Object.entries(labels)
        .map((pair) => pair.join('='))
        .join(',');
    const place = Object.keys(where).length === 0 ? '' : ` for ${shown(where)}`;
    return `${step}${place}: ${chosen === null ? 'no candidate finished' : shown(chosen)}`;
  });
  const counts = [`${count('done')} done`, failed > 0 && `${failed} failed`, stopped > 0 && `${stopped} stopped`];
  const failures = record.runs
    .filter(({ state }) => state === 'failed')
    .map(({ name, reason }) => `${name}: ${reason}`);
  const lines = [...choices, ...failures, `${record.runs.length} runs: ${counts.filter(Boolean).join(', ')}`];
  process.stdout.write(`${[...lines, `run folders: ${folder}`].join('\n')}\n`);
}
