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

/** Pixels by which something sticks out of the page on its right. */
export function overflow(page: Page): Promise<number> {
  return page.evaluate('document.documentElement.scrollWidth - innerWidth');
}

/** Colours of the first element of a selector, or of a part of it as `::placeholder`: `rgb(1, 2, 3)`. */
export function colorsOf(page: Page, selector: string, part?: string): Promise<Record<ColorProperty, string>> {
  return page.evaluate(
    ([selector, part]) => {
      const { document, getComputedStyle } = globalThis as unknown as {
        document: { querySelector(selector: string): object };
        getComputedStyle(element: object, part?: string): Record<ColorProperty, string>;
      };
      const { color, borderTopColor, backgroundColor } = getComputedStyle(document.querySelector(selector!), part);
      return { color, borderTopColor, backgroundColor };
    },
    [selector, part],
  );
}

type ColorProperty = 'color' | 'borderTopColor' | 'backgroundColor';

/** Contrast of two colours as WCAG defines it. */
export function contrast(a: string, b: string): number {
  const luminance = (color: string): number => {
    const [red, green, blue] = (color.match(/[\d.]+/g) ?? []).map((channel) => {
      const share = Number(channel) / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}
