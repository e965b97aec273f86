import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { beforeAll, expect, it } from 'vitest';
import { startServer } from '../../src/serve/server.js';
import { tcts } from '../cli/train-process.js';
import { colorsOf, contrast, openPage, outcome, overflow } from './browser.js';
import { latencyScores, translationScores } from './evaluations.js';
import { describePage } from './page-server.js';

const AXE = createRequire(import.meta.url).resolve('axe-core');

/** What an accessibility checker finds on the page as it is. */
async function faults(page: Page): Promise<string[]> {
  await page.addScriptTag({ path: AXE });
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(): Promise<{ violations: AxeViolation[] }> } };
    const { violations } = await axe.run();
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
  });
}

interface AxeViolation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string }[];
}

const WIDE = { width: 1280, height: 900 };
const PHONE = { width: 360, height: 740 };

describePage('everybody on the page', (served) => {
  /** Runs with all that the page can draw, and one that it cannot read. */
  beforeAll(async () => {
    const short = ['--set', 'training.episodes=6', '--set', 'training.steps=5', '--quiet'];
    for (const strategy of ['learned', 'mtl']) {
      const set = ['--strategy', strategy, '--set', `name=${strategy}`, '--set', 'out=grid'];
      expect(await tcts(served.root, 'train', 'demo', ...set, ...short)).toMatchObject({ code: 0 });
    }
    const data = { name: 'own', digest: '1'.repeat(16), own: true };
    for (const k of [1, 3]) {
      const folder = join(served.root, 'toy/evaluation', `test-wait-${k}`);
      mkdirSync(folder, { recursive: true });
      const latency = { stacl: latencyScores(k, 0.5), simuleval: null };
      writeFileSync(join(folder, 'scores.json'), JSON.stringify(translationScores({ k, data, bleu: 20 + k, latency })));
    }
    mkdirSync(join(served.root, 'broken'));
    writeFileSync(join(served.root, 'broken/run.json'), '{');
  });

  /** Every view, and what has to be done to come to it from the one before. */
  const views: readonly (readonly [name: string, go: (page: Page) => Promise<unknown>])[] = [
    ['the empty page', (page) => page.getByRole('button', { name: 'Play an example' }).waitFor()],
    [
      'a sentence',
      async (page) => {
        await page.getByRole('slider', { name: 'pace' }).fill('10');
        await page.getByRole('button', { name: 'Play an example' }).click();
        await outcome(page);
      },
    ],
    [
      'two settings',
      async (page) => {
        await page.getByRole('button', { name: 'Compare two settings' }).click();
        await page.getByRole('button', { name: 'Play' }).click();
        await outcome(page);
      },
    ],
    ['an explanation', (page) => page.getByRole('button', { name: 'About wait-k' }).first().focus()],
    [
      'a text that is refused',
      async (page) => {
        await page.getByRole('textbox').fill('word '.repeat(20_000));
        await page.getByRole('alert').waitFor();
      },
    ],
    [
      'what is taken back',
      async (page) => {
        await page.getByRole('checkbox', { name: 'while I type' }).check();
        const [line] = served.sources;
        await page.getByRole('textbox').fill(`${line} `);
        await page.locator('.timeline .target').first().waitFor();
        await page.getByRole('textbox').fill(`${line.split(' ').slice(1).join(' ')} `);
        await page.locator('.timeline .target').first().waitFor();
      },
    ],
    [
      'a run with its curves',
      async (page) => {
        await page.getByRole('link', { name: 'Runs' }).click();
        await page.getByRole('checkbox', { name: 'toy' }).check();
        await page.getByRole('heading', { name: 'BLEU against' }).waitFor();
      },
    ],
    [
      'a comparison of runs, with what a scheduler prefers',
      async (page) => {
        for (const name of ['learned', 'mtl']) await page.getByRole('checkbox', { name }).check();
        await page.locator('.pictures').waitFor();
        await page.locator('figure', { hasText: 'Training loss' }).locator('svg').first().press('ArrowRight');
        await page.locator('.values').waitFor();
      },
    ],
    ['values of the scheduler', (page) => page.locator('.pictures figure > svg').first().press('ArrowRight')],
    [
      'a run that cannot be read',
      async (page) => {
        await page.getByRole('checkbox', { name: 'broken' }).check();
        await page.getByText('expected the description of a run').nth(1).waitFor();
      },
    ],
    ['a search without a match', (page) => page.getByRole('searchbox').fill('nothing like it')],
  ];

  it.each([
    ['light', WIDE],
    ['dark', WIDE],
    ['light', PHONE],
  ] as const)('finds no view with a fault of accessibility, in %s and %j', async (colorScheme, viewport) => {
    // A word that is still fading in has too little contrast, for a quarter of a second.
    const options = { colorScheme, viewport, bypassCSP: true, reducedMotion: 'reduce' } as const;
    const { page } = await openPage(served.browser, served.server.url, options);
    const found: Record<string, unknown> = {};
    for (const [name, go] of views) {
      await go(page);
      const all = await faults(page);
      const wide = await overflow(page);
      if (all.length > 0 || wide > 0) found[name] = { all, wide };
    }
    expect(found).toEqual({});
    // WCAG 1.4.11, which the checker does not look at: 3 : 1 for the borders of controls.
    const box = 'input[type=search]';
    const { borderTopColor, backgroundColor } = await colorsOf(page, box);
    expect(contrast(borderTopColor, backgroundColor)).toBeGreaterThan(3);
    expect(contrast((await colorsOf(page, box, '::placeholder')).color, backgroundColor)).toBeGreaterThan(4.5);
    await page.close();
  });

  it.each(['light', 'dark'] as const)('finds no fault where there are no runs and no models, in %s', async (scheme) => {
    const folder = mkdtempSync(join(tmpdir(), 'tcts-empty-'));
    const empty = await startServer({ folder, port: 0 });
    const { page } = await openPage(served.browser, empty.url, { colorScheme: scheme, bypassCSP: true });
    await page.getByText('tcts train toy').waitFor();
    expect(await faults(page)).toEqual([]);
    await page.getByRole('link', { name: 'Runs' }).click();
    await page.getByText('There is no run in this folder yet.').waitFor();
    expect(await faults(page)).toEqual([]);
    // The first model and the first run appear by themselves.
    cpSync(join(served.root, 'toy'), join(folder, 'toy'), { recursive: true });
    await page.getByRole('checkbox', { name: 'toy' }).waitFor();
    await page.getByRole('link', { name: 'Translate' }).click();
    await page.getByRole('button', { name: 'Play an example' }).waitFor();
    await page.close();
    await empty.close();
    rmSync(folder, { recursive: true });
  });
});
