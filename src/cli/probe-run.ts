import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { InputError } from '../errors.js';
import { makeFolder, readBytes, writeFileAtomic } from '../files.js';
import { mean } from '../metrics/index.js';
import { createProblem, type TrainConfig } from '../problems/index.js';
import { Random } from '../random.js';
import { csvLines, pngOf } from '../report/files.js';
import {
  EFFECT_COLUMNS,
  effectNotes,
  effectRows,
  expectationNotes,
  type ProbeResult,
  probeFigure,
  recommendedStrategy,
} from '../report/probe.js';
import { requireCompatible, requireSameConfig } from '../run/folder.js';
import {
  acquireLock,
  type ConfigValues,
  formatDuration,
  listenForInterrupt,
  MetricsLog,
  Progress,
  readMetrics,
  toolVersion,
  workersOf,
} from '../run/index.js';
import {
  type Branch,
  branchKey,
  copySnapshot,
  createStrategy,
  expectation,
  gainsBySeed,
  type ProbePlan,
  type ProbePlanOptions,
  type Problem,
  planProbe,
  probeEffects,
  probeSeed,
  recommend,
  totalUpdates,
} from '../schedule/index.js';
import { MAIN } from '../schedule/probe.js';
import { textTable } from '../text-table.js';

export interface ProbeRunOptions extends Omit<ProbePlanOptions, 'budget' | 'seed'> {
  readonly folder: string;
  /** Share of the updates of a training. */
  readonly budget: number;
  readonly quiet: boolean;
  /** Shows lines to the user before the probe begins. */
  readonly say: (line: string) => void;
}

export interface ProbeRun {
  readonly plan: ProbePlan;
  readonly branches: readonly Branch[];
  readonly speed: Speed;
  /** Whether all branches are there; false after an interruption. */
  readonly finished: boolean;
}

/** Seconds of the parts of a training, found in a short trial. */
export interface Speed {
  readonly create: number;
  readonly update: number;
  readonly validation: number;
  /** What the strategy of the configuration adds to an update. */
  readonly strategy: number;
  /** A training as configured. */
  readonly training: number;
  /** Models that the strategy trains one after the other. */
  readonly passes: number;
}

/** Runs the branches that the folder does not have yet. Each is stored as soon as it ends: a kill costs one branch. */
export async function probeRun(config: TrainConfig, options: ProbeRunOptions): Promise<ProbeRun> {
  const { folder, quiet, say } = options;
  makeFolder(folder);
  const lock = acquireLock(join(folder, 'probe.lock'));
  const interrupt = listenForInterrupt({ announce: (signal) => bar?.note(`${signal}: stopping after this update`) });
  let bar: Progress | undefined;
  let first: Problem | undefined;
  try {
    const note = quiet ? undefined : say;
    const began = performance.now();
    first = await makeProblem(config, config.seed, note);
    const create = (performance.now() - began) / 1000;
    const { episodes, steps } = config.training;
    const budget = Math.floor(options.budget * episodes * steps);
    const { seeds, checkpoints, trunk } = options;
    const plan = planProbe(first, { budget, seed: config.seed, seeds, checkpoints, trunk });
    const { log, branches } = openLog(join(folder, BRANCHES), config, plan);
    try {
      const done = new Set(branches.map(branchKey));
      const speed = { create, ...(await trial(first, config)) };
      const perSeed = plan.checkpoints * plan.arms.length;
      const open = plan.seeds.filter((seed) => branches.filter((branch) => branch.seed === seed).length < perSeed);
      const missing = plan.seeds.length * perSeed - branches.length;
      const total = open.length * plan.checkpoints * plan.trunk + missing * plan.length;
      const rest = { seeds: open.length, branches: missing, updates: total };
      if (!quiet) announce({ plan, speed, rest, share: plan.updates / (episodes * steps) }, say);
      bar = new Progress({ total, unit: 'update', quiet, intervalSeconds: config.logging.progressSeconds });
      let [updates, turned] = [0, performance.now()];
      for (const seed of open) {
        const problem: Problem = seed === config.seed && first !== undefined ? first : await makeProblem(config, seed);
        try {
          const random = new Random(seed).fork('probe');
          for await (const { branch } of probeSeed(problem, plan, seed, random, done)) {
            updates++;
            bar.update(updates, { seed });
            if (branch !== undefined) {
              branches.push(branch);
              log.append({ ...branch });
              log.sync();
            }
            // Signals are seen only when the event loop turns.
            if (performance.now() - turned > TURN_INTERVAL) {
              await setImmediate();
              turned = performance.now();
            }
            if (interrupt.signal !== undefined) return { plan, branches, speed, finished: false };
          }
        } finally {
          await problem.close?.();
          if (problem === first) first = undefined;
        }
      }
      return { plan, branches, speed, finished: true };
    } finally {
      log.close();
    }
  } finally {
    bar?.clear();
    await first?.close?.();
    interrupt.dispose();
    lock.release();
  }
}

