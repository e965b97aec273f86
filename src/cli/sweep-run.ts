import { dirname } from 'node:path';
import { INTERRUPTED, listenForInterrupt } from '../run/index.js';
import {
  countRuns,
  type Executor,
  type Grid,
  isDone,
  localExecutor,
  type Plan,
  type PlannedRun,
  type PlanOptions,
  plannedRuns,
  planSweep,
  runSweep,
  type SweepRecord,
} from '../sweep/index.js';
import { textTable } from '../text-table.js';
import type { QueueFlags } from './flags.js';
import { kindOf, type TrainConfig, trainConfigSchema, validationOf } from './problems.js';
import { requireFixedSizes } from './sizing.js';
import { SweepView } from './sweep-view.js';
import { nextLines } from './terminal.js';

type PlanFlags = Pick<PlanOptions, 'set' | 'data' | 'out'>;

/** What a grid comes to with the problems and verbs of this tool; within `withModules`, unless no module is named. */
export function planOf(grid: Grid, { set, data, out }: PlanFlags = {}): Plan {
  const evaluated = (problem: { readonly kind: string }) => kindOf(problem)?.evaluate !== undefined;
  const plan = planSweep(grid, { schema: trainConfigSchema, set, data, out, evaluated });
  for (const { run } of plannedRuns(plan)) requireFixedSizes(run.config as TrainConfig, 'a sweep');
  return plan;
}

/** A plan for programs, and for people. */
export function describePlan(plan: Plan) {
  const runs = plannedRuns(plan).map(({ run, candidate }) => ({
    name: run.name,
    state: stateOf(run),
    cores: run.job.cores,
    updates: run.config.training.episodes * run.config.training.steps,
    after: run.job.after.map((verb) => verb.join(' ')),
    candidate,
  }));
  const steps = laterSteps(plan);
  const rows = runs.map(({ name, state, cores, updates, after, candidate }) => [
    name,
    state,
    String(cores),
    String(updates),
    candidate ? '(candidate)' : after.join('; '),
  ]);
  const table = textTable(['run', 'state', 'cores', 'updates', 'then'], rows);
  return {
    json: { folder: plan.folder, runs, steps },
    text: [table, ...steps, `run folders: ${plan.folder}`].join('\n'),
  };
}

function stateOf({ job }: PlannedRun): 'to do' | 'done' {
  return isDone(job) ? 'done' : 'to do';
}

/** What can be begun only when other runs have ended, in words. */
function laterSteps({ groups, waitKStar }: Plan): string[] {
  const selecting = groups
    .filter(({ settings }) => settings[0].variants.length > 1)
    .map(
      ({ name, settings, seeds, selectSeeds }) =>
        `${name}: of ${settings[0].variants.length} candidates for each of ${settings.length} settings, the best in ` +
        `validation with seed ${selectSeeds.join(', ')} is run with ${seeds.length} seeds`,
    );
  const filled = groups.flatMap(({ name, atBestWait, warmStart }) => [
    ...(atBestWait === undefined ? [] : [`${name}: ${atBestWait} is the k* of the main task`]),
    ...(warmStart === undefined
      ? []
      : [`${name}: each run starts from that of ${warmStart} with its main task and seed`]),
  ]);
  const star = waitKStar && [
    `wait-k*: for k = ${waitKStar.for.join(', ')}, the run of ${waitKStar.among} with the lowest loss on ${waitKStar.split}`,
  ];
  return [...selecting, ...(star ?? []), ...filled];
}

export interface SweepRunOptions extends QueueFlags {
  /** Cores of this machine to use; those of the workers of a queue are theirs. */
  readonly cores: number;
  readonly quiet: boolean;
  readonly json: boolean;
}

/** Runs a sweep, shows how it goes, prints what has come of it and sets the exit code. */
export async function sweepRun(plan: Plan, options: SweepRunOptions): Promise<SweepRecord> {
  const { quiet, json } = options;
  const problems = new Map(plannedRuns(plan).map(({ run }) => [run.group, run.config.problem]));
  const validation = (run: string) => validationOf(problems.get(run.split(',', 1)[0]) ?? {});
  const view = new SweepView({ total: countRuns(plan.grid), quiet, validation });
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
  const choices = record.choices.map(({ step, for: where, chosen, looks }) => {
    const shown = (labels: Readonly<Record<string, string>>) =>
      Object.entries(labels)
        .map((pair) => pair.join('='))
        .join(',');
    const place = Object.keys(where).length === 0 ? '' : ` for ${shown(where)}`;
    const seen = looks && ` (of ${looks.configurations}, by ${looks.scores} validation scores)`;
    return `${step}${place}: ${chosen === null ? 'no candidate finished' : `${shown(chosen)}${seen ?? ''}`}`;
  });
  const counts = [`${count('done')} done`, failed > 0 && `${failed} failed`, stopped > 0 && `${stopped} stopped`];
  const failures = record.runs
    .filter(({ state }) => state === 'failed')
    .map(({ name, reason }) => `${name}: ${reason}`);
  const lines = [...choices, ...failures, `${record.runs.length} runs: ${counts.filter(Boolean).join(', ')}`];
  const next = failed + stopped > 0 ? [] : [nextLines([`tcts report ${folder}`])];
  process.stdout.write(`${[...lines, `run folders: ${folder}`, ...next].join('\n')}\n`);
}
