import { existsSync } from 'node:fs';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { describe, it } from 'vitest';

const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const present = existsSync(executablePath);
if (!present && process.env.CI) throw new Error(`CI must have a browser at ${executablePath}`);
if (!present) console.warn(`there is no browser at ${executablePath} (CHROMIUM names another): its tests are skipped`);

/** Milliseconds to wait for something on the page: a busy machine takes its time to compile a WebAssembly runtime. */
export const PATIENCE = 100_000;

/** `describe`, skipped where there is no browser; in CI absence is an error. */
export function describeWithBrowser(name: string, body: () => void): void {
  if (present) describe(name, body);
  else describe.skip(name, () => it('needs a browser', () => {}));
}

/** `graphics`: `software` gives it a graphics card for WebGPU that the processor plays. */
export function launchBrowser(graphics: 'none' | 'software' = 'none'): Promise<Browser> {
  const card = graphics === 'none' ? ['--disable-gpu'] : ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'];
  // A container has no sandbox of its own to give.
  return chromium.launch({ executablePath, args: ['--no-sandbox', ...card] });
}

/** A page together with everything that went wrong on it: errors, and what the security policy has blocked. */
export async function openPage(browser: Browser, url: string, options: BrowserContextOptions = {}) {
  return openPageIn(await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options }), url);
}

/** The same in a context that there is. */
export async function openPageIn(context: BrowserContext, url: string, before?: () => void) {
  const page = await context.newPage();
  if (before !== undefined) await page.addInitScript(before);
  page.setDefaultTimeout(PATIENCE);
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text());
  });
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== new URL(url).origin && protocol !== 'data:') faults.push(`asks for ${request.url()}`);
  });
  await page.goto(url);
  return { page, faults };
}

/** When the sentence is over in all lanes: what is written in the given one. */
export async function outcome(page: Page, lane = 0): Promise<string> {
  await page.getByRole('button', { name: 'Play' }).waitFor();
  return page.locator('.output').nth(lane).innerText();
}
