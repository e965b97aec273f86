import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createRun } from '../../src/run/index.js';
import { type PageServer, startServer } from '../../src/serve/server.js';
import { Translator } from '../../src/translate/decode/translator.js';
import { policies, runsOver } from '../../src/translate/policies/index.js';
import { toyText } from '../../src/translate/toy.js';
import { randomTranslationRun } from '../cli/translation-run.js';
import { describeWithBrowser, launchBrowser, openPage, outcome, PATIENCE } from './browser.js';
import { forecastScores, latencyScores, translationScores } from './evaluations.js';

vi.setConfig({ testTimeout: 1.2 * PATIENCE, hookTimeout: PATIENCE });

const POLL = { timeout: PATIENCE };

const HTML = '<img src=x onerror=alert(1)>';

describeWithBrowser('the page in a browser', () => {
  let root: string;
  let server: PageServer;
  let browser: Browser;
  let translator: Translator;
  let sources: readonly string[];

  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), 'tcts-page-'));
    const made = await randomTranslationRun(5);
    renameSync(made.folder, join(root, 'toy'));
    sources = made.sources;
    made.remove();
    server = await startServer({ folder: root, port: 0, browser: true });
    translator = await Translator.open(join(root, 'toy'), { beam: 1 });
    browser = await launchBrowser();
  });

  afterAll(async () => {
    await browser.close();
    await server.close();
    await translator.close();
    rmSync(root, { recursive: true });
  });

  const line = async (text: string, policy: string): Promise<string> => {
    const [translated] = await translator.lines([text], translator.policy(policy), { beam: 1 });
    return translated;
  };

  it('translates an example at one click', async () => {
    const { page, faults } = await openPage(browser, server.url);
    await page.getByRole('slider', { name: 'pace' }).fill('10');
    await page.getByRole('button', { name: 'Play an example' }).click();
    await page.locator('.timeline .target').first().waitFor();
    const written = await outcome(page);
    const sentence = await page.getByRole('textbox').inputValue();
    expect(sentence).not.toBe('');
    expect(written).toBe(await line(sentence, 'wait-k:3'));
    const words = sentence.split(' ');
    expect(await page.locator('.timeline .source').allInnerTexts()).toEqual([...words, 'end']);
    expect(faults).toEqual([]);
    await page.close();
  });

  it('shows a sentence full of HTML as text', async () => {
    const { page, faults } = await openPage(browser, server.url);
    await page.getByRole('slider', { name: 'pace' }).fill('10');
    await page.getByRole('textbox').fill(`${HTML} <b>x</b> </textarea><script>alert(2)</script>`);
    await page.getByRole('button', { name: 'Play' }).click();
    await outcome(page);
    expect(await page.locator('.timeline .source').allInnerTexts()).toContain('<b>x</b>');
    expect(await page.locator('img, b:text-is("x"), body script').count()).toBe(0);
    expect(faults).toEqual([]);
    await page.close();
  });

  it('works from the keyboard alone', async () => {
    const { page } = await openPage(browser, server.url);
    const focused = () => page.evaluate(() => (globalThis as unknown as Focus).document.activeElement.textContent);
    await page.getByRole('textbox').waitFor();
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Translate');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.type('ta munata');
    await page.getByRole('slider', { name: 'pace' }).press('End');
    await page.getByRole('slider', { name: 'k =' }).press('ArrowLeft');
    await page.getByRole('textbox').press('Enter');
    await page.locator('.timeline .end').first().waitFor();
    expect(await outcome(page)).toBe(await line('ta munata', 'wait-k:2'));
    await page.getByRole('link', { name: 'Runs' }).press('Enter');
    await page.getByRole('checkbox', { name: 'toy' }).waitFor();
    await page.close();
  });

  it('translates while one types: a word is read when a space follows it', async () => {
    const { page } = await openPage(browser, server.url);
    await page.getByRole('checkbox', { name: 'while I type' }).check();
    await page.getByRole('textbox').pressSequentially('ta munata ');
    await page.locator('.timeline .source').nth(1).waitFor();
    expect(await page.locator('.timeline .source').allInnerTexts()).toEqual(['ta', 'munata']);
    await page.getByRole('textbox').pressSequentially('tanuka');
    await page.getByRole('textbox').press('Enter');
    expect(await outcome(page)).toBe(await line('ta munata tanuka', 'wait-k:3'));
    await page.close();
  });

  it('begins again when a word that was read is changed or deleted: what is shown is of the words on the screen', async () => {
    const { page } = await openPage(browser, server.url);
    await page.getByRole('checkbox', { name: 'while I type' }).check();
    const [box, sources] = [page.getByRole('textbox'), page.locator('.timeline .source')];
    const reads = (...words: string[]) => expect.poll(() => sources.allInnerTexts(), POLL).toEqual(words);
    await box.pressSequentially('ta munata ');
    await reads('ta', 'munata');
    // The number of words stays.
    await box.press('Home');
    await box.press('Delete');
    await reads('a', 'munata');
    await box.press('End');
    await box.press('Backspace');
    // The space alone is gone: the word stands as it was read.
    await reads('a', 'munata');
    await box.press('Backspace');
    await reads('a');
    await box.pressSequentially('a tanuka');
    await reads('a', 'munata');
    await box.press('Home');
    await box.pressSequentially('t');
    await box.press('Enter');
    expect(await outcome(page)).toBe(await line('ta munata tanuka', 'wait-k:3'));
    await box.pressSequentially('ta ');
    await reads('ta');
    await box.fill('');
    await reads();
    expect(await page.locator('.output').innerText()).toBe('The translation appears here.');
    await page.getByRole('button', { name: 'Play an example' }).waitFor();
    await page.close();
  });

  it('compares two settings, one of them with the model in the page, and lets k change on the way', async () => {
    const { page, faults } = await openPage(browser, server.url);
    await page.getByRole('slider', { name: 'pace' }).fill('10');
    await page.getByRole('button', { name: 'Compare two settings' }).click();
    const [first, second] = [page.locator('.lane').nth(0), page.locator('.lane').nth(1)];
    await second.getByLabel('Runs in').selectOption('this page');
    const sentence = await page.getByRole('textbox').getAttribute('placeholder');
    await page.getByRole('button', { name: 'Play an example' }).click();
    // Lane B begins with wait-7, lane A with wait-3.
    await outcome(page);
    expect(await first.locator('.output').innerText()).toBe(await line(sentence!, 'wait-k:3'));
    expect(await second.locator('.output').innerText()).toBe(await line(sentence!, 'wait-k:7'));
    expect(await page.locator('.runs-on').allInnerTexts()).toEqual(['Runs in this page: WebAssembly.']);
    await page.getByRole('button', { name: 'Play' }).click();
    await first.getByRole('slider').fill('15');
    await outcome(page);
    expect(await first.locator('b').innerText()).toBe('15');
    expect(faults).toEqual([]);
    await page.close();
  });

  it('shows runs while they train, and a message for those that cannot be read', async () => {
    const run = createRun(join(root, `run ${HTML.replace('/', '')}`), {
      config: { seed: 1, problem: { kind: 'known-answer' }, strategy: { name: 'learned' } },
      seed: 1,
      command: ['tcts'],
    });
    const episode = (e: number) =>
      `${JSON.stringify({ step: 10 * e, episode: e, performance: -1 / e, reward: 0.1, loss: 1, distribution: { a: 0.5, b: 0.5 } })}\n`;
    writeFileSync(join(run.path, 'metrics.jsonl'), episode(1) + episode(2));
    mkdirSync(join(root, 'broken'));
    writeFileSync(join(root, 'broken', 'run.json'), '{');
    const { page, faults } = await openPage(browser, `${server.url}/#runs`);
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
    rmSync(join(root, 'broken'), { recursive: true });
    await page.getByRole('checkbox', { name: 'broken' }).waitFor({ state: 'detached' });
    expect(faults.filter((fault) => !fault.includes('404'))).toEqual([]);
    await page.close();
  });

  it('draws figures of different data in charts of their own, which name the data', async () => {
    const evaluation = (name: string, content: object) => {
      const folder = join(root, 'toy/evaluation', name);
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
    const { page, faults } = await openPage(browser, `${server.url}/#runs`);
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
    rmSync(join(root, 'toy/evaluation'), { recursive: true });
    expect(faults).toEqual([]);
    await page.close();
  });

  it('takes back what it wrote after the first word that is changed', async () => {
    const { page } = await openPage(browser, server.url);
    await page.getByRole('checkbox', { name: 'while I type' }).check();
    await page.getByRole('slider', { name: 'k =' }).fill('1');
    const box = page.getByRole('textbox');
    const output = () => page.locator('.output').innerText();
    const words = sources.find((line) => line.split(' ').length >= 5)!.split(' ');
    await box.fill(`${words.join(' ')} `);
    await expect.poll(() => page.locator('.timeline .source').count(), POLL).toBe(words.length);
    const before = await output();
    // Another word in the middle, pasted over the old one.
    const changed = words.with(2, words[0]);
    await box.fill(`${changed.join(' ')} `);
    await expect.poll(() => page.locator('.timeline .source').allInnerTexts(), POLL).toEqual(changed);
    await box.press('Enter');
    const after = await outcome(page);
    expect(after).toBe(await line(changed.join(' '), 'wait-k:1'));
    const back = await page.locator('.taken-back del').allInnerTexts();
    if (after.startsWith(before)) expect(back).toEqual([]);
    else expect(before.endsWith(back[0])).toBe(true);
    await page.close();
  });

  it('refuses 100 kB of text, and words that are none, with a sentence', async () => {
    const { page } = await openPage(browser, server.url);
    await page.getByRole('textbox').fill('word '.repeat(20_000));
    await page.getByRole('button', { name: 'Play' }).click();
    await page.getByText('A sentence can have 5,000 characters here; this text has 100,000.').waitFor();
    await page.getByRole('textbox').fill('a '.repeat(300));
    await page.getByText('A sentence can have 256 words here; this text has 300.').waitFor();
    await page.getByRole('textbox').fill('x'.repeat(101));
    await page.getByText('A word can have 100 characters here').waitFor();
    await page.getByRole('textbox').fill('ta');
    expect(await page.getByRole('alert').count()).toBe(0);
    await page.close();
  });

  it('shows the reference beside the translation, with the differences marked', async () => {
    const { page } = await openPage(browser, server.url);
    await page.getByRole('slider', { name: 'pace' }).fill('10');
    await page.getByRole('button', { name: 'Play an example' }).click();
    const written = await outcome(page);
    const sentence = await page.getByRole('textbox').inputValue();
    const { test } = toyText(1, { train: 0, valid: 0, test: 4 });
    const reference = test.find(({ source }) => source === sentence)!.target;
    expect(await page.locator('.reference').innerText()).toBe(reference);
    // A random model says something else: no word of it stands in the reference, or those that do are not marked.
    const shared = (text: string) => text.split(' ').filter((word) => reference.split(' ').includes(word));
    const marked = await page.locator('.output mark').allInnerTexts();
    const words = written.split(' ').filter((word) => word !== '');
    expect(marked.length).toBeGreaterThanOrEqual(words.length - shared(written).length);
    expect(words).toEqual(expect.arrayContaining(marked));
    await page.close();
  });

  it('explains each policy on focus, in the words of its description', async () => {
    const { page } = await openPage(browser, server.url);
    for (const { name, title, help } of policies.filter((policy) => runsOver(policy, 3))) {
      await page.getByRole('combobox', { name: 'Policy' }).selectOption(name);
      const button = page.getByRole('button', { name: `About ${title}`, exact: true });
      const tip = page.getByText(`${title}: ${help}.`, { exact: true });
      await button.focus();
      await expect.poll(() => tip.isVisible(), POLL).toBe(true);
      await button.blur();
      await expect.poll(() => tip.isVisible(), POLL).toBe(false);
      await button.hover();
      await expect.poll(() => tip.isVisible(), POLL).toBe(true);
      await page.mouse.move(0, 0);
    }
    await page.close();
  });

  it('has A and B on one time axis', async () => {
    const { page } = await openPage(browser, server.url);
    await page.getByRole('slider', { name: 'pace' }).fill('10');
    await page.getByRole('button', { name: 'Compare two settings' }).click();
    await page.getByRole('button', { name: 'Play an example' }).click();
    await outcome(page);
    const words = (await page.getByRole('textbox').inputValue()).split(' ');
    // A column for each word, and one for the end; the first is at 0.
    const times = await page.locator('.timeline thead th[scope=col]').allInnerTexts();
    expect(times).toHaveLength(words.length + 1);
    expect(times[0]).toBe('0.0');
    // Explanations on the right side, hidden or shown, widen nothing.
    await page.getByRole('button', { name: 'About AP' }).nth(1).focus();
    expect((await page.evaluate(measure)).overflow).toBeLessThanOrEqual(0);
    expect(await page.locator('.timeline tbody th').allInnerTexts()).toEqual([
      'A READ',
      'A WRITE',
      'B READ',
      'B WRITE',
    ]);
    // What is in a row's cells, each token with its column. A busy machine may read a word later than it arrived, never
    // before: the axis shows what happened.
    const tokens = (row: number): Promise<{ text: string; column: number }[]> =>
      page
        .locator('.timeline tbody tr')
        .nth(row)
        .locator('td')
        .evaluateAll((cells: { querySelectorAll(of: string): Iterable<{ innerText: string }> }[]) =>
          cells.flatMap((cell, column) =>
            [...cell.querySelectorAll('.token')].map((t) => ({ text: t.innerText, column })),
          ),
        );
    for (const row of [0, 2]) {
      const read = await tokens(row);
      expect(read.map(({ text }) => text)).toEqual([...words, 'end']);
      read.forEach(({ column }, i) => {
        expect(column).toBeGreaterThanOrEqual(i);
      });
    }
    await page.close();
  });

  it('makes a link that opens with the same settings', async () => {
    const { page } = await openPage(browser, server.url);
    await page.getByRole('textbox').fill('ta munata');
    await page.getByRole('slider', { name: 'pace' }).fill('9');
    await page.getByRole('slider', { name: 'k =' }).fill('5');
    await page.getByRole('button', { name: 'Compare two settings' }).click();
    const second = page.locator('.lane').nth(1);
    await second.getByLabel('Runs in').selectOption('this page');
    await second.getByRole('combobox', { name: 'Policy' }).selectOption('wait-if-diff');
    await page.getByRole('button', { name: 'Copy link' }).click();
    await page.getByText('The link is in').waitFor();
    const { page: other } = await openPage(browser, page.url());
    await other.locator('.lane').nth(1).waitFor();
    expect(await other.getByRole('textbox').inputValue()).toBe('ta munata');
    expect(await other.getByRole('slider', { name: 'pace' }).inputValue()).toBe('9');
    expect(await other.locator('.lane').nth(0).getByRole('slider').inputValue()).toBe('5');
    expect(await other.locator('.lane').nth(1).getByLabel('Runs in').inputValue()).toBe('page');
    expect(await other.locator('.lane').nth(1).getByRole('combobox', { name: 'Policy' }).inputValue()).toBe(
      'wait-if-diff',
    );
    await Promise.all([page.close(), other.close()]);
  });

  it('finds runs, groups those of a sweep, and says how far they are, and when one stops', async () => {
    const make = (name: string) =>
      createRun(join(root, name), {
        config: { problem: { kind: 'series' }, strategy: { name: 'mtl' }, training: { episodes: 10, steps: 10 } },
        seed: 1,
        command: ['tcts'],
      });
    const runs = ['grid/one', 'grid/two'].map(make);
    writeFileSync(join(runs[0].path, 'metrics.jsonl'), '{"step":20,"loss":2.5}\n{"step":40,"loss":1.5}\n');
    // 20 updates in 10 seconds; 60 are left.
    writeFileSync(join(runs[0].path, 'timings.jsonl'), '{"step":20,"seconds":5}\n{"step":40,"seconds":15}\n');
    const { page } = await openPage(browser, `${server.url}/#runs?run=grid/one`);
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
    rmSync(join(root, 'grid'), { recursive: true });
    await page.close();
  });

  it('offers a model that was trained meanwhile, without being loaded again', async () => {
    const { page } = await openPage(browser, server.url);
    await page.getByRole('textbox').waitFor();
    cpSync(join(root, 'toy'), join(root, 'newer'), { recursive: true });
    await expect.poll(() => page.locator('option', { hasText: 'newer' }).count(), POLL).toBe(1);
    rmSync(join(root, 'newer'), { recursive: true });
    await page.close();
  });

  it.each(['light', 'dark'] as const)(
    'has no fault that an accessibility checker finds, in %s',
    async (colorScheme) => {
      const { page } = await openPage(browser, server.url, { colorScheme, bypassCSP: true });
      await page.getByRole('slider', { name: 'pace' }).fill('10');
      await page.getByRole('button', { name: 'Compare two settings' }).click();
      await page.getByRole('button', { name: 'Play an example' }).click();
      await outcome(page);
      await page.addScriptTag({ path: createRequire(import.meta.url).resolve('axe-core') });
      const faults = () =>
        page.evaluate(async () => {
          const { axe } = globalThis as unknown as { axe: { run(): Promise<{ violations: AxeViolation[] }> } };
          const { violations } = await axe.run();
          return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
        });
      expect(await faults()).toEqual([]);
      await page.getByRole('link', { name: 'Runs' }).click();
      await page.getByRole('checkbox', { name: 'toy' }).waitFor();
      expect(await faults()).toEqual([]);
      // WCAG 1.4.11, which the checker does not look at: 3 : 1 for the borders of controls.
      const contrast = await page.evaluate(controlContrast);
      expect(contrast.border).toBeGreaterThan(3);
      expect(contrast.placeholder).toBeGreaterThan(4.5);
      await page.close();
    },
  );

  it.each(['light', 'dark'] as const)('fits a phone and is legible in %s', async (colorScheme) => {
    const { page } = await openPage(browser, server.url, { viewport: { width: 360, height: 740 }, colorScheme });
    await page.getByRole('button', { name: 'Play an example' }).waitFor();
    for (const tab of ['Translate', 'Runs']) {
      await page.getByRole('link', { name: tab }).click();
      const { overflow, contrast } = await page.evaluate(measure);
      expect(overflow).toBeLessThanOrEqual(0);
      // WCAG's AA asks for 4.5 : 1.
      expect(contrast).toBeGreaterThan(4.5);
    }
    expect((await page.screenshot()).length).toBeGreaterThan(5000);
    await page.close();
  });

  it('says so when the server goes away', async () => {
    const other = await startServer({ folder: root, port: 0 });
    const { page } = await openPage(browser, other.url);
    await page.getByRole('slider', { name: 'pace' }).fill('0.5');
    await page.getByRole('button', { name: 'Play an example' }).click();
    await page.locator('.timeline .source').first().waitFor();
    await other.close();
    await page.getByText('the server has closed the connection: the server is stopping').waitFor();
    await page.close();
  });
});

