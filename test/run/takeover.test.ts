import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { checkpointFolder, openRun } from '../../src/run/index.js';
import { type DrawingRunOptions, startDrawingRun } from './drawing-run.js';
import { temporaryFolder } from './temporary.js';

// A process is frozen for longer than anybody waits for it, another one on another host takes its run over, and the
// first continues: while the second is at work, or when that is done. It is frozen right before a call that changes a
// file, after any look at the lock, so that the very next thing that it does is that change.
const OVERLAPS = 24;
const AT_ONCE = 4;
const total = 12;

test(`a run that is taken over ${OVERLAPS} times from a frozen process ends as one that was never disturbed`, {
  timeout: 120_000,
}, async () => {
  const whole = join(temporaryFolder(), 'run');
  const trace = join(temporaryFolder(), 'trace');
  const undisturbed = await startOn('a', whole, { total }, { TEST_TRACE: trace }).ended;
  expect(undisturbed).toMatchObject({ code: 0, stderr: '' });
  const moments = pick(callsUnderLock(JSON.parse(readFileSync(trace, 'utf8'))), OVERLAPS);
  // In the midst of saves, of lines and of tidying up.
  const kinds = new Set(moments.map(({ call }) => call.split(' ')[0]));
  for (const kind of ['renameSync', 'rmSync', 'writeSync']) expect(kinds).toContain(kind);

  const wanted = essence(whole);
  const overlap = async ({ call, at }: Moment, number: number) => {
    const folder = join(temporaryFolder(), 'run');
    const first = startOn('a', folder, { total }, { TEST_FREEZE_AT: String(at) });
    await untilFrozen(first.child.pid!);
    const second = startOn('b', folder, { total, takeOver: true, pause: 5 });
    if (number % 2 === 0) await new Promise((resolve) => second.child.stdout.once('data', resolve));
    else await second.ended;
    first.child.kill('SIGCONT');
    const [late, heir] = await Promise.all([first.ended, second.ended]);
    const where = `frozen before call ${at}, ${call}`;
    expect(heir, where).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(`finished ${total}\n$`) });
    expect(late, where).toMatchObject({ code: 1, stderr: expect.stringMatching(LOST) });
    expect(essence(folder), where).toEqual(wanted);
  };
  for (let i = 0; i < moments.length; i += AT_ONCE) {
    await Promise.all(moments.slice(i, i + AT_ONCE).map((moment, j) => overlap(moment, i + j)));
  }
});

test('a process whose lock is swept away before it has its name is refused with a sentence, as it came too late', async () => {
  const folder = join(temporaryFolder(), 'run');
  // Right before the link that makes the lock appear; the file that it is a link to has been written.
  const late = startOn('a', folder, { total }, { TEST_FREEZE_AT: '1' });
  await untilFrozen(late.child.pid!);
  expect(await startOn('a', folder, { total }).ended).toMatchObject({ code: 0, stderr: '' });
  late.child.kill('SIGCONT');
  expect(await late.ended).toMatchObject({
    code: 1,
    stderr: `${folder}: another run was just created there: choose another name\n`,
  });
});

/** One sentence. One who was frozen before it had made the run finds that it is there. */
const LOST =
  /^(\S+run\.lock: (process \d+ on host b has taken this folder over|the lock is gone, .*): this process ends and writes nothing more|\S+: another run was just created there: choose another name)\n$/;

interface Moment {
  readonly call: string;
  readonly at: number;
}

/** What the process does from when it has the lock until the run is recorded as finished. */
function callsUnderLock(trace: readonly string[]): Moment[] {
  const calls = trace.map((call, at) => ({ call, at }));
  const locked = calls.findIndex(({ call }) => /^linkSync .*run\.lock$/.test(call));
  const finished = calls.findLastIndex(({ call }) => /^renameSync .*result\.json$/.test(call));
  expect(locked).toBeGreaterThanOrEqual(0);
  return calls.slice(locked + 1, finished + 1);
}

/** Some of a list, evenly spread from the first to the last. */
function pick<T>(all: readonly T[], count: number): T[] {
  return Array.from({ length: count }, (_, i) => all[Math.round((i * (all.length - 1)) / (count - 1))]);
}

const preload = fileURLToPath(new URL('./other-host.mjs', import.meta.url));

function startOn(host: string, folder: string, options: DrawingRunOptions, environment: Record<string, string> = {}) {
  const NODE_OPTIONS = `--import ${preload}`;
  return startDrawingRun(folder, options, undefined, { NODE_OPTIONS, TEST_HOST: host, ...environment });
}

async function untilFrozen(pid: number): Promise<void> {
  // It ends the test if the process has ended.
  while (!/\) T /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))) await sleep(5);
}

/** All of a run that must be the same, bit for bit. Nothing else may be left behind. */
function essence(folder: string) {
  const names = readdirSync(folder).filter((name) => !name.startsWith('events.out.'));
  const checkpoints = readdirSync(checkpointFolder(folder)).map((name) => join(checkpointFolder(folder), name));
  const files = ['config.yaml', 'metrics.jsonl', 'result.json'].map((name) => join(folder, name));
  return {
    names: names.sort(),
    state: openRun(folder).info.state,
    bytes: Object.fromEntries([...checkpoints, ...files].map((file) => [basename(file), readFileSync(file, 'base64')])),
    timed: readFileSync(join(folder, 'timings.jsonl'), 'utf8').split('\n').length,
  };
}
