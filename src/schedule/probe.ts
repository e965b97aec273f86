import { InputError } from '../errors.js';
import type { Random } from '../random.js';
import type { Assignment, Problem, Task } from './problem.js';
import { copySnapshot } from './snapshots.js';

/** A mix of tasks that a branch trains with. */
export interface Arm {
  /** `main`, `uniform`, `main + T`, `uniform − T`, T being the name of a task. */
  readonly name: string;
  /** Share of each task. */
  readonly distribution: readonly number[];
}

/** What a probe will do. */
export interface ProbePlan {
  readonly tasks: readonly string[];
  /** Index of the main task. */
  readonly main: number;
  readonly arms: readonly Arm[];
  readonly seeds: readonly number[];
  /** Checkpoints of a trunk, from each of which all arms branch off. */
  readonly checkpoints: number;
  /** Updates of the trunk before each of its checkpoints. */
  readonly trunk: number;
  /** Updates of a branch. */
  readonly length: number;
  /** All updates, trunks included. */
  readonly updates: number;
  /** False if the budget was too small for the arms `uniform − T`. */
  readonly leaveOneOut: boolean;
}

/** Size and seeds of a probe. */
export interface ProbePlanOptions {
  /** Updates that the probe may make. */
  readonly budget: number;
  /** The first of the seeds, which follow each other. */
  readonly seed: number;
  /** Default 8, or 6 or 5 for small budgets. */
  readonly seeds?: number;
  /** Checkpoints of a trunk. Default 2, or 1 for small budgets. */
  readonly checkpoints?: number;
  /** Share of the updates spent on the trunks: the larger, the later the stage examined. Default 1/4. */
  readonly trunk?: number;
}

/** A branch that was run. */
export interface Branch {
  readonly seed: number;
  /** From 1. */
  readonly checkpoint: number;
  /** Name of the arm. */
  readonly arm: string;
  /** Main-task validation performance at the checkpoint. */
  readonly start: number;
  /** The same at the end of the branch. */
  readonly end: number;
  /** Time of its updates. */
  readonly seconds: number;
}

/** An update was made, which may have ended a branch. */
export interface ProbeStep {
  readonly branch?: Branch;
}

/** The arms for a set of tasks; arms with equal distributions are merged. */
export function probeArms(tasks: readonly Task[], main: number, leaveOneOut = true): Arm[] {
  const K = tasks.length;
  const siblings = tasks.map((_, i) => i).filter((i) => i !== main);
  const over = (inside: readonly number[]) => tasks.map((_, i) => (inside.includes(i) ? 1 / inside.length : 0));
  const arms = [
    { name: MAIN, distribution: over([main]) },
    { name: UNIFORM, distribution: over(tasks.map((_, i) => i)) },
    ...siblings.map((i) => ({ name: added(tasks[i].name), distribution: over([main, i]) })),
    ...siblings.map((i) => ({
      name: without(tasks[i].name),
      distribution: over(Array.from({ length: K }, (_, j) => j).filter((j) => j !== i)),
    })),
  ].slice(0, leaveOneOut ? undefined : K + 1);
  return arms.filter((arm, i) => arms.findIndex((other) => isSame(arm, other)) === i);
}

export const MAIN = 'main';
export const UNIFORM = 'uniform';
export const added = (task: string) => `main + ${task}`;
export const without = (task: string) => `uniform − ${task}`;

/**
 * Divides the budget into trunks and branches. The number of seeds matters most, since tests are over seeds: on
 * the known-answer problem 8 seeds with branches of 2 updates find more than 5 with 4. A second checkpoint shows another
 * stage of the training; leaving out single tasks changes a mix least. Both are for larger budgets.
 */
export function planProbe(problem: Pick<Problem, 'tasks' | 'main'>, options: ProbePlanOptions): ProbePlan {
  const { tasks, main } = problem;
  const { budget, seed, trunk: part = 1 / 4 } = options;
  if (!(part > 0 && part < 1))
    throw new InputError(`expected a share between 0 and 1, found ${part}`, { key: 'trunk' });
  if (tasks.length < 2) throw new InputError(`a probe compares tasks, but there is only ${tasks[0].name}`);
  const candidates = DESIGNS.map((design) => {
    const { seeds = design.seeds, checkpoints = design.checkpoints } = options;
    const arms = probeArms(tasks, main, design.leaveOneOut);
    const share = Math.floor(budget / seeds / checkpoints);
    const length = Math.floor((share * (1 - part)) / arms.length);
    return { ...design, seeds, checkpoints, arms, length, trunk: share - length * arms.length };
  });
  const chosen = candidates.find(({ length, atLeast }) => length >= atLeast);
  if (chosen === undefined) {
    const { arms, seeds, checkpoints } = candidates.at(-1)!;
    const least = Math.ceil(arms.length / (1 - part)) * checkpoints * seeds;
    throw new InputError(
      `${budget} updates are too few for ${arms.length} branches with ${seeds} seeds, expected at least ${least}`,
      { key: 'budget' },
    );
  }
  const { arms, seeds, checkpoints, length, trunk } = chosen;
  return {
    tasks: tasks.map(({ name }) => name),
    main,
    arms,
    seeds: Array.from({ length: seeds }, (_, i) => seed + i),
    checkpoints,
    trunk,
    length,
    updates: seeds * checkpoints * (trunk + length * arms.length),
    leaveOneOut: arms.length === probeArms(tasks, main).length,
  };
}

