import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from './run/temporary.js';

interface Case {
  readonly name: string;
  readonly ours: { readonly module: string };
  readonly target: number;
}

test('the bench compares influence with mtl at both sizes of the paper, with the bars of its cost', async () => {
  const folder = new URL('../bench/', import.meta.url);
  const { cases } = (await import(new URL('cases.mjs', folder).href)) as { cases: readonly Case[] };
  const found = cases.filter(({ name }) => name.startsWith('influence-'));
  expect(found.map(({ name, target }) => [name, target])).toEqual([
    ['influence-stocks', 1.12],
    ['influence-translation', 1.2],
  ]);
  for (const { ours } of found) expect(existsSync(new URL(ours.module, folder))).toBe(true);
});

test('the tables of the CSI300 are made from its lines, and put into the page again and again', () => {
  const folder = temporaryFolder();
  const [file, page] = ['runs.csv', 'page.md'].map((name) => join(folder, name));
  const head = 'arm,main,seed,updates,best,validation loss,RankIC,RankICIR,IC,ICIR,MSE,zMSE,seconds,RankIC by day';
  // RankIC by day of seed s: 100, 200, …, 2700 and s times 3 more, in ten-thousandths; the scheduler is better by .05.
  const line = (arm: string, seed: number, gain: number): string => {
    const days = Array.from({ length: 27 }, (_, t) => 100 * (t + 1) + 3 * seed + gain);
    return `${arm},1,${seed},3750,50,0.98,0.1${seed},0.8,0.09,0.75,0.02,1.81,60,${days.join(' ')}`;
  };
  const lines = [1, 2].flatMap((seed) => [line('gru', seed, 0), line('learned 3', seed, 500 + seed)]);
  writeFileSync(file, `${[head, ...lines].join('\n')}\n`);
  writeFileSync(page, 'before\n<!-- tables: begin -->\nan earlier table\n<!-- tables: end -->\nafter\n');
  const write = () => execFileSync(process.execPath, ['bench/csi300.mjs', file, '--write', page]);
  write();
  const once = readFileSync(page, 'utf8');
  write();
  expect(readFileSync(page, 'utf8')).toBe(once);
  expect(once).toMatch(/^before\n<!-- tables: begin -->\n4 of the 210 runs[\s\S]*<!-- tables: end -->\nafter\n$/);
  expect(once).not.toContain('an earlier table');
  expect(once).toMatch(
    /\| GRU \| \*\*0\.1150 ± 0\.0071\*\* \/ \*\*1\.810 ± 0\.000 \(2 seeds\)\*\* \| 0\.049 \/ 1\.903 \|/,
  );
  expect(once).toContain(
    '**Table 3. Differences over seeds and days.** Test part. Difference of the RankIC of the same seeds',
  );
  expect(once).toMatch(/\| TCTS \(5 tasks\) \| – \/ – \|/);
  // Gains of .0501 and .0502 on every day: standard error .00005, t = 1003 with one degree of freedom, p = 2 ∕ (π t) = .0006.
  expect(once).toMatch(/\| TCTS \(3 tasks\) \| GRU \| \+0\.0502 ± 0\.0001 \|[^|]*\| 2 \| \\< 0\.001 \| \\< 0\.001 \|/);
});