const BRANCHES = 'branches.jsonl';
const FORMAT = 'tcts probe 1';
/** Milliseconds. */
const TURN_INTERVAL = 50;

/** As a training with this seed would start. */
function makeProblem(config: TrainConfig, seed: number, note?: (line: string) => void): Promise<Problem> {
  const { threads } = config;
  const random = new Random(seed).fork('problem');
  const updates = config.training.episodes * config.training.steps;
  return createProblem(config.problem, {
    random,
    threads,
    workers: workersOf(config),
    device: config.device,
    updates,
    note,
  });
}

/** The log of an earlier probe of the same configuration, cut after its last whole line; or a new one. */
function openLog(path: string, config: TrainConfig, plan: ProbePlan): { log: MetricsLog; branches: Branch[] } {
  // What a probe measures does not depend on the strategy of the configuration.
  const { strategy: _, earlyStopping: __, ...values } = config;
  const head = { format: FORMAT, version: toolVersion, config: values, plan };
  const [found, ...branches] = existsSync(path) ? readMetrics(path) : [];
  if (found === undefined) {
    const log = new MetricsLog(path);
    log.append(head);
    return { log, branches: [] };
  }
  if (found.format !== FORMAT)
    throw new InputError(`it is not the record of a probe (${FORMAT})`, { file: path, line: 1 });
  requireCompatible(String(found.version), path);
  requireSameConfig(found.config as ConfigValues, values, path);
  if (!isDeepStrictEqual(found.plan, JSON.parse(JSON.stringify(plan)))) {
    throw new InputError(
      'it was started with a different budget, seeds, checkpoints or trunk: use the same ones, or another --out',
      {
        file: path,
      },
    );
  }
  const length = readBytes(path).lastIndexOf(NEWLINE) + 1;
  return { log: new MetricsLog(path, length), branches: branches as unknown as Branch[] };
}

const NEWLINE = 10;

/** The speed of a training that is yet to be recorded. */
export function timedTrial(config: TrainConfig): Promise<Speed> {
  return withProblem(config, async (problem, create) => ({ create, ...(await trial(problem, config)) }));
}

/** Seconds of an update. */
export function updateSeconds(config: TrainConfig): Promise<number> {
  return withProblem(config, (problem) => secondsEach(() => updateMain(problem)));
}

async function withProblem<T>(config: TrainConfig, use: (problem: Problem, create: number) => Promise<T>): Promise<T> {
  const began = performance.now();
  const problem = await makeProblem(config, config.seed);
  try {
    return await use(problem, (performance.now() - began) / 1000);
  } finally {
    await problem.close?.();
  }
}

/** An update on the main task. */
async function updateMain(problem: Problem): Promise<void> {
  const batch = await problem.nextBatch();
  const size = problem.sizeOf(batch);
  const tasks = new Int32Array(size).fill(problem.main);
  await problem.train(batch, { tasks, weights: new Float32Array(size).fill(1) });
}

/** Some updates, a validation and some choices of the strategy, after which the problem is restored. */
async function trial(problem: Problem, config: TrainConfig): Promise<Omit<Speed, 'create'>> {
  await problem.settle?.();
  const saved = copySnapshot(problem.capture());
  let validated = 0;
  const validate = async (): Promise<number> => {
    const before = performance.now();
    validated = await problem.validate();
    return (performance.now() - before) / 1000;
  };
  const first = await validate();
  // The first one is slow, which counts for little where it takes long.
  const validation = first < 1 ? await validate() : first;
  const update = await secondsEach(() => updateMain(problem));
  const random = new Random(config.seed).fork('trial');
  const strategy = await createStrategy(config.strategy, problem, random, config.threads);
  try {
    const updates = totalUpdates(config.training, strategy);
    const status = { update: 1, updates, performance: validated, meanPerformance: validated };
    await strategy.beginEpisode?.(status);
    const batch = await problem.nextBatch();
    const choice = await secondsEach(async () => void (await strategy.choose(batch, status)));
    const training = updates * (update + choice) + (updates / config.training.steps) * validation;
    return { update, validation, strategy: choice, training, passes: strategy.passes ?? 1 };
  } finally {
    await strategy.close?.();
    problem.restore(saved);
  }
}

