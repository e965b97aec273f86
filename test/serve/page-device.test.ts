import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type PageServer, startServer } from '../../src/serve/server.js';
import { Translator } from '../../src/translate/decode/translator.js';
import { randomTranslationRun, type TranslationRun } from '../cli/translation-run.js';
import { describeWithBrowser, launchBrowser, openPageIn, PATIENCE } from './browser.js';

vi.setConfig({ testTimeout: 1.2 * PATIENCE, hookTimeout: PATIENCE });

/** Short: each shape has shaders of its own, and a card in software takes its time to compile them. */
const sentence = 'ta munata';

describeWithBrowser('what a model in the page runs on', () => {
  let run: TranslationRun;
  let server: PageServer;
  let browser: Browser;
  /** One for all: it keeps the shaders that were compiled. */
  let context: BrowserContext;
  /** What the CPU says here under wait-3 and wait-1. */
  let expected: string[];

  beforeAll(async () => {
    run = await randomTranslationRun(5);
    server = await startServer({ folder: run.folder, port: 0, browser: true });
    const translator = await Translator.open(run.folder, { beam: 1 });
    expected = [];
    for (const k of [3, 1]) {
      expected.push(...(await translator.lines([sentence], translator.policy(`wait-k:${k}`), { beam: 1 })));
    }
    await translator.close();
    browser = await launchBrowser('software');
    context = await browser.newContext();
  });

  afterAll(async () => {
    await browser.close();
    await server.close();
    run.remove();
  });

  /** Plays the sentence in a new page; the runtimes that it loads are noted. */
  async function play(query: string, lanes: Record<string, string> = {}, before?: () => void) {
    const settings = new URLSearchParams({ text: sentence, pace: '10', 'a.run': 'run', 'a.place': 'page', ...lanes });
    const { page, faults } = await openPageIn(context, `${server.url}/${query}#translate?${settings}`, before);
    const runtimes: string[] = [];
    page.on('request', (request) => {
      const [, name] = /\/page\/(ort-\w+)\.wasm/.exec(request.url()) ?? [];
      if (name !== undefined) runtimes.push(name);
    });
    await again(page);
    return { page, faults, runtimes };
  }

  /** Plays the sentence once more, to its end. */
  async function again(page: Page): Promise<void> {
    await page.getByRole('button', { name: 'Play' }).click();
    await page.locator('.timeline .end, .message.failed').first().waitFor();
    await page.getByRole('button', { name: 'Play' }).waitFor();
  }

  const shown = async (page: Page) => ({
    runsOn: await page.locator('.runs-on').allInnerTexts(),
    written: await page.locator('.output').allInnerTexts(),
    failed: await page.locator('.message.failed').allInnerTexts(),
  });

  it('is WebGPU where the address asks for it, with the words of the CPU, until the card is lost', async () => {
    const second = { 'b.run': 'run', 'b.place': 'page', 'b.policy': 'wait-k', 'b.k': '1' };
    const { page, faults, runtimes } = await play('?device=webgpu', second, notedDevices);
    const title = 'Runs in this page: WebGPU (google swiftshader, in software).';
    expect(await shown(page)).toEqual({ runsOn: [title, title], written: expected, failed: [] });
    expect([faults, runtimes]).toEqual([[], ['ort-webgpu']]);
    await page.evaluate(() => (globalThis as unknown as InBrowser).devices.at(-1)?.destroy());
    await again(page);
    const lost = 'WebGPU failed: the graphics card was lost; without ?device=webgpu this page uses WebAssembly';
    expect((await shown(page)).failed).toEqual([lost, lost]);
    await page.close();
  });

  it.each([
    ['the card is one in software', undefined, 'WebAssembly'],
    ['the browser has no WebGPU', withoutWebGpu, 'WebAssembly'],
    ['the card gives no device', refusingCard, 'WebAssembly, because WebGPU failed: out of everything'],
  ])('is WebAssembly where %s', async (_, before, title) => {
    const { page, runtimes } = await play('', {}, before);
    expect(await shown(page)).toEqual({
      runsOn: [`Runs in this page: ${title}.`],
      written: [expected[0]],
      failed: [],
    });
    expect(runtimes).toEqual(['ort-wasm']);
    await page.close();
  });

  it('is WebAssembly where the runtime cannot open a real card', async () => {
    const { page, runtimes } = await play('', {}, cardThatRefusesTheRuntime);
    expect(await shown(page)).toEqual({
      runsOn: ['Runs in this page: WebAssembly, because WebGPU failed: the runtime does not say why.'],
      written: [expected[0]],
      failed: [],
    });
    expect(runtimes).toEqual(['ort-webgpu', 'ort-wasm']);
    await page.close();
  });

  it('is nothing where the address asks for what there is not', async () => {
    const missing = await play('?device=webgpu', {}, withoutCard);
    expect((await shown(missing.page)).failed).toEqual([
      'this browser offers no graphics card through WebGPU; without ?device=webgpu this page uses WebAssembly',
    ]);
    const unknown = await play('?device=cuda');
    expect((await shown(unknown.page)).failed).toEqual([
      'the address asks for the device “cuda”, expected auto, webgpu or wasm',
    ]);
    expect([...missing.runtimes, ...unknown.runtimes]).toEqual([]);
    await missing.page.close();
    await unknown.page.close();
  });
});

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
