import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, vi } from 'vitest';
import { type PageServer, startServer } from '../../src/serve/server.js';
import { Translator } from '../../src/translate/decode/translator.js';
import { randomTranslationRun } from '../cli/translation-run.js';
import { describeWithBrowser, launchBrowser, PATIENCE } from './browser.js';

export const POLL = { timeout: PATIENCE };

/** What the tests of a page have: a folder of runs with a translation run of random parameters, `toy`, served to a browser. */
export interface ServedPage {
  readonly root: string;
  readonly server: PageServer;
  readonly browser: Browser;
  /** Sentences of the run's language. */
  readonly sources: readonly string[];
  /** What the run makes of a sentence, greedily. */
  line(text: string, policy: string): Promise<string>;
}

/** `describe` with a page; its fields are there when the tests run. */
export function describePage(name: string, body: (page: ServedPage) => void): void {
  vi.setConfig({ testTimeout: 1.2 * PATIENCE, hookTimeout: PATIENCE });
  describeWithBrowser(name, () => {
    const page = {} as { -readonly [K in keyof ServedPage]: ServedPage[K] };
    let translator: Translator;
    beforeAll(async () => {
      page.root = mkdtempSync(join(tmpdir(), 'tcts-page-'));
      const made = await randomTranslationRun(5);
      renameSync(made.folder, join(page.root, 'toy'));
      page.sources = made.sources;
      made.remove();
      page.server = await startServer({ folder: page.root, port: 0, browser: true });
      translator = await Translator.open(join(page.root, 'toy'), { beam: 1 });
      page.line = async (text, policy) => {
        const [translated] = await translator.lines([text], translator.policy(policy), { beam: 1 });
        return translated;
      };
      page.browser = await launchBrowser();
    });
    afterAll(async () => {
      await page.browser.close();
      await page.server.close();
      await translator.close();
      rmSync(page.root, { recursive: true });
    });
    body(page);
  });
}
