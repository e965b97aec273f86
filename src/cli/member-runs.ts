import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { InputError } from '../errors.js';
import { type TrainConfig, validationOf } from '../problems/index.js';
import {
  coresOf,
  createRun,
  isRun,
  isRunning,
  listenForInterrupt,
  MEMBERS_FILE,
  type Member,
  memberFolder,
  membersJson,
  openRun,
  type RunState,
  readMembers,
  readResult,
  recordState,
  resolvedYaml,
  resumeRun,
  type TrainingResult,
  writeResult,
} from '../run/index.js';
import { writeAsOwner } from '../run/lock.js';
import type { MemberPlan, MemberRun } from '../schedule/index.js';
import { type Executor, type Job, localExecutor, type Outcome, settle } from '../sweep/index.js';
import { SweepView } from './sweep-run.js';
import type { TrainingRun, TrainingRunOptions } from './training-run.js';

/**
 * Trains a run that consists of others: finished ones are kept, interrupted ones resumed, and if more
 * data have arrived, the windows they make possible are added.
 */
export async function memberRuns(
  config: TrainConfig,
  { members, tasks, notes, saveFiles, test }: MemberPlan,
  options: TrainingRunOptions,
): Promise<TrainingRun> {
  const { folder, resume = false, quiet = false } = options;
  if (options.ranks !== undefined) {
    throw new InputError('the members of this run are separate processes: start it without mpirun', {
      key: 'problem',
    });
  }
  if (options.until !== undefined) {
    throw new InputError('a run that consists of other runs cannot be paused, found --until', { key: 'problem' });
  }
  // Notes about the data are not progress: --quiet does not hide them.
  for (const line of notes) process.stderr.write(`${line}\n`);
  if (resume) requireSameMembers(folder, members);
  const run = resume ? resumeRun(folder, { config }) : createRun(folder, { config, seed: config.seed });
  const resumeCommand = `tcts train --resume ${folder}`;
  const write = (name: string, content: string) => writeAsOwner(run.lock, join(folder, name), content);
  let state: RunState = 'failed';
  try {
    write(MEMBERS_FILE, membersJson(members));
    saveFiles(folder);
    const { outcomes, signal } = await trainMembers(config, members, options);
    const failed = outcomes.flatMap((outcome, i) =>
      outcome.state === 'failed' ? [{ ...members[i], ...outcome }] : [],
    );
    const stopped = outcomes.some((outcome) => outcome.state === 'stopped');
    const results = members.map(({ name }) => readResult(memberFolder(folder, name)));
    const step = results.reduce((sum, result) => sum + (result?.updates ?? 0), 0);
    if (failed.length > 0) {
      const [{ name, reason }] = failed;
      throw new InputError(`${failed.length} of ${members.length} members failed, the first is ${name}: ${reason}`, {
        file: folder,
      });
    }
    if (stopped) {
      state = 'interrupted';
      if (!quiet) process.stderr.write(`stopped, everything is saved; to continue: ${resumeCommand}\n`);
      return {
        outcome: { state, step, best: null, stoppedEarly: false, signal, resumeCommand },
        result: undefined,
        tasks,
        members: members.length,
      };
    }
    const best = meanBest(results);
    // Whether a member stopped early is in its own result.
    const stoppedEarly = false;
    const result: TrainingResult = { updates: step, stoppedEarly, best, test: await test(folder, coresOf(config)) };
    writeResult(write, result);
    state = 'finished';
    const score = best && { score: best.performance, step: best.update };
    return {
      outcome: { state, step, best: score, stoppedEarly, signal: undefined, resumeCommand },
      result,
      tasks,
      members: members.length,
    };
  } finally {
    recordState(run, state);
    run.lock.release();
  }
}

/** Validation performance of the whole: the mean of the members' best, so that sweeps can choose by it. */
function meanBest(results: readonly (TrainingResult | undefined)[]): TrainingResult['best'] {
  const found = results.flatMap((result) => result?.best ?? []);
  if (found.length === 0) return null;
  const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
  return {
    performance: mean(found.map(({ performance }) => performance)),
    update: Math.round(mean(found.map(({ update }) => update))),
  };
}

