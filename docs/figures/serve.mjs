/**
 * Takes the picture of the page for docs/serve.md: node docs/figures/serve.mjs URL > docs/figures/serve.png, with
 * `tcts serve` running at the address.
 */
import { chromium } from 'playwright-core';

const [url] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
const page = await browser.newPage({ viewport: { width: 1100, height: 800 } });
await page.goto(url);
await page.getByRole('slider', { name: 'pace' }).fill('5');
await page.getByRole('button', { name: 'Compare two settings' }).click();
await page.getByRole('button', { name: 'Play an example' }).click();
await page.locator('.lane').nth(1).locator('.target').nth(2).waitFor();
process.stdout.write(await page.screenshot({ animations: 'disabled', fullPage: true }));
await browser.close();
