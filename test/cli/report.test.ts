import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeForecast, makeForecastRun } from '../report/run-folders.js';
import { temporaryFolder } from '../run/temporary.js';
import { tcts } from './train-process.js';

describe('tcts report', () => {
  it('writes a report and says where', async () => {
    const folder = temporaryFolder();
    makeForecast(join(folder, 'runs/a'), { strategy: 'fixed', seed: 1, daily: [0.1, 0.2, 0.3] });
    makeForecastRun(join(folder, 'runs/b'), { strategy: 'mtl', seed: 1, state: 'interrupted' });
    const { code, stdout } = await tcts(folder, 'report', 'runs');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^1 finished run, 1 more not counted \(the report says why\): \d+ tables and \d+ figures\n/);
    expect(stdout).toContain('report: runs/report/index.html\n');
    expect(existsSync(join(folder, 'runs/report/index.html'))).toBe(true);

    const json = await tcts(folder, 'report', 'runs', '--out', 'r', '--baseline', 'fixed', '--title', 'T', '--json');
    const files = JSON.parse(json.stdout);
    expect(files).toMatchObject({ folder: 'r', html: 'r/index.html', markdown: 'r/report.md', runs: 1, setAside: 1 });
    expect(files.tables).toContain('tables/csi300-results.csv');
  });

  it('says in one sentence what is wrong', async () => {
    const folder = temporaryFolder();
    const { code, stderr } = await tcts(folder, 'report', 'runs');
    expect(code).toBe(1);
    expect(stderr).toBe('tcts: runs: no such folder, expected one with runs\n');
  });
});
