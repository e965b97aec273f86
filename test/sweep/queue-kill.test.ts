import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import {
  bestCheckpoint,
  checkpointFolder,
  isRun,
  latestCheckpoint,
  openRun,
  type SavedCheckpoint,
} from '../../src/run/index.js';
import type { Attempt } from '../../src/sweep/queue/shared-folder.js';
import { startTcts, tcts } from '../cli/train-process.js';
import { describeWithRedis, startRedis } from '../redis.js';
import { temporaryFolder } from '../run/temporary.js';

// Long enough that something can happen to each run, with many checkpoints, most of them within an episode.
const BASE = `problem: {kind: contextual}
strategy: {name: mtl}
training: {episodes: 150, steps: 7}
saving: {everySteps: 20, everySeconds: null}
logging: {everySteps: 10}
threads: 1
`;

const GRID = `base: base.yaml
seeds: 2
groups:
  - name: g
    grid:
      strategy: {mtl: {name: mtl}, learned: {name: learned, hidden: [16]}}
`;

describeWithRedis('a sweep on two workers, of which one is killed, in a Redis that is restarted', () => {
  it.each([
    ['with what it knew', true],
    ['with nothing', false],
  ])(
    '%s, does every run once and ends as one that nothing happened to',
    { timeout: 180_000 },
    async (_, persistent) => {
      const folder = gridFolder();
      const redis = await startRedis({ persistent });
      mkdirSync(join(folder, 'shared'));
      const startWorker = async () => {
        const args = ['worker', '--queue', redis.url, '--runs', 'shared', '--lease', '5', '--cores', '1'];
        const worker = startTcts(folder, ...args);
        onTestFinished(() => void worker.child.kill('SIGKILL'));
        expect(await once(worker.child.stderr, 'data')).toMatchObject([expect.stringMatching(/^listening/)]);
        return worker;
      };
      // Both are there when the first job comes.
      const [doomed, other] = await Promise.all([startWorker(), startWorker()]);
      const sweep = startTcts(
        folder,
        'sweep',
        'grid.yaml',
        '--out',
        'shared',
        '--queue',
        redis.url,
        '--json',
        '--quiet',
      );
      onTestFinished(() => void sweep.child.kill('SIGKILL'));
      const shared = new SharedRuns(join(folder, 'shared'), 'grid');

      const [killedRun] = await shared.until(
        (run) => run.at?.pid === doomed.child.pid && run.step > 0 && run.step < 500,
      );
      doomed.child.kill('SIGKILL');
      expect(await doomed.ended).toMatchObject({ signal: 'SIGKILL' });
      const heir = await startWorker();

      await shared.until((run) => run.finished);
      await shared.until(
        ({ at, step, finished }) => at !== undefined && at.pid !== doomed.child.pid && step > 0 && !finished,
      );
      await redis.kill();
      await sleep(500);
      await redis.start();

      const watching = shared.watch();
      const { code, stdout } = await sweep.ended;
      watching.stop();
      const { runs } = JSON.parse(stdout) as { runs: { name: string; state: string }[] };
      expect(runs.map(({ state }) => state)).toEqual(Array(4).fill('done'));
      expect(code).toBe(0);
      for (const { child } of [other, heir]) child.kill('SIGTERM');
      for (const { code, stderr } of await Promise.all([other.ended, heir.ended])) expect(code, stderr).toBe(0);

      undisturbed ??= undisturbedRuns();
      expect(runsIn(shared.folder)).toEqual(await undisturbed);
      shared.expectUntouchedSinceFinished();
      const attempts = shared.attempts(killedRun.name);
      expect(attempts[0]).toMatchObject({ pid: doomed.child.pid });
      expect(attempts[0]).not.toHaveProperty('outcome');
      expect(attempts.at(-1)).toMatchObject({ outcome: { state: 'done' } });
    },
  );
});

interface RunNow {
  readonly name: string;
  /** The attempt that continues, or whose worker died. */
  readonly at: Attempt | undefined;
  /** Of the newest checkpoint. */
  readonly step: number;
  readonly finished: boolean;
}

