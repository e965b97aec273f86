import { expect, it } from 'vitest';
import { startServer } from '../../src/serve/server.js';
import { policies, runsOver } from '../../src/translate/policies/index.js';
import { toyText } from '../../src/translate/toy.js';
import { openPage, outcome, overflow } from './browser.js';
import { describePage, POLL } from './page-server.js';

const HTML = '<img src=x onerror=alert(1)>';

describePage('the page in a browser', (served) => {
  it('translates an example at one click', async () => {
    const { page, faults } = await openPage(served.browser, served.server.url);
    await page.getByRole('slider', { name: 'pace' }).fill('10');
    await page.getByRole('button', { name: 'Play an example' }).click();
    await page.locator('.timeline .target').first().waitFor();
    const written = await outcome(page);
    const sentence = await page.getByRole('textbox').inputValue();
    expect(sentence).not.toBe('');
    expect(written).toBe(await served.line(sentence, 'wait-k:3'));
    const words = sentence.split(' ');
    expect(await page.locator('.timeline .source').allInnerTexts()).toEqual([...words, 'end']);
    expect(faults).toEqual([]);
    await page.close();
  });

  it('shows a sentence full of HTML as text', async () => {
    const { page, faults } = await openPage(served.browser, served.server.url);
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
    const { page } = await openPage(served.browser, served.server.url);
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
    expect(await outcome(page)).toBe(await served.line('ta munata', 'wait-k:2'));
    await page.getByRole('link', { name: 'Runs' }).press('Enter');
    await page.getByRole('checkbox', { name: 'toy' }).waitFor();
    await page.close();
  });

  it('compares two settings, one of them with the model in the page, and lets k change on the way', async () => {
    const { page, faults } = await openPage(served.browser, served.server.url);
    await page.getByRole('slider', { name: 'pace' }).fill('10');
    await page.getByRole('button', { name: 'Compare two settings' }).click();
    const [first, second] = [page.locator('.lane').nth(0), page.locator('.lane').nth(1)];
    await second.getByLabel('Runs in').selectOption('this page');
    const sentence = await page.getByRole('textbox').getAttribute('placeholder');
    await page.getByRole('button', { name: 'Play an example' }).click();
    // Lane B begins with wait-7, lane A with wait-3.
    await outcome(page);
    expect(await first.locator('.output').innerText()).toBe(await served.line(sentence!, 'wait-k:3'));
    expect(await second.locator('.output').innerText()).toBe(await served.line(sentence!, 'wait-k:7'));
    expect(await page.locator('.runs-on').allInnerTexts()).toEqual(['Runs in this page: WebAssembly.']);
    await page.getByRole('button', { name: 'Play' }).click();
    await first.getByRole('slider').fill('15');
    await outcome(page);
    expect(await first.locator('b').innerText()).toBe('15');
    expect(faults).toEqual([]);
    await page.close();
  });

  it('shows the reference beside the translation, with the differences marked', async () => {
    const { page } = await openPage(served.browser, served.server.url);
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
    const { page } = await openPage(served.browser, served.server.url);
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
    const { page } = await openPage(served.browser, served.server.url);
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
    expect(await overflow(page)).toBeLessThanOrEqual(0);
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
    const { page } = await openPage(served.browser, served.server.url);
    await page.getByRole('textbox').fill('ta munata');
    await page.getByRole('slider', { name: 'pace' }).fill('9');
    await page.getByRole('slider', { name: 'k =' }).fill('5');
    await page.getByRole('button', { name: 'Compare two settings' }).click();
    const second = page.locator('.lane').nth(1);
    await second.getByLabel('Runs in').selectOption('this page');
    await second.getByRole('combobox', { name: 'Policy' }).selectOption('wait-if-diff');
    await page.getByRole('button', { name: 'Copy link' }).click();
    await page.getByText('The link is in').waitFor();
    const { page: other } = await openPage(served.browser, page.url());
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

  it('says so when the server goes away', async () => {
    const other = await startServer({ folder: served.root, port: 0 });
    const { page } = await openPage(served.browser, other.url);
    await page.getByRole('slider', { name: 'pace' }).fill('0.5');
    await page.getByRole('button', { name: 'Play an example' }).click();
    await page.locator('.timeline .source').first().waitFor();
    await other.close();
    await page.getByText('the server has closed the connection: the server is stopping').waitFor();
    await page.close();
  });
});

interface Focus {
  readonly document: { readonly activeElement: { readonly textContent: string } };
}