/**
 * Median of up to eleven runs after the slow first one, within three seconds: with the mean, one pause on a
 * shared machine would multiply the result.
 */
async function secondsEach(action: () => Promise<void>): Promise<number> {
  await action();
  const times: number[] = [];
  const end = performance.now() + 3000;
  while (times.length === 0 || (times.length < 11 && performance.now() < end)) {
    const began = performance.now();
    await action();
    times.push((performance.now() - began) / 1000);
  }
  return times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
}

function announce({ plan, speed, rest, share }: Announced, say: (line: string) => void): void {
  const { arms, seeds, checkpoints, trunk, length, updates, tasks, main } = plan;
  const from = checkpoints === 1 ? 'a checkpoint' : `each of ${checkpoints} checkpoints`;
  say(`main task ${tasks[main]}, siblings ${tasks.filter((_, i) => i !== main).join(', ')}`);
  say(
    `${seeds.length} seeds, each with ${plural(arms.length, 'branch', 'branches')} of ${plural(length, 'update')} from ${from}, ${plural(trunk, 'update')} of common training before it (${percent((share * trunk) / updates)} of a training)`,
  );
  if (!plan.leaveOneOut) say('the budget is too small to leave out single tasks: use a larger --budget');
  const validations = rest.branches + rest.seeds * checkpoints;
  const seconds = rest.seeds * speed.create + rest.updates * speed.update + validations * speed.validation;
  const resumed = rest.updates < updates ? ` (${updates - rest.updates} are done)` : '';
  say(
    `${updates} updates${resumed}, ${percent(share)} of a training: about ${formatDuration(seconds)}; the training as configured takes about ${formatDuration(speed.training)}`,
  );
}

interface Announced {
  readonly plan: ProbePlan;
  readonly speed: Speed;
  readonly rest: Rest;
  /** Of a training's updates. */
  readonly share: number;
}

/** What is still to be done. */
interface Rest {
  readonly seeds: number;
  readonly branches: number;
  readonly updates: number;
}

function plural(count: number, one: string, several = `${one}s`): string {
  return `${count} ${count === 1 ? one : several}`;
}

function percent(share: number): string {
  return `${Number((100 * share).toPrecision(2))} %`;
}

/** What the branches say. */
export function resultOf({ plan, branches, speed }: ProbeRun, strategy: string): ProbeResult {
  const effects = probeEffects(branches, plan);
  const recommendation = recommend(effects, plan);
  return {
    plan,
    mainGain: mean(gainsBySeed(branches, plan).get(MAIN)!),
    effects,
    recommendation,
    expectation: expectation(recommendation, branches, plan),
    configured: { strategy, adds: speed.strategy, update: speed.update },
  };
}

/** `probe.json`, and the matrix of transfer as `transfer.svg`, `.png` and `.csv`. */
export function writeProbeResult(folder: string, result: ProbeResult, name: string): void {
  const { caption, svg, data } = probeFigure(result, name, 'transfer');
  writeFileAtomic(join(folder, 'transfer.svg'), svg);
  writeFileAtomic(join(folder, 'transfer.png'), pngOf(svg));
  writeFileAtomic(join(folder, 'transfer.csv'), csvLines(data.columns, data.rows));
  writeFileAtomic(
    join(folder, 'probe.json'),
    `${JSON.stringify({ format: 'tcts probe 1', version: toolVersion, configuration: name, caption, ...result }, null, 2)}\n`,
  );
}

/** Table, answer and expectation as text. */
export function probeText(result: ProbeResult): string {
  return [
    `Gain in the main task's validation performance over a branch, mean of ${result.plan.seeds.length} seeds:`,
    textTable(EFFECT_COLUMNS, effectRows(result)),
    ...effectNotes(result),
    '',
    result.recommendation.reason,
    `recommended: ${recommendedStrategy(result)}`,
    ...expectationNotes(result),
  ].join('\n');
}