/** The preferred design first, each with the shortest branch it needs. */
const DESIGNS = [
  { leaveOneOut: true, checkpoints: 2, seeds: 8, atLeast: 6 },
  { leaveOneOut: true, checkpoints: 1, seeds: 8, atLeast: 3 },
  { leaveOneOut: false, checkpoints: 1, seeds: 8, atLeast: 1 },
  { leaveOneOut: false, checkpoints: 1, seeds: 6, atLeast: 1 },
  { leaveOneOut: false, checkpoints: 1, seeds: 5, atLeast: 1 },
];

/**
 * The branches of one seed that are not `done`, each yielded when it ends. All start from the exact checkpoint,
 * including data position and dropout, and see the same batches. Tasks are drawn alike: one uniform
 * number decides for a sample in all of them, so arms differ only where their distributions do.
 *
 * The trunk gives half of the samples to the main task and spreads the rest over all: with `main` alone the siblings'
 * heads would be untrained at the checkpoints, and with `uniform` the main task's would lag behind; either
 * would decide the comparison in advance.
 */
export async function* probeSeed<Batch>(
  problem: Problem<Batch>,
  plan: ProbePlan,
  seed: number,
  random: Random,
  done: ReadonlySet<string> = new Set(),
): AsyncGenerator<ProbeStep, void, void> {
  const K = plan.tasks.length;
  const half = plan.tasks.map((_, i) => 0.5 / K + (i === plan.main ? 0.5 : 0));
  const draws = random.fork('trunk');
  for (let checkpoint = 1; checkpoint <= plan.checkpoints; checkpoint++) {
    for (let update = 0; update < plan.trunk; update++) {
      await trainOn(problem, half, draws);
      yield {};
    }
    const missing = plan.arms.filter(({ name }) => !done.has(branchKey({ seed, checkpoint, arm: name })));
    if (missing.length === 0) continue;
    const start = await performanceOf(problem, seed);
    await problem.settle?.();
    const saved = copySnapshot(problem.capture());
    for (const { name, distribution } of missing) {
      const own = random.fork(`checkpoint ${checkpoint}`);
      const began = performance.now();
      for (let update = 1; update < plan.length; update++) {
        await trainOn(problem, distribution, own);
        yield {};
      }
      await trainOn(problem, distribution, own);
      const seconds = (performance.now() - began) / 1000;
      const end = await performanceOf(problem, seed);
      problem.restore(copySnapshot(saved));
      yield { branch: { seed, checkpoint, arm: name, start, end, seconds } };
    }
  }

  async function trainOn(on: Problem<Batch>, distribution: readonly number[], source: Random): Promise<void> {
    const batch = await on.nextBatch();
    await on.train(batch, drawMainFirst(distribution, plan.main, on.sizeOf(batch), source));
  }
}

/** Identifies a branch. */
export function branchKey({ seed, checkpoint, arm }: Pick<Branch, 'seed' | 'checkpoint' | 'arm'>): string {
  return `${seed}/${checkpoint}/${arm}`;
}

/** By inversion with one uniform number per sample, the main task first. */
function drawMainFirst(distribution: readonly number[], main: number, size: number, random: Random): Assignment {
  const order = [main, ...distribution.map((_, i) => i).filter((i) => i !== main)].filter((i) => distribution[i] > 0);
  const upTo = order.map((_, place) => order.slice(0, place + 1).reduce((sum, task) => sum + distribution[task], 0));
  const tasks = Int32Array.from({ length: size }, () => {
    const drawn = random.uniform();
    // The last task takes what rounding leaves.
    return order[upTo.findIndex((limit) => drawn < limit)] ?? order.at(-1)!;
  });
  return { tasks, weights: new Float32Array(size).fill(1) };
}

async function performanceOf(problem: Pick<Problem, 'validate'>, seed: number): Promise<number> {
  const performance = await problem.validate();
  if (Number.isFinite(performance)) return performance;
  throw new InputError(`the validation performance with seed ${seed} is ${performance}: training has diverged`);
}

function isSame(a: Arm, b: Arm): boolean {
  return a.distribution.every((share, i) => share === b.distribution[i]);
}