/** Refuses to continue if members have vanished or changed: their models would no longer match the configuration. */
function requireSameMembers(run: string, members: readonly Member[]): void {
  for (const before of readMembers(run) ?? []) {
    const now = members.find(({ name }) => name === before.name);
    if (isDeepStrictEqual(before.window, now?.window && { ...now.window }) && before.seed === now?.seed) continue;
    throw new InputError(
      `the data no longer make the window of its member ${before.name}: do they begin on another day, or end earlier?`,
      { file: run },
    );
  }
}

/** Trains what is left of the members, in parallel as far as there are cores; one that fails does not stop the others. */
async function trainMembers(
  config: TrainConfig,
  members: readonly MemberRun[],
  options: TrainingRunOptions,
): Promise<{ readonly outcomes: readonly Outcome[]; readonly signal: NodeJS.Signals | undefined }> {
  const { folder, quiet } = options;
  const validation = () => validationOf(config.problem);
  const view = new SweepView({ total: members.length, quiet, validation });
  const executor = await executorOf(options, config, view.note.bind(view));
  const ending = new AbortController();
  const interrupt = listenForInterrupt({
    announce: (signal) => {
      view.note(`${signal}: the runs save themselves and stop; once more not to wait for them`);
      ending.abort();
    },
  });
  let closed: Promise<void> | undefined;
  const close = () => {
    closed ??= executor.close();
    return closed;
  };
  ending.signal.addEventListener('abort', close, { once: true });
  try {
    const ends = new Map<string, Promise<Outcome>>();
    for (const member of members) {
      const record = { name: member.name, group: 'members', labels: {}, seed: member.seed, candidate: false };
      const start = async (): Promise<Outcome> => {
        const before = member.startsFrom === undefined ? undefined : await ends.get(member.startsFrom);
        if (before !== undefined && before.state !== 'done') {
          const reason = `the member that it starts from, ${member.startsFrom}, failed`;
          return before.state === 'stopped' ? before : { state: 'failed', reason };
        }
        if (options.queue === undefined) await released(memberFolder(folder, member.name));
        const job = jobOf(config, member, folder);
        return settle(job, executor, ending.signal, (progress) =>
          view.change({ ...record, state: 'running' }, progress),
        );
      };
      view.change({ ...record, state: 'waiting' });
      const end = start().then((outcome) => {
        view.change({ ...record, ...outcome });
        return outcome;
      });
      ends.set(member.name, end);
    }
    return { outcomes: await Promise.all(ends.values()), signal: interrupt.signal };
  } finally {
    await close();
    view.clear();
    interrupt.dispose();
  }
}

/** A member whose parent was killed saves its state and ends; it gets time for that. */
async function released(member: string): Promise<void> {
  for (let waited = 0; isRunning(member) && waited < PATIENCE; waited += LOOK) await sleep(LOOK);
}

const PATIENCE = 30_000;
const LOOK = 100;

async function executorOf(
  { folder, cores, executor, queue, queueName: name }: TrainingRunOptions,
  config: TrainConfig,
  note: (line: string) => void,
): Promise<Executor> {
  if (executor !== undefined) return executor;
  if (queue === undefined) return localExecutor({ cores: cores ?? coresOf(config) });
  const { queueExecutor } = await import('../sweep/queue/executor.js');
  return queueExecutor(queue, { runs: dirname(folder), name, note });
}

function jobOf(config: TrainConfig, member: MemberRun, run: string): Job {
  const folder = memberFolder(run, member.name);
  const { name: _, out: __, ...common } = config;
  const problem = { ...(member.problem as object), ...startOf(member, run, folder) };
  const own = { ...common, seed: member.seed, problem };
  return { name: member.name, folder, config: resolvedYaml(own), after: [], cores: coresOf(config) };
}

/** An existing member keeps the path it was started with, regardless of the current folder. */
function startOf({ startsFrom }: MemberRun, run: string, folder: string): { readonly warmStart?: unknown } {
  if (startsFrom === undefined) return {};
  const { warmStart = memberFolder(run, startsFrom) } = isRun(folder)
    ? (openRun(folder).config.problem as { warmStart?: unknown })
    : {};
  return { warmStart };
}
