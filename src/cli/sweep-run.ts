import { dirname } from 'node:path';
import { kindOf, type TrainConfig, trainConfigSchema, validationOf } from '../problems/index.js';
import { formatDuration, INTERRUPTED, listenForInterrupt, type ProgressStream } from '../run/index.js';
import { rungsOf } from '../sweep/choices.js';
import {
  countRuns,
  type Executor,
  type Grid,
  isDone,
  type JobProgress,
  localExecutor,
  type Plan,
  type PlannedGroup,
  type PlannedRun,
  type PlanOptions,
  plannedRuns,
  planSweep,
  type RunRecord,
  runSweep,
  type SweepRecord,
} from '../sweep/index.js';
import { formatFigure, textTable } from '../text-table.js';
import type { QueueFlags } from './flags.js';
import { requireFixedSizes } from './sizing.js';
import { nextLines } from './terminal.js';

type PlanFlags = Pick<PlanOptions, 'set' | 'data' | 'out'>;

/** What a grid comes to with the problems and verbs of this tool; within `withModules`, unless no module is named. */
export function planOf(grid: Grid, { set, data, out }: PlanFlags = {}): Plan {
  const evaluated = (problem: { readonly kind: string }) => kindOf(problem)?.evaluate !== undefined;
  const isSeveralRuns = (problem: { readonly kind: string }) =>
    kindOf(problem)?.isSeveralRuns?.(problem as never) === true;
  const plan = planSweep(grid, { schema: trainConfigSchema, set, data, out, evaluated, isSeveralRuns });
  for (const { run } of plannedRuns(plan)) requireFixedSizes(run.config as TrainConfig, 'a sweep');
  return plan;
}

