import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { writeReport } from '../../src/report/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { makeForecast, makeTranslation, REFERENCES } from './run-folders.js';

const OWN = { name: 'corpora/multi30k', digest: '0123456789abcdef', own: true };
const OTHER = { name: 'corpora/wmt15', digest: 'fedcba9876543210', own: false };

/** Lays keys over the scores of an evaluation. */
function setScores(evaluation: string, over: object): void {
  const file = join(evaluation, 'scores.json');
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), ...over }));
}

/** Two methods with k = 3 on the same corpus, evaluated on their own data. */
function twoTranslations(folder: string): { mtl: string; tcts: string } {
  const [mtl, tcts] = (['mtl', 'learned'] as const).map((strategy, i) => {
    const waits = [{ k: 3, outputs: REFERENCES, bleu: 20 + i }];
    const run = makeTranslation(join(folder, strategy), { strategy, seed: 1, waits, performance: i - 1 });
    setScores(join(run, 'evaluation/test-wait-3-beam-1'), { data: OWN });
    return run;
  });
  return { mtl, tcts };
}

describe('a report on runs that were evaluated on different data', () => {
  const table = (folder: string, name: string): string =>
    readFileSync(join(folder, 'report/tables', `${name}.md`), 'utf8');
  const markdown = (folder: string): string => readFileSync(join(folder, 'report/report.md'), 'utf8');

  it('compares figures of the same data alone, and lists the others with the name of theirs', async () => {
    const folder = temporaryFolder();
    const { tcts } = twoTranslations(folder);
    const other = join(tcts, 'evaluation/test-wait-3-beam-1-on-wmt15-fedcba98');
    cpSync(join(tcts, 'evaluation/test-wait-3-beam-1'), other, { recursive: true });
    setScores(other, { data: OTHER, bleu: 34, sacrebleu: 34 });
    await writeReport(folder);
    expect(table(folder, 'multi30k-results')).toContain('| 3 | 20.00 | **21.00** |');
    expect(table(folder, 'multi30k-significance')).toContain('+1.000');
    expect(table(folder, 'multi30k-details')).not.toContain('34.00');
    const listed = table(folder, 'multi30k-on-corpora-wmt15').trim().split('\n').slice(2);
    expect(listed).toHaveLength(1);
    expect(listed[0]).toContain(
      '| TCTS | k = 3 | wait-k:3, test split, greedy search, early end allowed | 34.00 | 34.00 |',
    );
    expect(markdown(folder)).toContain('Data behind the figures. test: corpora/multi30k, digest 0123456789abcdef.');
    expect(markdown(folder)).toContain('Data: corpora/wmt15, digest fedcba9876543210.');
  });

  it('has no figure for a method that was evaluated on other data only', async () => {
    const folder = temporaryFolder();
    const { tcts } = twoTranslations(folder);
    setScores(join(tcts, 'evaluation/test-wait-3-beam-1'), { data: OTHER, bleu: 34, sacrebleu: 34 });
    await writeReport(folder);
    expect(table(folder, 'multi30k-results')).toContain('| 3 | 20.00 | – |');
    // Neither with a difference nor with a p-value.
    expect(table(folder, 'multi30k-significance')).not.toMatch(/[+−]\d/);
    expect(table(folder, 'multi30k-on-corpora-wmt15')).toContain('34.00');
  });

  it('does not mix data that have changed under their name, nor those that were not recorded with those that were', async () => {
    for (const data of [{ ...OWN, digest: '1111111111111111' }, undefined]) {
      const folder = temporaryFolder();
      const { mtl } = twoTranslations(folder);
      const again = join(folder, 'mtl-2');
      cpSync(mtl, again, { recursive: true });
      setScores(join(again, 'evaluation/test-wait-3-beam-1'), { data, sacrebleu: 99 });
      await writeReport(folder);
      expect(table(folder, 'multi30k-results')).not.toContain('99');
      expect(markdown(folder)).toContain('99.00');
    }
  });

  it('takes a copy of the own data for the same, and does not count it twice', async () => {
    const folder = temporaryFolder();
    const { tcts } = twoTranslations(folder);
    const copy = join(tcts, 'evaluation/test-wait-3-beam-1-on-copy-01234567');
    cpSync(join(tcts, 'evaluation/test-wait-3-beam-1'), copy, { recursive: true });
    setScores(copy, { data: { ...OWN, name: 'copy', own: false } });
    await writeReport(folder);
    expect(table(folder, 'multi30k-results')).toContain('| 3 | 20.00 | **21.00** |');
    expect(existsSync(join(folder, 'report/tables/multi30k-on-copy.md'))).toBe(false);
  });

  it('does not lose what was measured on the copy alone', async () => {
    const folder = temporaryFolder();
    const { tcts } = twoTranslations(folder);
    const copy = join(tcts, 'evaluation/test-wait-8-beam-1-on-copy-01234567');
    cpSync(join(tcts, 'evaluation/test-wait-3-beam-1'), copy, { recursive: true });
    setScores(copy, { data: { ...OWN, name: 'copy', own: false }, k: 8, policy: 'wait-k:8', sacrebleu: 66 });
    await writeReport(folder);
    expect(table(folder, 'multi30k-details')).toContain('66.00');
  });

  it('keeps forecasts apart, too', async () => {
    const folder = temporaryFolder();
    const daily = (level: number) => Array.from({ length: 20 }, (_, d) => level + 0.01 * Math.sin(d));
    for (const [strategy, level] of [
      ['mtl', 0.1],
      ['learned', 0.2],
    ] as const) {
      const run = makeForecast(join(folder, strategy), { strategy, seed: 1, daily: daily(level), performance: level });
      setScores(join(run, 'evaluation/test'), { data: OWN });
    }
    const us = join(folder, 'learned/evaluation/test-on-us-fedcba98');
    cpSync(join(folder, 'learned/evaluation/test'), us, { recursive: true });
    const scores = { IC: 0.7, ICIR: 1, RankIC: 0.7, RankICIR: 1, MSE: 1, zMSE: 1, days: 20 };
    setScores(us, { data: { ...OTHER, name: 'data/us' }, scores });
    // Were it read first, it would pass for the test results of the run.
    cpSync(us, join(folder, 'learned/evaluation/a-test-on-us'), { recursive: true });
    await writeReport(folder);
    expect(table(folder, 'csi300-results')).toMatch(/TCTS \(3 tasks\) \| \*\*0\.20/);
    expect(table(folder, 'csi300-results')).not.toContain('0.700');
    expect(table(folder, 'csi300-on-data-us')).toContain('| TCTS (3 tasks) | Task-1 | test part | 0.700');
  });
});
