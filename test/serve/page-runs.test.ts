import { appendFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createRun } from '../../src/run/index.js';
import { startTcts } from '../cli/train-process.js';
import { openPage } from './browser.js';
import { forecastScores, latencyScores, translationScores } from './evaluations.js';
import { describePage, POLL } from './page-server.js';

const HTML = '<img src=x onerror=alert(1)>';

describePage('the runs on the page', (served) => {
  it('shows runs while they train, and a message for those that cannot be read', async () => {
    const run = createRun(join(served.root, `run ${HTML.replace('/', '')}`), {
      config: { seed: 1, problem: { kind: 'known-answer' }, strategy: { name: 'learned' } },
      seed: 1,
      command: ['tcts'],
    });
    const episode = (e: number) =>
      `${JSON.stringify({ step: 10 * e, episode: e, performance: -1 / e, reward: 0.1, loss: 1, distribution: { a: 0.5, b: 0.5 } })}\n`;
    writeFileSync(join(run.path, 'metrics.jsonl'), episode(1) + episode(2));
    mkdirSync(join(served.root, 'broken'));
    writeFileSync(join(served.root, 'broken', 'run.json'), '{');
    const { page, faults } = await openPage(served.browser, `${served.server.url}/#runs`);
    await page.getByText('20 updates').waitFor();
    expect(await page.locator('.run-list .name').allInnerTexts()).toContain(`run ${HTML}`);
    expect(await page.locator('.run-list .state.unreadable').count()).toBe(1);
    // The run that trains is chosen by itself: two tasks, two episodes.
    await page.locator('.cell').nth(3).waitFor();
    appendFileSync(join(run.path, 'metrics.jsonl'), episode(3));
    await page.locator('.cell').nth(5).waitFor();
    await page.getByRole('checkbox', { name: 'broken' }).check();
    await page.getByText('expected the description of a run').nth(1).waitFor();
    run.lock.release();
    rmSync(join(served.root, 'broken'), { recursive: true });
    await page.getByRole('checkbox', { name: 'broken' }).waitFor({ state: 'detached' });
    expect(faults.filter((fault) => !fault.includes('404'))).toEqual([]);
    await page.close();
  });

  it('draws figures of different data in charts of their own, which name the data', async () => {
    const evaluation = (name: string, content: object) => {
      const folder = join(served.root, 'toy/evaluation', name);
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, 'scores.json'), JSON.stringify(content));
    };
    const point = (AL: number) => ({ bleu: 20 + AL, latency: { stacl: latencyScores(AL, 0.5), simuleval: null } });
    const own = { name: 'corpora/own', digest: '1'.repeat(16), own: true };
    const other = { name: 'corpora/other', digest: '2'.repeat(16), own: false };
    for (const k of [1, 3]) {
      evaluation(`test-wait-${k}-beam-1`, translationScores({ k, data: own, ...point(k) }));
      evaluation(`test-wait-${k}-beam-1-on-other`, translationScores({ k, data: other, ...point(k + 9) }));
    }
    evaluation('test', forecastScores({ data: own, scores: { IC: 0.1 } }));
    evaluation('test-on-other', forecastScores({ data: other, scores: { IC: 0.9 } }));
    const { page, faults } = await openPage(served.browser, `${served.server.url}/#runs`);
    await page.getByRole('checkbox', { name: 'toy' }).check();
    await page.getByRole('heading', { name: 'BLEU against average lagging' }).nth(1).waitFor();
    expect(await page.getByRole('heading', { name: 'BLEU against average lagging' }).allInnerTexts()).toEqual([
      'BLEU against average lagging: test of corpora/own',
      'BLEU against average lagging: test of corpora/other',
    ]);
    expect(await page.locator('figure.chart', { hasText: 'BLEU against' }).locator('polyline').count()).toBe(2);
    expect(await page.getByRole('heading', { name: 'Forecast scores' }).allInnerTexts()).toEqual([
      'Forecast scores: test of corpora/own',
      'Forecast scores: test of corpora/other',
    ]);
    rmSync(join(served.root, 'toy/evaluation'), { recursive: true });
    expect(faults).toEqual([]);
    await page.close();
  });

  it('finds runs, groups those of a sweep, and says how far they are, and when one stops', async () => {
    const make = (name: string) =>
      createRun(join(served.root, name), {
        config: { problem: { kind: 'series' }, strategy: { name: 'mtl' }, training: { episodes: 10, steps: 10 } },
        seed: 1,
        command: ['tcts'],
      });
    const runs = ['grid/one', 'grid/two'].map(make);
    writeFileSync(join(runs[0].path, 'metrics.jsonl'), '{"step":20,"loss":2.5}\n{"step":40,"loss":1.5}\n');
    // 20 updates in 10 seconds; 60 are left.
    writeFileSync(join(runs[0].path, 'timings.jsonl'), '{"step":20,"seconds":5}\n{"step":40,"seconds":15}\n');
    const { page } = await openPage(served.browser, `${served.server.url}/#runs?run=grid/one`);
    await page.getByText('40 % · 30 s left').waitFor();
    expect(await page.locator('.run-list summary').allInnerTexts()).toEqual(['grid 2 runs, 2 training']);
    // A point on the chart is read by pointer and by key.
    const chart = page.locator('figure', { hasText: 'Training loss' });
    await chart.locator('svg').press('ArrowRight');
    expect(await chart.locator('.readout').innerText()).toBe('update 20: 2.50');
    await chart.locator('svg').press('ArrowRight');
    expect(await chart.locator('.readout').innerText()).toBe('update 40: 1.50');
    await chart.locator('svg').hover({ position: { x: 60, y: 60 } });
    expect(await chart.locator('.readout').innerText()).toBe('update 20: 2.50');
    await page.getByRole('searchbox').fill('series two');
    await expect.poll(() => page.locator('.run-list .name').allInnerTexts(), POLL).toEqual(['two']);
    await page.getByRole('searchbox').fill('');
    const info = join(runs[0].path, 'run.json');
    writeFileSync(info, readFileSync(info, 'utf8').replace('"running"', '"interrupted"'));
    await page.getByText('one was stopped at update 40.').waitFor();
    for (const run of runs) run.lock.release();
    rmSync(join(served.root, 'grid'), { recursive: true });
    await page.close();
  });

  it('offers a model that was trained meanwhile, without being loaded again', async () => {
    const { page } = await openPage(served.browser, served.server.url);
    await page.getByRole('textbox').waitFor();
    cpSync(join(served.root, 'toy'), join(served.root, 'newer'), { recursive: true });
    await expect.poll(() => page.locator('option', { hasText: 'newer' }).count(), POLL).toBe(1);
    rmSync(join(served.root, 'newer'), { recursive: true });
    await page.close();
  });

  it('shows the first figures within 3 s of the first update, and says when a run is stopped from its terminal', async () => {
    // An update takes long, and a line of the log is written every hundred updates.
    const slow = ['training.episodes=1', 'training.steps=400', 'problem.batch.tokens=6000', 'problem.data.pairs=3000'];
    const set = [...slow, 'name=slow'].flatMap((one) => ['--set', one]);
    const { child, ended } = startTcts(
      served.root,
      'train',
      'verb-final',
      '--strategy',
      'mtl',
      '--set',
      'out=.',
      ...set,
    );
    const [info, log] = ['run.json', 'metrics.jsonl'].map((name) => join(served.root, 'slow', name));
    while (!existsSync(info)) await sleep(20);
    const { page } = await openPage(served.browser, `${served.server.url}/#runs?run=slow`);
    while (!existsSync(log) || statSync(log).size === 0) await sleep(20);
    const first = performance.now();
    await page.locator('figure', { hasText: 'Training loss' }).waitFor();
    expect(performance.now() - first).toBeLessThan(3000);
    expect(await page.getByRole('checkbox', { checked: true }).count()).toBe(1);
    expect(await page.getByRole('checkbox', { name: 'slow' }).isChecked()).toBe(true);
    await page.getByText(/\d % · .* left/).waitFor();
    child.kill('SIGINT');
    await ended;
    await page.getByText(/^slow was stopped at update \d+\.$/).waitFor();
    expect(await page.locator('.state.interrupted').innerText()).toBe('stopped');
    await page.close();
  });
});
