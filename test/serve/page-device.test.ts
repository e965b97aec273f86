import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { builtInModel } from '../../src/cli/names.js';
import { type PageServer, startServer } from '../../src/serve/server.js';
import { verbFinalText } from '../../src/translate/toy.js';
import { describeWithBrowser, launchBrowser, openPageIn, PATIENCE } from './browser.js';

vi.setConfig({ testTimeout: 1.2 * PATIENCE, hookTimeout: PATIENCE });

/** A sentence that the bundled model knows, when it has read all of it. */
const [{ source, target }] = verbFinalText(1, { train: 0, valid: 0, test: 4 }).test;

describeWithBrowser('what a model in the page runs on', () => {
  let folder: string;
  let server: PageServer;
  let browser: Browser;
  let context: BrowserContext;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tcts-device-'));
    server = await startServer({ folder, port: 0, browser: true, builtIn: builtInModel });
    browser = await launchBrowser('software');
    context = await browser.newContext();
  });

  afterAll(async () => {
    await browser.close();
    await server.close();
    rmSync(folder, { recursive: true });
  });

  /** Begins the sentence in a new page, in so many lanes; the runtimes that it loads are noted. */
  async function begin(query: string, before?: () => void, lanes = ['a']) {
    const settings = new URLSearchParams({ text: source, pace: '10' });
    for (const lane of lanes) {
      for (const [key, value] of Object.entries(SETTING)) settings.set(`${lane}.${key}`, value);
    }
    const { page, faults } = await openPageIn(context, `${server.url}/${query}#translate?${settings}`, before);
    const runtimes: string[] = [];
    page.on('request', (request) => {
      const [, name] = /\/page\/(ort-\w+)\.wasm/.exec(request.url()) ?? [];
      if (name !== undefined) runtimes.push(name);
    });
    await page.getByRole('button', { name: 'Play' }).click();
    return { page, faults, runtimes };
  }

  const runsOn = async (page: Page): Promise<string[]> => {
    await page.locator('.runs-on').first().waitFor();
    return page.locator('.runs-on').allInnerTexts();
  };
  const written = async (page: Page): Promise<string[]> => {
    await page.getByRole('button', { name: 'Play' }).waitFor();
    return page.locator('.output').allInnerTexts();
  };
  const failed = async (page: Page, lanes = 1): Promise<string[]> => {
    await page
      .locator('.message.failed')
      .nth(lanes - 1)
      .waitFor();
    return page.locator('.message.failed').allInnerTexts();
  };

  it('is WebGPU where the address asks for it, with the same words, until the card is lost', async () => {
    const { page, faults, runtimes } = await begin('?device=webgpu', notedDevices, ['a', 'b']);
    const title = 'Runs in this page: WebGPU (google swiftshader, in software).';
    expect(await runsOn(page)).toEqual([title, title]);
    expect(await written(page)).toEqual([target, target]);
    expect([faults, runtimes]).toEqual([[], ['ort-webgpu']]);
    await page.evaluate(() => (globalThis as unknown as InBrowser).devices.at(-1)?.destroy());
    await page.getByRole('button', { name: 'Play' }).click();
    const lost = 'WebGPU failed: the graphics card was lost; without ?device=webgpu this page uses WebAssembly';
    expect(await failed(page, 2)).toEqual([lost, lost]);
    await page.close();
  });

  it('is WebAssembly where that is asked for, or WebGPU missing, in software or refused', async () => {
    const cases = [
      ['?device=wasm', realCard, 'WebAssembly'],
      ['', withoutWebGpu, 'WebAssembly'],
      ['', undefined, 'WebAssembly'],
      ['', refusingCard, 'WebAssembly, because WebGPU failed: out of everything'],
    ] as const;
    const found = await Promise.all(
      cases.map(async ([query, before]) => {
        const { page, runtimes } = await begin(query, before);
        const titles = await runsOn(page);
        await page.close();
        return { titles, runtimes };
      }),
    );
    const expected = cases.map(([, , title]) => ({
      titles: [`Runs in this page: ${title}.`],
      runtimes: ['ort-wasm'],
    }));
    expect(found).toEqual(expected);
  });

  it('is WebAssembly where the runtime cannot open a real card', async () => {
    const { page, runtimes } = await begin('', cardThatRefusesTheRuntime);
    expect(await runsOn(page)).toEqual([
      'Runs in this page: WebAssembly, because WebGPU failed: the runtime does not say why.',
    ]);
    expect(await written(page)).toEqual([target]);
    expect(runtimes).toEqual(['ort-webgpu', 'ort-wasm']);
    await page.close();
  });

  it('is nothing where the address asks for what there is not', async () => {
    const missing = await begin('?device=webgpu', withoutCard);
    expect(await failed(missing.page)).toEqual([
      'this browser offers no graphics card through WebGPU; without ?device=webgpu this page uses WebAssembly',
    ]);
    const unknown = await begin('?device=cuda');
    expect(await failed(unknown.page)).toEqual([
      'the address asks for the device “cuda”, expected auto, webgpu or wasm',
    ]);
    expect([...missing.runtimes, ...unknown.runtimes]).toEqual([]);
    await missing.page.close();
    await unknown.page.close();
  });
});

/** The bundled model, in the page. */
const SETTING = { run: 'built-in', place: 'page', policy: 'wait-k', k: '9' };

// What a page finds before it runs: these functions are sent to the browser.

interface InBrowser {
  navigator: object;
  devices: { destroy(): void }[];
  GPUAdapter: { prototype: { requestDevice(...options: unknown[]): Promise<{ destroy(): void }> } };
  GPUAdapterInfo: { prototype: object };
}

function withoutWebGpu(): void {
  Object.defineProperty((globalThis as unknown as InBrowser).navigator, 'gpu', { value: undefined });
}

function withoutCard(): void {
  Object.defineProperty((globalThis as unknown as InBrowser).navigator, 'gpu', {
    value: { requestAdapter: async () => null },
  });
}

function refusingCard(): void {
  const page = globalThis as unknown as InBrowser;
  page.GPUAdapter.prototype.requestDevice = async () => {
    throw new Error('out of everything');
  };
}

function notedDevices(): void {
  const page = globalThis as unknown as InBrowser;
  const { requestDevice } = page.GPUAdapter.prototype;
  page.devices = [];
  page.GPUAdapter.prototype.requestDevice = async function (...options) {
    const device = await requestDevice.apply(this, options);
    page.devices.push(device);
    return device;
  };
}

/** The card in software passes for a real one. */
function realCard(): void {
  const page = globalThis as unknown as InBrowser;
  Object.defineProperty(page.GPUAdapterInfo.prototype, 'isFallbackAdapter', { value: false });
}

/** The card in software passes for a real one, and gives the page's own first device; no other. */
function cardThatRefusesTheRuntime(): void {
  const page = globalThis as unknown as InBrowser;
  Object.defineProperty(page.GPUAdapterInfo.prototype, 'isFallbackAdapter', { value: false });
  const { requestDevice } = page.GPUAdapter.prototype;
  let given = false;
  page.GPUAdapter.prototype.requestDevice = async function (...options) {
    if (given) throw new Error('out of everything');
    given = true;
    return requestDevice.apply(this, options);
  };
}
