import { renameSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Translator } from '../../src/translate/decode/translator.js';
import { arrivingWords } from '../../src/translate/text/arriving.js';
import { randomTextRun } from '../cli/translation-run.js';
import { openPage, outcome } from './browser.js';
import { describePage, POLL } from './page-server.js';

describePage('a source without spaces in the page', (served) => {
  let translator: Translator;
  beforeAll(async () => {
    const text = (language: string, kind: 'char' | 'none') =>
      ({ language, lowercase: false, normalize: false, tokenizer: { kind } }) as const;
    const pairs = [
      ['我们喜欢北京的猫。', 'we like cats'],
      ['他们有狗 T恤', 'they have dogs'],
    ] as const;
    const made = await randomTextRun(7, pairs, { source: text('zh', 'char'), target: text('en', 'none') });
    renameSync(made.folder, join(served.root, 'zh'));
    made.remove();
    translator = await Translator.open(join(served.root, 'zh'), { beam: 1 });
  });
  afterAll(() => translator.close());

  /** What the stream has written after each character under wait-1, and after the end. */
  async function written(line: string): Promise<string[]> {
    const stream = translator.stream(translator.policy('wait-k:1'), { beam: 1 });
    const pieces: string[] = [];
    for (const { word, joined } of arrivingWords(line, true)) pieces.push(await stream.push(word, joined));
    pieces.push(await stream.end());
    return pieces.map((_, i) => pieces.slice(0, i + 1).join(''));
  }

  const linkTo = (settings: Record<string, string>) =>
    `${served.server.url}/#translate?${new URLSearchParams({ 'a.run': 'zh', 'a.policy': 'wait-k', 'a.k': '1', ...settings })}`;
  const output = (page: Page) => page.locator('.output').first().innerText();
  const reads = (page: Page, row = 0) => page.locator('.timeline tr.read').nth(row).locator('.source').allInnerTexts();

  it('is read character by character as it is typed, and again from the first one that is changed', async () => {
    const { page, faults } = await openPage(served.browser, linkTo({}));
    await page.getByRole('checkbox', { name: 'while I type' }).check();
    const box = page.getByRole('textbox');
    expect(await box.getAttribute('placeholder')).toContain('every character is read at once');
    const texts = await written('我们喜');
    for (const [i, character] of Array.from('我们喜').entries()) {
      await box.pressSequentially(character);
      await expect.poll(() => reads(page), POLL).toEqual(Array.from('我们喜').slice(0, i + 1));
      await expect.poll(() => output(page), POLL).toBe(texts[i].trim());
    }
    expect(texts[0]).not.toBe('');
    expect(texts[2]).not.toBe(`${texts[0]} ${texts[0]} ${texts[0]}`);
    // A column for each.
    expect(await page.locator('.timeline thead th[scope=col]').count()).toBe(3);
    await box.press('ArrowLeft');
    await box.press('Backspace');
    await expect.poll(() => reads(page), POLL).toEqual(['我', '喜']);
    const changed = await written('我喜');
    await expect.poll(() => output(page), POLL).toBe(changed[1].trim());
    expect(texts[2].startsWith(`${changed[1]} `)).toBe(true);
    const withdrawn = texts[2].slice(changed[1].length).trim();
    expect(await page.locator('.taken-back del').allInnerTexts()).toEqual([withdrawn]);
    await box.press('End');
    await box.press('Enter');
    expect(await outcome(page)).toBe(changed[2].trim());
    expect(faults).toEqual([]);
    await page.close();
  });

  it('is not read while an input method composes it', async () => {
    const { page } = await openPage(served.browser, linkTo({}));
    await page.getByRole('checkbox', { name: 'while I type' }).check();
    const box = page.getByRole('textbox');
    await box.pressSequentially('他');
    await expect.poll(() => reads(page), POLL).toEqual(['他']);
    const devtools = await page.context().newCDPSession(page);
    for (const text of ['m', 'me', 'men', '们']) {
      await devtools.send('Input.imeSetComposition', { text, selectionStart: text.length, selectionEnd: text.length });
    }
    expect(await box.inputValue()).toBe('他们');
    await page.waitForTimeout(300);
    expect(await reads(page)).toEqual(['他']);
    // The composition is abandoned, and another one is committed.
    await devtools.send('Input.imeSetComposition', { text: '', selectionStart: 0, selectionEnd: 0 });
    await devtools.send('Input.imeSetComposition', { text: 'you', selectionStart: 3, selectionEnd: 3 });
    await devtools.send('Input.insertText', { text: '有狗' });
    await expect.poll(() => reads(page), POLL).toEqual(['他', '有', '狗']);
    expect(await page.locator('.timeline thead th[scope=col]').count()).toBe(2);
    await page.close();
  });

  it('is played by characters, in the page too, beside a model that reads the words of the same text', async () => {
    const settings = { text: '我们 喜欢', pace: '10', 'a.place': 'page', 'b.run': 'toy' };
    const { page, faults } = await openPage(served.browser, linkTo(settings));
    await page.getByText('characters/s').waitFor();
    await page.getByRole('button', { name: 'Play' }).click();
    await page.locator('.timeline .end').nth(1).waitFor();
    expect(await outcome(page)).toBe((await written('我们 喜欢')).at(-1)!.trim());
    // A space is a token of its own.
    expect(await reads(page)).toEqual(['我', '们', '▁', '喜', '欢', 'end']);
    // Four characters and the end.
    expect(await page.locator('.timeline thead th[scope=col]').count()).toBe(5);
    expect(await reads(page, 1)).toEqual(['我们', '喜欢', 'end']);
    const cells = await page.locator('.timeline tr.read').nth(1).locator('td').allInnerTexts();
    expect(cells.slice(0, 2).map((cell) => cell.trim())).not.toContain('喜欢');
    expect(faults).toEqual([]);
    await page.close();
  });

  it('has a limit in characters', async () => {
    const { page } = await openPage(served.browser, linkTo({}));
    await page.getByRole('textbox').fill('我'.repeat(257));
    await page.getByText('A sentence can have 256 characters here; this text has 257.').waitFor();
    await page.getByRole('textbox').fill('我'.repeat(256));
    await expect.poll(() => page.getByRole('alert').count(), POLL).toBe(0);
    await page.close();
  });

  it('is read by words from an export that does not say how it is read', async () => {
    const { page } = await openPage(served.browser, served.server.url);
    await page.route('**/api/translation', async (route) => {
      const offer = (await (await route.fetch()).json()) as { runs: { byCharacter?: boolean }[] };
      for (const run of offer.runs) delete run.byCharacter;
      await route.fulfill({ json: offer });
    });
    await page.goto(linkTo({ text: '我们喜欢', pace: '10' }));
    const columns = async (): Promise<number> => {
      await page.reload();
      await page.getByRole('button', { name: 'Play' }).click();
      await page.locator('.timeline .read .end').waitFor();
      await outcome(page);
      expect(await reads(page)).toEqual(['我', '们', '喜', '欢', 'end']);
      return page.locator('.timeline thead th[scope=col]').count();
    };
    expect(await columns()).toBe(2);
    await page.unroute('**/api/translation');
    expect(await columns()).toBe(5);
    await page.close();
  });
});
