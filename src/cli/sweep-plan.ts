import {
  type Grid,
  isDone,
  type Plan,
  type PlannedRun,
  type PlanOptions,
  plannedRuns,
  planSweep,
} from '../sweep/index.js';
import { EVALUATED } from './evaluate.js';
import { trainConfigSchema } from './problems.js';
import { textTable } from './text-table.js';

type PlanFlags = Pick<PlanOptions, 'set' | 'data' | 'out'>;

/** What a grid comes to with the problems and verbs of this tool. */
export function planOf(grid: Grid, { set, data, out }: PlanFlags = {}): Plan {
  return planSweep(grid, { schema: trainConfigSchema, set, data, out, evaluated: EVALUATED });
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
