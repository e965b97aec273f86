import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseHTML } from 'linkedom';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ReportFiles, writeReport } from '../../src/report/index.js';
import { acquireLock } from '../../src/run/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { makeForecast, makeForecastRun, makeOtherRun, makeTranslation, REFERENCES } from './run-folders.js';

const read = (...path: string[]): string => readFileSync(join(...path), 'utf8');

describe('a report on forecasts and translations', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tcts-report-'));
  let files: ReportFiles;
  const page = () => parseHTML(read(files.html)).document;
  const table = (name: string) => read(files.folder, 'tables', `${name}.md`);

  beforeAll(async () => {
    for (const main of [1, 2]) {
      for (const [strategy, gain] of [
        ['fixed', 0],
        ['mtl', 0.01],
        ['learned', 0.02],
      ] as const) {
        for (const seed of [1, 2]) {
          const daily = Array.from({ length: 30 }, (_, d) => (0.1 + gain) / main + 0.001 * seed + 0.05 * Math.sin(d));
          const name = `stock/${strategy}-${main}-s${seed}`;
          makeForecast(join(folder, name), { strategy, seed, main, daily, performance: gain - 1 });
        }
      }
    }
    makeForecast(join(folder, 'stock/ablation'), {
      strategy: 'learned',
      seed: 1,
      daily: new Array(30).fill(0.06),
      performance: -2,
      set: { 'strategy.without': ['loss'] },
    });
    for (const main of [1, 3]) {
      for (const [strategy, bleu] of [
        ['fixed', 20],
        ['best-fixed', 21],
        ['learned', 22],
      ] as const) {
        const outputs = strategy === 'learned' ? REFERENCES : REFERENCES.map((line) => line.replace('the', 'a'));
        const waits = [{ k: main, outputs, bleu: bleu + main }];
        const policies = strategy === 'learned' && main === 3 ? [{ policy: 'adaptive:min=1', bleu: 31.5, AL: 3 }] : [];
        makeTranslation(join(folder, `translate/${strategy}-${main}`), { strategy, seed: 1, main, waits, policies });
      }
    }
    files = await writeReport(folder, { title: 'Tables & <figures>' });
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('has the table of the paper for forecasts: methods in rows, RankIC / MSE of each task', () => {
    // What the sine adds is the same for all methods; seeds differ by .001, and so deviate by .0007 from their mean.
    const [head, , gru, mtl, tcts] = table('csi300-results').split('\n');
    expect(head).toBe('| Method | Task-1 | Task-2 |');
    expect(gru).toMatch(/^\| GRU \| 0\.1\d\d ± 0\.001 \/ 1\.\d{3} ± 0\.001 \|/);
    expect(mtl).toMatch(/^\| MTL \(3 tasks\) \|/);
    expect(tcts).toMatch(/^\| TCTS \(3 tasks\) \| \*\*0\.1\d\d ± 0\.001\*\* \/ \*\*1\.\d{3} ± 0\.001\*\* \|/);
  });

  it('says for each backtest what was held, and at which close it traded', () => {
    const [head, , ...rows] = table('csi300-backtest').trim().split('\n');
    expect(head).toMatch(/^\| Method \| Main task \| Held \| Traded at \|/);
    // Task 1 without a shift begins at the close of the forecast's day, task 2 a day later.
    expect(rows.filter((row) => row.includes('| Task-1 | 50, 5 replaced | t |')).length).toBeGreaterThan(0);
    expect(rows.filter((row) => row.includes('| Task-2 | 50, 5 replaced | open of t + 1 |')).length).toBeGreaterThan(0);
    expect(
      rows.every((row) =>
        /\| Task-1 \| 50, 5 replaced \| t \||\| Task-2 \| 50, 5 replaced \| open of t \+ 1 \|/.test(row),
      ),
    ).toBe(true);
  });

  it('has the table of the paper for translations: waits in rows, methods in columns, k* behind wait-k*', () => {
    expect(table('multi30k-results')).toBe(
      [
        '| k | wait-k | wait-k\\* | TCTS |',
        '| --- | ---: | ---: | ---: |',
        // The best of the synthetic runs is after 30 updates: the third episode, that of wait-3.
        '| 1 | 21.00 | 22.00 / 3 | **23.00** |',
        '| 3 | 23.00 | 24.00 / 3 | **25.00** |',
        '',
      ].join('\n'),
    );
  });

  it('lists what other policies than wait-k gave', () => {
    const [, , ...rows] = table('multi30k-policies').trim().split('\n');
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatch(
      /^\| TCTS \| adaptive:min=1 \| test split, greedy search, early end allowed \| 31\.50 \| 31\.50 \|/,
    );
  });

  it('tests the best method against the baselines', () => {
    const rows = table('csi300-significance').trim().split('\n').slice(2);
    expect(rows.map((row) => row.split(' | ').slice(1, 5))).toEqual([
      ['TCTS (3 tasks)', 'GRU', '+0.0200', '2'],
      ['TCTS (3 tasks)', 'MTL (3 tasks)', '+0.0100', '2'],
      ['TCTS (3 tasks)', 'GRU', '+0.0100', '2'],
      ['TCTS (3 tasks)', 'MTL (3 tasks)', '+0.0050', '2'],
    ]);
    expect(read(files.markdown)).toContain("corrected for its 4 comparisons with Holm's method");
  });

  it('has the training speed without the validations', () => {
    // Ten updates in five seconds, and ten more for the validation.
    expect(table('csi300-speed')).toContain('| GRU | 1 × 1 | 2.00 ± 0.00 |');
    expect(table('csi300-speed')).toContain('| TCTS (3 tasks) | 1 × 1 | 2.00 ± 0.00 (0 %) |');
  });

  it('has the ablation of features', () => {
    const [, , all, without] = table('csi300-features').split('\n');
    expect(all).toMatch(/^\| all \| 0\.1\d\d ± 0\.001 \|/);
    expect(without).toMatch(/^\| − loss \| 0\.060 \(−\d\d\.\d\d %, rank 1\) \| – \|$/);
  });

  it('has every table and figure in all its formats', () => {
    const names = files.figures.filter((name) => name.endsWith('.svg')).map((name) => name.slice(8, -4));
    expect(names).toEqual([
      ...['csi300-rank-ic-task-1', 'csi300-cumulative-return-task-1', 'csi300-quintile-returns-task-1'],
      ...['csi300-rank-ic-task-2', 'csi300-cumulative-return-task-2', 'csi300-quintile-returns-task-2'],
      ...['csi300-task-distribution', 'csi300-learning-curves-1', 'csi300-learning-curves-2'],
      ...['multi30k-bleu-latency', 'multi30k-task-distribution'],
      ...['multi30k-learning-curves-1', 'multi30k-learning-curves-3'],
      ...['scheduling-csi300-task-1-forest', 'scheduling-csi300-task-2-forest', 'multi30k-policies-latency'],
    ]);
    for (const name of names)
      for (const end of ['csv', 'svg', 'png']) expect(files.figures).toContain(`figures/${name}.${end}`);
    for (const name of files.tables.filter((one) => one.endsWith('.csv'))) {
      for (const end of ['md', 'svg', 'png']) expect(files.tables).toContain(name.replace('csv', end));
    }
    for (const name of [...files.tables, ...files.figures]) expect(existsSync(join(files.folder, name))).toBe(true);
  });

  it('is a page that loads nothing, with contents that lead somewhere and files that exist', () => {
    const document = page();
    const html = read(files.html);
    expect(document.querySelectorAll('script, link, img, iframe').length).toBe(0);
    expect(html).not.toMatch(/(?:src|href)="(?:https?:)?\/\//);
    expect(html).not.toMatch(/url\(|@import/);
    const anchors = [...document.querySelectorAll('nav a')].map((a) => a.getAttribute('href')!.slice(1));
    expect(anchors.length).toBeGreaterThan(20);
    expect(anchors.filter((id) => document.getElementById(id) === null)).toEqual([]);
    expect(new Set(anchors).size).toBe(anchors.length);
    for (const a of document.querySelectorAll('.files a')) {
      expect(existsSync(join(files.folder, a.getAttribute('href')!))).toBe(true);
    }
    expect(document.querySelectorAll('.picture > svg').length).toBe(16);
  });

  it('escapes what it is called', () => {
    expect(page().querySelector('h1')!.textContent).toBe('Tables & <figures>');
    expect(read(files.html)).not.toContain('<figures>');
  });

  it('says how the runs were made', () => {
    expect(read(files.markdown)).toContain('13 finished runs with seeds 1, 2');
    expect(read(files.markdown)).toContain('    tcts train a.yaml --set seed=1  # GRU, main task 1; seeds 1, 2');
  });

  it('is the same when made again, and what it no longer has is removed', async () => {
    const before = [files.html, files.markdown, join(files.folder, 'figures/csi300-rank-ic-task-1.svg')].map((file) =>
      read(file),
    );
    writeFileSync(join(files.folder, 'figures', 'mine.txt'), 'kept');
    rmSync(join(folder, 'translate'), { recursive: true });
    const again = await writeReport(folder, { title: 'Tables & <figures>' });
    expect(read(again.folder, 'figures/csi300-rank-ic-task-1.svg')).toBe(before[2]);
    expect(existsSync(join(again.folder, 'figures/multi30k-bleu-latency.svg'))).toBe(false);
    expect(read(again.folder, 'figures', 'mine.txt')).toBe('kept');
  });
});

describe('a report on runs that are not all well', () => {
  it('lists those that run, were stopped or are broken, with the reason, and counts the others', async () => {
    const folder = temporaryFolder();
    makeForecast(join(folder, 'good'), { strategy: 'fixed', seed: 1, daily: [0.1, 0.2, 0.3] });
    makeForecastRun(join(folder, 'running'), { strategy: 'mtl', seed: 1, state: 'running' });
    const lock = acquireLock(join(folder, 'running', 'run.lock'));
    makeForecastRun(join(folder, 'killed'), { strategy: 'mtl', seed: 2, state: 'running' });
    makeForecastRun(join(folder, 'interrupted'), { strategy: 'mtl', seed: 3, state: 'interrupted' });
    makeForecastRun(join(folder, 'failed'), { strategy: 'mtl', seed: 4, state: 'failed' });
    writeFileSync(join(makeForecastRun(join(folder, 'torn'), { strategy: 'mtl', seed: 5 }), 'run.json'), '{"name":');
    writeFileSync(join(makeForecastRun(join(folder, 'yaml'), { strategy: 'mtl', seed: 6 }), 'config.yaml'), 'a: [');
    writeFileSync(
      join(makeForecastRun(join(folder, 'result'), { strategy: 'mtl', seed: 7 }), 'result.json'),
      '{"updates":"x"}',
    );
    mkdirSync(join(makeForecastRun(join(folder, 'scores'), { strategy: 'mtl', seed: 8 }), 'evaluation/test'), {
      recursive: true,
    });
    writeFileSync(join(folder, 'scores/evaluation/test/scores.json'), '{"split":"test"}');
    mkdirSync(join(folder, 'half/checkpoints'), { recursive: true });
    writeFileSync(join(folder, 'half/config.yaml'), '');
    try {
      const files = await writeReport(folder);
      expect(files).toMatchObject({ runs: 1, setAside: 9 });
      const states = read(files.folder, 'tables/runs-set-aside.csv').trim().split('\n').slice(1);
      expect(states.map((line) => line.split(',').slice(0, 2))).toEqual([
        ['failed', 'failed'],
        ['half', 'broken'],
        ['interrupted', 'interrupted'],
        ['killed', 'stopped'],
        ['result', 'broken'],
        ['running', 'running'],
        ['scores', 'broken'],
        ['torn', 'broken'],
        ['yaml', 'broken'],
      ]);
      expect(read(files.markdown)).toContain('killed; it can be resumed');
      expect(read(files.markdown)).toMatch(/result\.json: updates: /);
    } finally {
      lock.release();
    }
  });

  it('leaves out what a torn file would have given, and says so', async () => {
    const folder = temporaryFolder();
    const daily = Array.from({ length: 20 }, (_, d) => 0.1 + 0.01 * d);
    for (const seed of [1, 2]) makeForecast(join(folder, `s${seed}`), { strategy: 'learned', seed, daily });
    writeFileSync(join(folder, 's1/evaluation/test/daily.csv'), 'date,IC,RankIC,zMSE\n2016-01-04,0.1');
    appendFileSync(join(folder, 's1/metrics.jsonl'), '{"episode": 5, broken\n');
    // A last line that is still being written is no fault.
    appendFileSync(join(folder, 's2/metrics.jsonl'), '{"episode": 5,');
    rmSync(join(folder, 's2/timings.jsonl'));
    const files = await writeReport(folder);
    const left = read(files.folder, 'tables/files-left-out.csv');
    expect(left).toContain('daily.csv:2: expected 4 cells, found 2');
    expect(left).toContain('metrics.jsonl:13: the line is not valid JSON');
    expect(left).toContain('timings.jsonl: cannot read it: no such file or folder');
    expect(left.trim().split('\n')).toHaveLength(4);
    expect(files.figures).toContain('figures/csi300-rank-ic-task-1.svg');
  });

  it('says what is missing where runs were only trained', async () => {
    const folder = temporaryFolder();
    makeForecastRun(join(folder, 'a'), { strategy: 'fixed', seed: 1 });
    makeOtherRun(join(folder, 'b'), { strategy: 'mtl', seed: 1 });
    makeTranslation(join(folder, 'c'), { strategy: 'mtl', seed: 1, waits: [] });
    const files = await writeReport(folder, { out: join(folder, 'elsewhere') });
    const markdown = read(folder, 'elsewhere', 'report.md');
    expect(files.runs).toBe(3);
    expect(markdown).toContain('*No results: no run has test figures');
    expect(markdown).toContain('*No BLEU and no latency: no run has been evaluated');
    expect(markdown).toContain('*No ablation of features');
    expect(markdown).toContain('*No distribution of tasks');
    // A problem of another kind has the figures that its runs ended with.
    expect(read(folder, 'elsewhere', 'tables/known-answer-results.md')).toContain('| MTL | 1.0000');
  });

  it('shows schedulers that all do without some feature', async () => {
    const folder = temporaryFolder();
    for (const seed of [1, 2]) {
      makeForecastRun(join(folder, `s${seed}`), { strategy: 'learned', seed, set: { 'strategy.without': ['labels'] } });
    }
    const { figures } = await writeReport(folder);
    expect(figures).toContain('figures/csi300-task-distribution.svg');
    expect(figures).toContain('figures/csi300-learning-curves-1.svg');
  });

  it('does not print passwords of commands', async () => {
    const folder = temporaryFolder();
    makeOtherRun(join(folder, 'a'), { strategy: 'mtl', seed: 1 });
    const file = join(folder, 'a', 'run.json');
    const command = ['node', 'main.js', 'train', 'a.yaml', '--set', 'x=rediss://me:secret@host:1/0', "it's"];
    writeFileSync(file, JSON.stringify({ ...JSON.parse(read(file)), command }));
    const files = await writeReport(folder);
    for (const path of [files.html, files.markdown]) expect(read(path)).not.toContain('secret');
    expect(read(files.markdown)).toContain("x=rediss://…@host:1/0 'it'\\''s'");
  });

  it('takes a single run', async () => {
    const folder = join(temporaryFolder(), 'one');
    makeOtherRun(folder, { strategy: 'mtl', seed: 1 });
    const files = await writeReport(folder);
    expect(files).toMatchObject({ runs: 1, html: join(folder, 'report', 'index.html') });
  });

  it('refuses a folder without runs, and one that is not there', async () => {
    const folder = temporaryFolder();
    await expect(writeReport(folder)).rejects.toThrow('there is no run in the folder');
    await expect(writeReport(join(folder, 'none'))).rejects.toThrow('no such folder, expected one with runs');
    makeOtherRun(join(folder, 'a'), { strategy: 'mtl', seed: 1 });
    await expect(writeReport(join(folder, 'a', 'run.json'))).rejects.toThrow('it is a file, expected a folder');
    await expect(writeReport(folder, { baselines: ['fixde'] })).rejects.toThrow(
      '"fixde" among the runs, expected one of mtl',
    );
  });
});
