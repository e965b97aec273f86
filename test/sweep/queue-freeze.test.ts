import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished, vi } from 'vitest';
import { checkpointFolder, isRun, lockHolder, openRun, readCheckpoint, readMetrics } from '../../src/run/index.js';
import { startTcts, startTctsBy, tcts } from '../cli/train-process.js';
import { describeWithRedis, startRedis } from '../redis.js';
import { temporaryFolder } from '../run/temporary.js';

// Long enough that both workers can be frozen in turn, with so many checkpoints that it is often in the midst of one.
const BASE = `problem: {kind: contextual}
strategy: {name: mtl}
training: {episodes: 2000, steps: 7}
saving: {everySteps: 20, everySeconds: null}
logging: {everySteps: 10}
threads: 1
`;
const GRID = 'base: base.yaml\nseeds: 2\ngroups: [{name: g}]\n';

describeWithRedis('two workers on two hosts, each frozen in turn for longer than its lease', () => {
  it('come back without harm to the runs that the other has taken over', { timeout: 300_000 }, async () => {
    const folder = gridFolder();
    mkdirSync(join(folder, 'shared'));
    const { url } = await startRedis();
    const a = await startWorker('a', folder, url);
    const sweep = startTcts(folder, 'sweep', 'grid.yaml', '--out', 'shared', '--queue', url, '--json', '--quiet');
    onTestFinished(() => void sweep.child.kill('SIGKILL'));
    const runs = ['g,seed=1', 'g,seed=2'].map((name) => join(folder, 'shared/grid', name));

    const ofA = await underWay(runs, 'a');
    const b = await startWorker('b', folder, url);
    freeze(a.pid, ...ofA);
    const ofB = await underWay(runs, 'b');
    // The runs first, so that they act before their worker can end them.
    await goOn(...ofA);
    await goOn(a.pid);
    freeze(b.pid, ...ofB);
    await underWay(runs, 'a');
    await goOn(...ofB);
    await goOn(b.pid);

    const { code, stdout, stderr } = await sweep.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout).runs).toMatchObject([{ state: 'done' }, { state: 'done' }]);
    for (const { child } of [a, b]) child.kill('SIGTERM');
    for (const { code, stderr } of await Promise.all([a.ended, b.ended])) expect(code, stderr).toBe(0);

    const plain = gridFolder();
    expect(await tcts(plain, 'sweep', 'grid.yaml', '--out', 'shared', '--quiet')).toMatchObject({
      code: 0,
      stderr: '',
    });
    for (const run of runs) {
      expect(essence(run)).toEqual(essence(join(plain, 'shared/grid', basename(run))));
      const steps = readMetrics(join(run, 'metrics.jsonl')).map(({ step, episode }) => [step, episode !== undefined]);
      expect(new Set(steps.map(String)).size).toBe(steps.length);
    }
  });
});

async function startWorker(host: string, folder: string, url: string) {
  const preload = fileURLToPath(new URL('../run/other-host.mjs', import.meta.url));
  const launcher = ['env', `NODE_OPTIONS=--import ${preload}`, `TEST_HOST=${host}`];
  const args = ['worker', '--queue', url, '--runs', 'shared', '--lease', '2', '--cores', '2'];
  const { child, ended } = startTctsBy(launcher, folder, ...args);
  // A process that is frozen is killed all the same.
  onTestFinished(() => void child.kill('SIGKILL'));
  expect(await once(child.stderr, 'data')).toMatchObject([expect.stringMatching(/^listening/)]);
  return { child, ended, pid: child.pid! };
}

/** Waits until all runs are being trained on a host and have logged something there; the numbers of the processes. */
async function underWay(runs: readonly string[], host: string): Promise<number[]> {
  const before = runs.map(logged);
  return vi.waitFor(
    () =>
      runs.map((run, i) => {
        const holder = lockHolder(join(run, 'run.lock'));
        // Of another host, as this one knows it, it cannot be seen whether it lives.
        expect(holder).toMatchObject({ host });
        expect(logged(run)).not.toEqual(before[i]);
        return holder!.pid;
      }),
    { timeout: 90_000, interval: 50 },
  );
}

/** Each owner has its own log, so that its file changes even where its length does not. */
function logged(run: string): [number, number] {
  const file = join(run, 'metrics.jsonl');
  if (!existsSync(file)) return [0, 0];
  const { ino, size } = statSync(file);
  return [ino, size];
}

function freeze(...pids: readonly number[]): void {
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  onTestFinished(() => {
    for (const pid of pids) if (existsSync(`/proc/${pid}`)) process.kill(pid, 'SIGKILL');
  });
}

/** Continues processes; a run, which is not ours to wait for, is given the time to notice. */
async function goOn(...pids: readonly number[]): Promise<void> {
  for (const pid of pids) process.kill(pid, 'SIGCONT');
  await new Promise((resolve) => setTimeout(resolve, 500));
}

function gridFolder(): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'base.yaml'), BASE);
  writeFileSync(join(folder, 'grid.yaml'), GRID);
  return folder;
}

/**
 * All of a run that must be the same, bit for bit; names of files included, so that nothing is left behind. The
 * configuration in a checkpoint names the folder.
 */
function essence(run: string) {
  expect(isRun(run)).toBe(true);
  const checkpoints = checkpointFolder(run);
  const files = ['metrics.jsonl', 'result.json'].map((name) => join(run, name));
  return {
    state: openRun(run).info.state,
    names: readdirSync(run).filter((name) => !name.startsWith('events.')),
    checkpoints: readdirSync(checkpoints).map((name) => {
      const { step, tensors, state } = readCheckpoint(join(checkpoints, name));
      const { config: _, ...rest } = state as { config: unknown };
      return { name, step, tensors, rest };
    }),
    files: files.map((file) => readFileSync(file, 'utf8')),
  };
}