/** What can be seen in the shared folder while a sweep continues. */
class SharedRuns {
  readonly folder: string;
  private readonly history: string;
  /** When each run was finished. */
  private readonly finished = new Map<string, number>();

  constructor(shared: string, grid: string) {
    this.folder = join(shared, grid);
    this.history = join(shared, '.queue/attempts');
  }

  /** Resolves with the runs of which something is true, as soon as there is one. */
  async until(condition: (run: RunNow) => boolean): Promise<RunNow[]> {
    for (const began = performance.now(); performance.now() - began < 60_000; await sleep(20)) {
      const found = this.look().filter(condition);
      if (found.length > 0) return found;
    }
    throw new Error(`it does not come to pass: ${JSON.stringify(this.look())}`);
  }

  watch(): { stop(): void } {
    const timer = setInterval(() => this.look(), 50);
    return { stop: () => clearInterval(timer) };
  }

  attempts(name: string): Attempt[] {
    const file = readdirSync(this.history).find((file) => file.startsWith(`grid-${name}-`) && file.endsWith('.json'));
    return file === undefined ? [] : (JSON.parse(readFileSync(join(this.history, file), 'utf8')) as Attempt[]);
  }

  /** Nothing that was done has been done again. */
  expectUntouchedSinceFinished(): void {
    expect(this.finished.size).toBeGreaterThan(0);
    for (const [name, time] of this.finished) expect(this.resultTime(name)).toBe(time);
  }

  private look(): RunNow[] {
    if (!existsSync(this.folder) || !existsSync(this.history)) return [];
    return readdirSync(this.folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => {
        const time = this.resultTime(name);
        if (time !== undefined && !this.finished.has(name)) this.finished.set(name, time);
        const last = this.attempts(name).at(-1);
        const at = last?.outcome === undefined ? last : undefined;
        return { name, at, step: this.step(name), finished: time !== undefined };
      });
  }

  private step(name: string): number {
    const checkpoints = checkpointFolder(join(this.folder, name));
    const files = existsSync(checkpoints) ? readdirSync(checkpoints) : [];
    return Math.max(0, ...files.map((file) => Number(/^step-(\d+)\.safetensors$/.exec(file)?.[1] ?? 0)));
  }

  private resultTime(name: string): number | undefined {
    return statSync(join(this.folder, name, 'result.json'), { throwIfNoEntry: false })?.mtimeMs;
  }
}

let undisturbed: Promise<unknown> | undefined;

/** The same sweep on this machine, without a queue. */
async function undisturbedRuns(): Promise<unknown> {
  const folder = gridFolder();
  const end = await tcts(folder, 'sweep', 'grid.yaml', '--out', 'plain', '--quiet');
  expect(end).toMatchObject({ code: 0, stderr: '' });
  return runsIn(join(folder, 'plain/grid'));
}

function gridFolder(): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'base.yaml'), BASE);
  writeFileSync(join(folder, 'grid.yaml'), GRID);
  return folder;
}

/** All that must be the same of every run of a sweep, bit for bit. */
function runsIn(sweep: string) {
  const names = readdirSync(sweep).filter((name) => isRun(join(sweep, name)));
  return names.sort().map((name) => {
    const run = join(sweep, name);
    const [metrics, result] = ['metrics.jsonl', 'result.json'].map((file) => readFileSync(join(run, file), 'utf8'));
    const checkpoints = checkpointFolder(run);
    const saved = [latestCheckpoint(checkpoints, fail), bestCheckpoint(checkpoints)].map(essence);
    return { name, state: openRun(run).info.state, metrics, result, saved };
  });
}

/** All of a checkpoint but the configuration, which names the folder. */
function essence(checkpoint: SavedCheckpoint | undefined) {
  const { step, tensors, state } = checkpoint!;
  const bytes = [...tensors].map(([name, { data }]) => [
    name,
    Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64'),
  ]);
  return { step, bytes, subject: (state as { subject: unknown }).subject };
}

function fail(sentence: string): never {
  throw new Error(sentence);
}
