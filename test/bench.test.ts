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

interface LinesModule {
  readonly HEADER: readonly string[];
  lineOf(run: string, training: object, figures: object, testLoss: number): string;
}

test('the tables of translation are made from lines of evaluations: means over seeds, and corrected differences', async () => {
  const { HEADER, lineOf } = (await import(
    new URL('../bench/translation-lines.mjs', import.meta.url).href
  )) as LinesModule;
  const latency = { AP: 0.6, AL: 2, LAAL: 2.5, DAL: 3, YAAL: null };
  const evaluation = (k: number, bleu: number) => ({
    ...{ k, sacrebleu: bleu, bleu, chrf: 50, lengthRatio: 1, endedEarly: 0 },
    latency: { stacl: latency, simuleval: latency },
  });
  const training = { updates: 2700, loss: 3, seconds: 3600 };
  const lines = [1, 2].flatMap((seed) =>
    [1, 3, 5, 7, 9].flatMap((k) => {
      // The model of wait-3 is the best for wait-1 as well.
      const losses = [1, 3, 5, 7, 9].map((wait) => 3 + Math.abs(Math.max(wait, 3) - k));
      const line = (run: string, bleu: number, loss: number, own: readonly number[] = []) =>
        lineOf(`${run},seed=${seed}`, { ...training, losses: own }, evaluation(k, bleu), loss);
      return [
        line(`wait,main=${k}`, 20 + k + seed, 2.5, losses),
        line('all-waits', 30 + k + seed, 2),
        line(`scheduled,strategy=influence,main=${k}`, 30 + k + seed, 2),
        // Better than MTL by .12 and .14: mean .13, standard error .01, t = 13, p = 2 ∕ π · atan(1 ∕ 13) = .0489; its
        // losses are worse by a tenth of that.
        line(`scheduled,strategy=learned,main=${k}`, 30.1 + k + 1.02 * seed, 2.01 + 0.002 * seed),
      ];
    }),
  );
  const file = join(temporaryFolder(), 'lines.csv');
  writeFileSync(file, `${[HEADER.join(), ...lines].join('\n')}\n`);
  const text = execFileSync(process.execPath, ['bench/translation-results.mjs', file, '--table', 'multi30k'], {
    encoding: 'utf8',
  });
  // Ten seeds of wait-k and as many of TCTS and influence, and two of MTL, an hour each.
  expect(text).toMatch(/^32 of the \d+ runs of the plan, 32\.0 hours/);
  // Nothing is best of two seeds of five.
  expect(text).toContain(
    '| 1 | 3 | 22.50 ± 0.71 (2 seeds) | – | – | 32.50 ± 0.71 (2 seeds) | 32.63 ± 0.72 (2 seeds) |',
  );
  expect(text).toContain(
    '| 1 | 2.5000 ± 0.0000 (2 seeds) | – | – | 2.0000 ± 0.0000 (2 seeds) | 2.0130 ± 0.0014 (2 seeds) |',
  );
  // The interval: ± 12.71 standard errors.
  expect(text).toMatch(
    /\| wait-3 \| TCTS \| MTL \| 2 \| \+0\.13 \(0\.00 to \+0\.26\) \| 0\.049 \|[^|]*\| \+0\.0130 \(\+0\.0003 to \+0\.0257\) \| 0\.049 \|/,
  );
  const same = '0.00 (0.00 to 0.00) | 1.000 | 1.000 | 0.0000 (0.0000 to 0.0000) | 1.000 | 1.000 |';
  expect(text).toContain(`| wait-3 | influence | MTL | 2 | ${same}`);
});
