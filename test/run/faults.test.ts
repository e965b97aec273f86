import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { checkpointFolder, latestCheckpoint, openRun } from '../../src/run/index.js';
import { type DrawingRunOptions, startDrawingRun } from './drawing-run.js';
import { temporaryFolder } from './temporary.js';

test('Ctrl-C saves, says how to continue, and the run then ends as one that was not stopped', async () => {
  const folder = temporaryFolder();
  const [whole, stopped] = [join(folder, 'whole'), join(folder, 'stopped')];
  const options: DrawingRunOptions = { total: 60, everySteps: null };
  await startDrawingRun(whole, options).ended;
  const slow = startDrawingRun(stopped, { ...options, pause: 20 });
  slow.child.stdout.once('data', () => setTimeout(() => slow.child.kill('SIGINT'), 100));
  const end = await slow.ended;
  expect(end.stdout).toMatch(/^from 0\ninterrupted \d+\n$/);
  expect(end.stderr).toMatch(
    /^SIGINT: saving after this step; .*\nstopped after step \d+, .* to continue: tcts train --resume /,
  );
  const rest = await startDrawingRun(stopped, options).ended;
  expect(rest.stdout).toMatch(/^from [1-9]\d*\nfinished 60\n$/);
  expect(readFileSync(join(stopped, 'metrics.jsonl'))).toEqual(readFileSync(join(whole, 'metrics.jsonl')));
});

test('a second Ctrl-C, some time after the first, ends the process at once and leaves no lock', async () => {
  const folder = join(temporaryFolder(), 'run');
  const { child, ended } = startDrawingRun(folder, { total: 10, pause: 3000 });
  child.stdout.once('data', () => {
    child.kill('SIGINT');
    setTimeout(() => child.kill('SIGINT'), 600);
  });
  expect((await ended).code).toBe(130);
  expect(readdirSync(folder)).not.toContain('run.lock');
});

test('a second process on the folder is refused and does no harm', async () => {
  const folder = join(temporaryFolder(), 'run');
  const first = startDrawingRun(folder, { total: 40, pause: 150 });
  await new Promise((resolve) => first.child.stdout.once('data', resolve));
  const second = await startDrawingRun(folder, { total: 40 }).ended;
  expect(second).toMatchObject({ code: 1, stdout: '' });
  expect(second.stderr).toMatch(
    new RegExp(`^\\S+run.lock: process ${first.child.pid} on host \\S+ is using this folder\n$`),
  );
  expect(await first.ended).toMatchObject({ code: 0, stdout: 'from 0\nfinished 40\n' });
});

test('a file that cannot grow ends the run with a sentence, and the checkpoint before stays good', async () => {
  const folder = temporaryFolder();
  // Files may grow to so many blocks of 512 bytes; one of the logs reaches it, as after 300 lines it would be longer.
  const options: DrawingRunOptions = { total: 300, size: 10, everySteps: 20 };
  const limit = (command: string[]) => ['sh', '-c', 'ulimit -f 16; trap "" XFSZ; exec "$@"', 'sh', ...command];
  const end = await startDrawingRun(join(folder, 'run'), options, limit).ended;
  expect(end.code).toBe(1);
  expect(end.stderr).toMatch(/jsonl: cannot write it: it is larger than the file system allows\n$/);
  await expectGoodAndResumable(join(folder, 'run'), options);
});

test('a disk that runs full ends the run with a sentence; with room it goes on', async (context) => {
  const disk = temporaryDisk();
  if (disk === undefined) return context.skip('no file system can be mounted here');
  const folder = join(disk, 'run');
  const ballast = join(disk, 'ballast');
  const options = { total: 60, size: 8000 };
  // 64 kB a checkpoint: of 264 kB, four (two generations, the best, and the one being written) take more than is left.
  writeFileSync(ballast, Buffer.alloc(120 * 1024));
  const end = await startDrawingRun(folder, options).ended;
  expect(end.code).toBe(1);
  expect(end.stderr).toMatch(/cannot write it: the disk is full\n$/);
  expect(readdirSync(checkpointFolder(folder)).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  rmSync(ballast);
  await expectGoodAndResumable(folder, options);
});

async function expectGoodAndResumable(folder: string, options: DrawingRunOptions): Promise<void> {
  const saved = latestCheckpoint(checkpointFolder(folder), (warning) => {
    throw new Error(warning);
  });
  expect(saved?.step).toBeGreaterThan(0);
  const rest = await startDrawingRun(folder, options).ended;
  expect(rest).toMatchObject({ code: 0, stdout: `from ${saved?.step}\nfinished ${options.total}\n` });
  expect(openRun(folder).info.state).toBe('finished');
}

/** A file system of 384 kB in memory, where this process may mount one. */
function temporaryDisk(): string | undefined {
  const folder = temporaryFolder();
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=384k', 'none', folder]).status !== 0) return undefined;
  onTestFinished(() => void spawnSync('umount', [folder]));
  return folder;
}
