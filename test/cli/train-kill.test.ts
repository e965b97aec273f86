import { existsSync, readFileSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import {
  bestCheckpoint,
  checkpointFolder,
  isRun,
  latestCheckpoint,
  openRun,
  type SavedCheckpoint,
} from '../../src/run/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { startTcts, tcts } from './train-process.js';

const KILLS = 20;

// Checkpoints every 3 updates of episodes of 7: nearly all of them in the middle of an episode.
const CONFIG = `problem: {kind: contextual}
strategy: {name: learned, hidden: [16]}
training: {episodes: 400, steps: 7}
saving: {everySteps: 3, everySeconds: null}
logging: {everySteps: 10}
`;

test(`a training killed ${KILLS} times ends as one that never was`, { timeout: 180_000 }, async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'kill.yaml'), CONFIG);
  const started = performance.now();
  const baseline = startTcts(folder, 'train', 'kill.yaml', '--set', 'name=whole', '--quiet');
  await nthTemporaryFile(checkpointFolder(join(folder, 'runs/whole')), 1);
  const startUp = performance.now() - started;
  expect(await baseline.ended).toMatchObject({ code: 0, stderr: '' });

  const run = join(folder, 'runs/killed');
  const args = ['train', 'kill.yaml', '--set', 'name=killed', '--quiet'];
  const steps: number[] = [];
  for (let kill = 0; kill < KILLS; kill++) {
    const { child, ended } = startTcts(folder, ...args, ...(isRun(run) ? ['--resume'] : []));
    // At any moment, the start included; or when a checkpoint is just being written.
    const moments: Promise<unknown>[] = [
      ended,
      nthTemporaryFile(checkpointFolder(run), 1 + Math.floor(10 * Math.random())),
    ];
    if (kill % 2 === 0) moments.push(sleep(startUp * (0.4 + 0.8 * Math.random())));
    await Promise.race(moments);
    child.kill('SIGKILL');
    expect(await ended).toMatchObject({ signal: 'SIGKILL', stderr: '' });
    if (existsSync(checkpointFolder(run))) steps.push(latestCheckpoint(checkpointFolder(run), fail)?.step ?? 0);
  }
  // The kills came at many different moments of the training.
  expect(new Set(steps).size).toBeGreaterThan(5);
  expect(await tcts(folder, ...args, '--resume')).toMatchObject({ code: 0, stderr: '' });

  const whole = join(folder, 'runs/whole');
  for (const file of ['metrics.jsonl', 'result.json']) {
    expect(readFileSync(join(run, file), 'utf8')).toBe(readFileSync(join(whole, file), 'utf8'));
  }
  expect(essence(latestCheckpoint(checkpointFolder(run), fail))).toEqual(
    essence(latestCheckpoint(checkpointFolder(whole), fail)),
  );
  expect(essence(bestCheckpoint(checkpointFolder(run)))).toEqual(essence(bestCheckpoint(checkpointFolder(whole))));
  expect(openRun(run).info.state).toBe('finished');
});

/** All of a checkpoint that must be the same: parameters, scheduler, optimiser, random numbers, position. */
function essence(checkpoint: SavedCheckpoint | undefined) {
  const { step, tensors, state } = checkpoint!;
  const bytes = [...tensors].map(([name, { data }]) => [
    name,
    Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64'),
  ]);
  return { step, bytes, subject: (state as { subject: unknown }).subject };
}

/** Resolves when the n-th temporary file appears in a folder, which need not be there yet. */
async function nthTemporaryFile(folder: string, n: number): Promise<void> {
  while (!existsSync(folder)) await sleep(5, undefined, { ref: false });
  const seen = new Set<string>();
  const watcher = watch(folder, { persistent: false });
  onTestFinished(() => watcher.close());
  await new Promise<void>((resolve) => {
    watcher.on('change', (_event, name) => {
      if (String(name).endsWith('.tmp')) seen.add(String(name));
      if (seen.size >= n) resolve();
    });
  });
  watcher.close();
}

function fail(sentence: string): never {
  throw new Error(sentence);
}
