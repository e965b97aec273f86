import { expect, it } from 'vitest';
import { openPage, outcome } from './browser.js';
import { describePage, POLL } from './page-server.js';

describePage('a sentence that is typed into the page', (served) => {
  it('translates while one types: a word is read when a space follows it', async () => {
    const { page } = await openPage(served.browser, served.server.url);
    await page.getByRole('checkbox', { name: 'while I type' }).check();
    await page.getByRole('textbox').pressSequentially('ta munata ');
    await page.locator('.timeline .source').nth(1).waitFor();
    expect(await page.locator('.timeline .source').allInnerTexts()).toEqual(['ta', 'munata']);
    await page.getByRole('textbox').pressSequentially('tanuka');
    await page.getByRole('textbox').press('Enter');
    expect(await outcome(page)).toBe(await served.line('ta munata tanuka', 'wait-k:3'));
    await page.close();
  });

  it('begins again when a word that was read is changed or deleted: what is shown is of the words on the screen', async () => {
    const { page } = await openPage(served.browser, served.server.url);
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
    expect(await outcome(page)).toBe(await served.line('ta munata tanuka', 'wait-k:3'));
    await box.pressSequentially('ta ');
    await reads('ta');
    await box.fill('');
    await reads();
    expect(await page.locator('.output').innerText()).toBe('The translation appears here.');
    await page.getByRole('button', { name: 'Play an example' }).waitFor();
    await page.close();
  });

  it('takes back what it wrote after the first word that is changed', async () => {
    const { page } = await openPage(served.browser, served.server.url);
    await page.getByRole('checkbox', { name: 'while I type' }).check();
    await page.getByRole('slider', { name: 'k =' }).fill('1');
    const box = page.getByRole('textbox');
    const output = () => page.locator('.output').innerText();
    const words = served.sources.find((line) => line.split(' ').length >= 5)!.split(' ');
    await box.fill(`${words.join(' ')} `);
    await expect.poll(() => page.locator('.timeline .source').count(), POLL).toBe(words.length);
    const before = await output();
    // Another word in the middle, pasted over the old one.
    const changed = words.with(2, words[0]);
    await box.fill(`${changed.join(' ')} `);
    await expect.poll(() => page.locator('.timeline .source').allInnerTexts(), POLL).toEqual(changed);
    await box.press('Enter');
    const after = await outcome(page);
    expect(after).toBe(await served.line(changed.join(' '), 'wait-k:1'));
    const back = await page.locator('.taken-back del').allInnerTexts();
    if (after.startsWith(before)) expect(back).toEqual([]);
    else expect(before.endsWith(back[0])).toBe(true);
    await page.close();
  });

  it('refuses 100 kB of text, and words that are none, with a sentence', async () => {
    const { page } = await openPage(served.browser, served.server.url);
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

  it('takes in a long text that is pasted, in two settings at once, and again when it is corrected', async () => {
    const { page, faults } = await openPage(served.browser, served.server.url);
    await page.getByRole('button', { name: 'Compare two settings' }).click();
    await page.getByRole('checkbox', { name: 'while I type' }).check();
    // As many words as the model has positions for: with two settings more than a client may send messages at once.
    const words = Array.from({ length: 60 }, (_, i) => served.sources[0].split(' ')[i % 3]);
    const reads = () => page.locator('.timeline .source').allInnerTexts();
    for (let i = 0; i < 6; i++) {
      const own = words.with(i, served.sources[1].split(' ')[0]);
      await page.getByRole('textbox').fill(`${own.join(' ')} `);
      await expect.poll(reads, POLL).toEqual([...own, ...own]);
    }
    expect(await page.locator('.message').count()).toBe(0);
    expect(faults).toEqual([]);
    await page.close();
  });

  it('shows no translation of words that are no longer on the screen because the text was refused', async () => {
    const { page } = await openPage(served.browser, served.server.url);
    await page.getByRole('checkbox', { name: 'while I type' }).check();
    await page.getByRole('textbox').fill('ta munata ');
    await page.locator('.timeline .source').nth(1).waitFor();
    await page.getByRole('textbox').fill('ta munata '.repeat(200));
    await page.getByRole('alert').waitFor();
    await expect.poll(() => page.locator('.timeline .source').count(), POLL).toBe(0);
    await page.getByRole('textbox').fill('ta ');
    await page.locator('.timeline .source').waitFor();
    await page.close();
  });
});
