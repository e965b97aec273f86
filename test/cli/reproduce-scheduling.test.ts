import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { planOf } from '../../src/cli/sweep-run.js';
import { loadGrid, plannedRuns } from '../../src/sweep/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { startTcts, tcts } from './train-process.js';

const path = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url));

it('tcts reproduce scheduling goes on where it was killed, and ends with the report', async () => {
  const folder = temporaryFolder();
  const short = ['reproduce', 'scheduling', '--yes', '--seeds', '201', '--set', 'training.episodes=2', '--cores', '2'];
  const { child, ended } = startTcts(folder, ...short);
  const runs = join(folder, 'runs/scheduling-smoke');
  const first = join(runs, 'known-answer,strategy=fixed,seed=201');
  while (!existsSync(join(first, 'result.json')) && child.exitCode === null) await sleep(50);
  child.kill('SIGKILL');
  expect((await ended).signal).toBe('SIGKILL');
  expect(existsSync(join(runs, 'report'))).toBe(false);
  const finished = statSync(join(first, 'result.json')).mtimeMs;

  const { code, stdout, stderr } = await tcts(folder, ...short);
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('16 runs: 16 done') });
  expect(stderr).toMatch(/known-answer,strategy=fixed,seed=201: already done/);
  expect(stderr).toMatch(/report: .*index\.html/);
  expect(statSync(join(first, 'result.json')).mtimeMs).toBe(finished);
  const tables = readdirSync(join(runs, 'report/tables')).filter((name) => /^scheduling-.*\.md$/.test(name));
  expect(tables).toEqual(['scheduling-contextual.md', 'scheduling-known-answer.md']);
  // Eight arms of the grid, and the best of its two static mixes.
  for (const table of tables) {
    expect(
      readFileSync(join(runs, 'report/tables', table), 'utf8')
        .trim()
        .split('\n'),
    ).toHaveLength(2 + 8 + 1);
  }
}, 300_000);

it('a run of the grid has the test loss of the same problem, arm and seed in bench/scheduling.mjs', async () => {
  const folder = temporaryFolder();
  const ARMS = 'fixed,mtl,learned (paper),influence';
  const { status, stderr } = spawnSync(
    process.execPath,
    [path('bench/scheduling.mjs'), join(folder, 'bench.csv'), 'known-answer', '201-201'],
    { env: { ...process.env, ARMS }, encoding: 'utf8' },
  );
  expect({ status, stderr }).toMatchObject({ status: 0 });
  const bench = readFileSync(join(folder, 'bench.csv'), 'utf8').trim().split('\n').slice(1);
  const losses = new Map(bench.map((line) => [line.split('"')[3], line.split(',')[3]]));
  // Measured once by that script: should both change, the published figures no longer hold.
  expect(losses.get('fixed')).toBe('0.139168');
  expect(losses.get('mtl')).toBe('0.701374');

  const runs = plannedRuns(planOf(loadGrid(path('configs/sweeps/scheduling-small.yaml'), [201]), { data: 'none' }));
  const arms = { fixed: 'fixed', mtl: 'mtl', 'learned (paper)': 'learned-paper', influence: 'influence' };
  for (const [arm, label] of Object.entries(arms)) {
    const { run } = runs.find(({ run: { name } }) => name === `known-answer,strategy=${label},seed=201`)!;
    writeFileSync(join(folder, `${label}.yaml`), run.job.config);
    const { stdout } = await tcts(folder, 'train', `${label}.yaml`, '--set', `name=${label}`, '--json', '--quiet');
    expect({ arm, loss: JSON.parse(stdout).test.loss.toPrecision(6) }).toEqual({ arm, loss: losses.get(arm) });
  }
}, 300_000);