/** A plan for programs, and for display. A candidate of a halving has the updates of the first round, which all make. */
export function describePlan(plan: Plan) {
  const halvings = new Map(plan.groups.map((group) => [group.name, halvingOf(group)]));
  const runs = plannedRuns(plan).map(({ run, candidate }) => ({
    name: run.name,
    state: stateOf(run),
    cores: run.job.cores,
    updates: halvings.get(run.group)?.rounds[0].updates ?? updatesOf(run),
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

function updatesOf({ config }: PlannedRun): number {
  return config.training.episodes * config.training.steps;
}

interface Halving {
  /** Candidates that take part in each round, and the updates that they have made when it ends. */
  readonly rounds: readonly { readonly candidates: number; readonly updates: number }[];
  /** Updates of all rounds and of the one that is left, which is trained to its end. */
  readonly total: number;
  /** The same if all candidates were trained to their end. */
  readonly instead: number;
}

/** What successive halving comes to for one setting and one seed of a group; undefined: it does not choose so. */
function halvingOf({ halving, settings, selectSeeds }: PlannedGroup): Halving | undefined {
  const { variants } = settings[0];
  if (halving === undefined || variants.length < 2) return undefined;
  const run = variants[0].run(selectSeeds[0]);
  const { episodes, steps } = run.config.training;
  const rungs = rungsOf(variants.length, episodes, halving.factor, halving.episodes);
  const rounds = rungs.map((rung, i) => ({
    candidates: i === 0 ? variants.length : rungs[i - 1].keep,
    updates: rung.episodes * steps,
  }));
  const all = [...rounds, { candidates: 1, updates: updatesOf(run) }];
  const total = all.reduce((sum, { candidates, updates }, i) => {
    return sum + candidates * (updates - (all[i - 1]?.updates ?? 0));
  }, 0);
  return { rounds, total, instead: variants.length * updatesOf(run) };
}

/** Steps that can start only when other runs have ended, as text. */
function laterSteps({ groups, waitKStar }: Plan): string[] {
  const selecting = groups
    .filter(({ settings }) => settings[0].variants.length > 1)
    .flatMap((group) => {
      const { name, settings, seeds, selectSeeds } = group;
      const choice =
        `${name}: of ${settings[0].variants.length} candidates for each of ${settings.length} settings, the best in ` +
        `validation with seed ${selectSeeds.join(', ')} is run with ${seeds.length} seeds`;
      const halving = halvingOf(group);
      if (halving === undefined) return [choice];
      const rounds = halving.rounds.map(
        ({ candidates, updates }) => `${candidates} candidates until update ${updates}`,
      );
      const cost = `${halving.total} updates a setting and seed instead of ${halving.instead}`;
      return [choice, `${name}: by halving: ${rounds.join(', ')}, then the best to its end: ${cost}`];
    });
  const filled = groups.flatMap(({ name, atBestWait, warmStart }) => [
    ...(atBestWait === undefined ? [] : [`${name}: ${atBestWait} is the k* of the main task`]),
    ...(warmStart === undefined
      ? []
      : [`${name}: each run starts from that of ${warmStart} with its seed and, where both have one, its main task`]),
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
  const { queueExecutor } = await import('../sweep/queue/executor.js');
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

export interface SweepViewOptions {
  /** Runs that there will be. */
  readonly total: number;
  /** Show nothing. Default false. */
  readonly quiet?: boolean;
  /** What the validation of a run measures. Default: its performance. */
  readonly validation?: (run: string) => { readonly name: string; readonly sign: 1 | -1 };
  /** Default standard error. */
  readonly stream?: ProgressStream;
  /** A clock in milliseconds. */
  readonly now?: () => number;
}

interface Running {
  readonly since: number;
  progress: JobProgress;
}

/** The runs of a sweep in progress: a table that is redrawn on a terminal, a line for each run that ends elsewhere. */
export class SweepView {
  private readonly total: number;
  private readonly quiet: boolean;
  private readonly validation: Required<SweepViewOptions>['validation'];
  private readonly stream: ProgressStream;
  private readonly now: () => number;
  private readonly began: number;
  private readonly states = new Map<string, RunRecord['state']>();
  private readonly running = new Map<string, Running>();
  /** Best validation performance of each run, as far as it was seen. */
  private readonly best = new Map<string, number>();
  /** Runs that took time, from which the rest is estimated. */
  private worked = 0;
  private drawnLines = 0;
  private nextDraw = 0;

  constructor(options: SweepViewOptions) {
    const { total, quiet = false, stream = process.stderr, now = () => performance.now() } = options;
    this.validation = options.validation ?? (() => ({ name: '', sign: 1 }));
    this.total = total;
    this.quiet = quiet;
    this.stream = stream;
    this.now = now;
    this.began = now();
  }

  change(run: RunRecord, progress?: JobProgress): void {
    const before = this.states.get(run.name);
    this.states.set(run.name, run.state);
    if (run.state === 'running') {
      const known = this.running.get(run.name);
      const shown = progress ?? { step: 0, steps: undefined };
      if (known === undefined) this.running.set(run.name, { since: this.now(), progress: shown });
      else known.progress = shown;
      if (shown.best !== undefined) this.best.set(run.name, shown.best);
      if (before !== 'running' && !this.stream.isTTY) this.line(`started ${run.name}`);
    } else {
      const was = this.running.get(run.name);
      this.running.delete(run.name);
      if (was !== undefined && run.state === 'done') this.worked++;
      if (run.state !== 'waiting') this.line(this.endOf(run, was));
    }
    this.draw();
  }

  /** A line for the user, above the table. */
  note(text: string): void {
    this.line(text);
    this.draw();
  }

  /** Removes the table. */
  clear(): void {
    if (this.drawnLines > 0) this.stream.write(`\x1b[${this.drawnLines}A\r\x1b[J`);
    this.drawnLines = 0;
  }

  private endOf({ name, state, reason }: RunRecord, was: Running | undefined): string {
    const words = { done: 'done    ', failed: 'failed  ', stopped: 'stopped ' }[state as 'done' | 'failed' | 'stopped'];
    const best = this.best.get(name);
    const details = [
      reason,
      state === 'done' && was === undefined && 'already done',
      best !== undefined && `validation ${this.measured(name, best, true)}`,
      was !== undefined && formatDuration((this.now() - was.since) / 1000),
    ].filter(Boolean);
    return `${words}${name}${details.length === 0 ? '' : `: ${details.join(', ')}`}`;
  }

  private measured(run: string, best: number, named = false): string {
    const { name, sign } = this.validation(run);
    return `${named && name !== '' ? `${name} ` : ''}${formatFigure(sign * best)}`;
  }

  private line(text: string): void {
    if (this.quiet) return;
    this.clear();
    this.nextDraw = 0;
    this.stream.write(`${text}\n`);
  }

  private draw(): void {
    if (this.quiet || !this.stream.isTTY || this.now() < this.nextDraw) return;
    this.nextDraw = this.now() + REDRAW_INTERVAL;
    const rows = [...this.running].slice(0, MOST_ROWS).map(([name, { since, progress }]) => {
      const { step, steps, best } = progress;
      const share = steps === undefined ? '' : `${Math.floor((100 * step) / steps)} %`;
      const time = formatDuration((this.now() - since) / 1000);
      return [name, String(step), share, best === undefined ? '–' : this.measured(name, best), time];
    });
    const table = textTable(['run', 'update', '', 'validation', 'time'], rows);
    const width = Math.max(20, (this.stream.columns || 80) - 1);
    const lines = [...table.split('\n'), this.summary()].map((line) => [...line].slice(0, width).join(''));
    this.clear();
    this.stream.write(`${lines.join('\n')}\n`);
    this.drawnLines = lines.length;
  }

  private summary(): string {
    const count = (state: RunRecord['state']) => [...this.states.values()].filter((other) => other === state).length;
    const [done, failed] = [count('done'), count('failed')];
    const left = Math.max(0, this.total - done - failed);
    const parts = [`${done} of ${this.total} done`, failed > 0 && `${failed} failed`, `${this.running.size} running`];
    if (this.worked > 0 && left > 0) {
      const seconds = ((this.now() - this.began) / 1000 / this.worked) * left;
      parts.push(`about ${formatDuration(seconds)} left`);
    }
    return parts.filter(Boolean).join(', ');
  }
}

const REDRAW_INTERVAL = 200;

/** Rows of the table: a sweep on a queue may have many runs at work. */
const MOST_ROWS = 20;