interface AxeViolation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string }[];
}

/** In the page: contrast of the border of a control, and of its placeholder, with its ground. */
function controlContrast(): { border: number; placeholder: number } {
  const { document, getComputedStyle } = globalThis as unknown as {
    document: { querySelector(selector: string): object };
    getComputedStyle(element: object, pseudo?: string): Record<'color' | 'borderTopColor' | 'backgroundColor', string>;
  };
  const luminance = (color: string): number => {
    const [r, g, b] = color.match(/[\d.]+/g)!.map((channel) => {
      const share = Number(channel) / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a: string, b: string): number => {
    const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (light + 0.05) / (dark + 0.05);
  };
  const box = document.querySelector('input[type=search]');
  const { borderTopColor, backgroundColor } = getComputedStyle(box);
  return {
    border: ratio(borderTopColor, backgroundColor),
    placeholder: ratio(getComputedStyle(box, '::placeholder').color, backgroundColor),
  };
}

interface Focus {
  readonly document: { readonly activeElement: { readonly textContent: string } };
}

/** In the page: pixels that stick out, and the contrast of its soft text with the ground. */
function measure(): { overflow: number; contrast: number } {
  const { document, innerWidth, getComputedStyle } = globalThis as unknown as {
    document: { documentElement: { scrollWidth: number }; body: object; querySelector(selector: string): object };
    innerWidth: number;
    getComputedStyle(element: object): { color: string; backgroundColor: string };
  };
  const luminance = (color: string): number => {
    const [r, g, b] = color.match(/[\d.]+/g)!.map((channel) => {
      const share = Number(channel) / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const soft = luminance(getComputedStyle(document.querySelector('nav a:not([aria-current])')).color);
  const ground = luminance(getComputedStyle(document.body).backgroundColor);
  const [dark, light] = [soft, ground].sort((a, b) => a - b);
  return { overflow: document.documentElement.scrollWidth - innerWidth, contrast: (light + 0.05) / (dark + 0.05) };
}
