import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { writeReport } from '../../src/report/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { makeForecastRun } from './run-folders.js';

/**
 * `probe.json` as `tcts probe` writes it: of two siblings one helps, the other hurts. Half an interval is 0.04, of which
 * two digits are shown: gains have three behind the point.
 */
const PROBE = {
  format: 'tcts probe 1',
  version: '0.1.0',
  configuration: 'small.yaml',
  caption: 'Gain in the validation performance of day-1.',
  plan: { tasks: ['day-1', 'day-2', 'day-3'], main: 0, arms: [], seeds: [1, 2, 3, 4], checkpoints: 1, length: 6 },
  mainGain: 0.5,
  effects: [
    { kind: 'uniform', mean: -0.02, share: -0.04, low: -0.06, high: 0.02, p: 0.4 },
    { kind: 'added', task: 'day-2', mean: 0.12, share: 0.24, low: 0.08, high: 0.16, p: 0.004 },
    { kind: 'added', task: 'day-3', mean: -0.2, share: -0.4, low: -0.24, high: -0.16, p: 0.003 },
  ],
  recommendation: {
    strategy: { name: 'influence' },
    arm: 'main + day-2',
    reason: 'The sibling day-2 helps, but the sibling day-3 hurts.',
    visible: true,
    helps: ['day-2'],
    hurts: ['day-3'],
  },
  expectation: { against: 'main', updates: { mean: 0.8, low: 0.7, high: 0.9 } },
  configured: { strategy: 'learned', adds: 0.01, update: 0.1 },
};

function makeProbe(folder: string, content: unknown = PROBE): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'probe.json'), JSON.stringify(content));
}

test('a report shows the matrix of transfer, its figure and the recommendation of every probe', async () => {
  const folder = temporaryFolder();
  makeForecastRun(join(folder, 'run'), { strategy: 'fixed', seed: 1 });
  makeProbe(join(folder, 'small-probe'));
  const files = await writeReport(folder);
  expect(files.probes).toBe(1);
  const page = readFileSync(files.markdown, 'utf8');
  expect(page).toContain('1 finished run, and 1 probe');
  expect(page).toContain('Probe: small.yaml (small-probe)');
  expect(page).toContain(
    'The sibling day-2 helps, but the sibling day-3 hurts. Recommended: strategy: {name: influence}',
  );
  expect(page).toContain('needs 0.80 times the updates of "main" (0.70 to 0.90): saves 20 %');
  const table = readFileSync(join(files.folder, 'tables/small-probe-transfer-table.md'), 'utf8').split('\n');
  expect(table).toContain('| half day-2, against main alone | +0.120 | +24.0 % | +0.080 to +0.160 | 0.004 | helps |');
  expect(table).toContain('| half day-3, against main alone | −0.200 | −40.0 % | −0.240 to −0.160 | 0.003 | hurts |');
  expect(files.figures).toContain('figures/small-probe-transfer.svg');
  const svg = readFileSync(join(files.folder, 'figures/small-probe-transfer.svg'), 'utf8');
  expect(svg).toContain('What siblings do to day-1 (small.yaml)');
});

test('the folder of a probe alone is reported on, and a probe in a folder of a run as well', async () => {
  const folder = temporaryFolder();
  makeProbe(folder);
  expect(await writeReport(folder)).toMatchObject({ runs: 0, probes: 1 });
  makeForecastRun(join(folder, 'run'), { strategy: 'fixed', seed: 1 });
  makeProbe(join(folder, 'run'));
  expect(await writeReport(join(folder, 'run'))).toMatchObject({ runs: 1, probes: 1 });
});

test('a probe that is not finished, or cannot be read, is listed with the reason', async () => {
  const folder = temporaryFolder();
  makeForecastRun(join(folder, 'run'), { strategy: 'fixed', seed: 1 });
  makeProbe(join(folder, 'torn'), { ...PROBE, effects: 'none' });
  mkdirSync(join(folder, 'begun'));
  writeFileSync(join(folder, 'begun', 'branches.jsonl'), '{}\n');
  const { probes, folder: out } = await writeReport(folder);
  expect(probes).toBe(0);
  const listed = readFileSync(join(out, 'tables', 'files-left-out.md'), 'utf8');
  expect(listed).toMatch(/\| begun \| an unfinished probe/);
  expect(listed).toMatch(/\| torn \| .*effects/);
});
