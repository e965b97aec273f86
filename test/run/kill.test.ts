import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, watch } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import {
  bestCheckpoint,
  checkpointFolder,
  latestCheckpoint,
  openRun,
  type SavedCheckpoint,
} from '../../src/run/index.js';
import { type DrawingRunOptions, startDrawingRun } from './drawing-run.js';
import { temporaryFolder } from './temporary.js';

const KILLS = 24;

test(`a run that is killed ${KILLS} times ends as one that never was`, { timeout: 120_000 }, async () => {
  const folder = temporaryFolder();
  // Half a megabyte every other step, so that much of the time is spent in writing checkpoints.
  const options: DrawingRunOptions = { total: 500, size: 60_000, pause: 1 };
  const [whole, killed] = [join(folder, 'whole'), join(folder, 'killed')];
  expect(await startDrawingRun(whole, options).ended).toMatchObject({ code: 0, stdout: 'from 0\nfinished 500\n' });

  let halfWritten = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    const { child, ended } = startDrawingRun(killed, options);
    // While the folder is being made; at any moment of the loop; right when a checkpoint is being written; soon after.
    const moment = kill < 3 ? appearance(killed) : kill % 3 === 0 ? once(child.stdout, 'data') : someCheckpoint(killed);
    await Promise.race([ended, moment]);
    if (kill >= 3 && kill % 3 !== 2) await sleep(20 * Math.random());
    child.kill('SIGKILL');
    expect(await ended).toMatchObject({ signal: 'SIGKILL', stderr: '' });
    halfWritten += temporaryFiles(checkpointFolder(killed)).length;
  }
  expect(halfWritten).toBeGreaterThan(0);

  const end = await startDrawingRun(killed, options).ended;
  expect(end).toMatchObject({ code: 0, stderr: '' });
  expect(end.stdout).toMatch(/^from [1-9]\d*\nfinished 500\n$/);

  expect(readFileSync(join(killed, 'metrics.jsonl'))).toEqual(readFileSync(join(whole, 'metrics.jsonl')));
  expect(essence(latestCheckpoint(checkpointFolder(killed), fail))).toEqual(
    essence(latestCheckpoint(checkpointFolder(whole), fail)),
  );
  expect(essence(bestCheckpoint(checkpointFolder(killed)))).toEqual(essence(bestCheckpoint(checkpointFolder(whole))));
  expect(openRun(killed).info.state).toBe('finished');
  expect(temporaryFiles(checkpointFolder(killed))).toEqual([]);
  expect(temporaryFiles(killed)).toEqual([]);
});

/** All of a checkpoint that must be the same; the length of timings.jsonl depends on the clock. */
function essence(checkpoint: SavedCheckpoint | undefined) {
  const { step, tensors, state } = checkpoint!;
  const { session, subject } = state as { session: Record<string, unknown>; subject: unknown };
  const bytes = [...tensors].map(([name, { data }]) => [
    name,
    Buffer.from(data.buffer, data.byteOffset, data.byteLength),
  ]);
  return { step, bytes, subject, session: { ...session, timings: undefined } };
}

async function appearance(path: string): Promise<void> {
  while (!existsSync(path)) await sleep(1);
}

/** Waits until one of the next few checkpoints is being written. */
async function someCheckpoint(run: string): Promise<void> {
  await appearance(checkpointFolder(run));
  const wanted = 1 + Math.floor(7 * Math.random());
  const seen = new Set<string>();
  const watcher = watch(checkpointFolder(run));
  await new Promise<void>((resolve) => {
    watcher.on('change', (_event, name) => {
      if (String(name).endsWith('.tmp')) seen.add(String(name));
      if (seen.size >= wanted) resolve();
    });
  });
  watcher.close();
}

function temporaryFiles(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.tmp')) : [];
}

function fail(sentence: string): never {
  throw new Error(sentence);
}
