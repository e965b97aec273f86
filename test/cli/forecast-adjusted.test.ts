import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { filesIn } from '../commands.js';
import { quotedWalks } from '../forecast/quoted-walks.js';
import { temporaryFolder } from '../run/temporary.js';
import { tcts } from './train-process.js';

const page = readFileSync(new URL('../../docs/forecasting.md', import.meta.url), 'utf8');

/** Monday to Friday from 2 October 2009 to the end of the documented test part. */
function weekdays(): string[] {
  const days: string[] = [];
  for (let time = Date.UTC(2009, 9, 2); time <= Date.UTC(2023, 11, 29); time += 864e5) {
    const day = new Date(time);
    if (day.getUTCDay() % 6 !== 0) days.push(day.toISOString().slice(0, 10));
  }
  return days;
}

it('random walks with splits and dividends have no IC in the documented example, and are refused half adjusted', async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'prices.csv'), quotedWalks(15, weekdays()));
  writeFileSync(join(folder, 'my.yaml'), filesIn(page)['my.yaml']);
  // Nothing is changed but the length of the training and the size of the model.
  const short = ['training={episodes: 4, steps: 40}', 'problem.features.window=5', 'problem.model={name: mlp}'];
  const set = [...short, 'threads=1'].flatMap((one) => ['--set', one]);
  const trained = await tcts(folder, 'train', 'my.yaml', '--quiet', ...set);
  expect({ code: trained.code, stderr: trained.stderr }).toEqual({ code: 0, stderr: '' });
  const { code, stdout, stderr } = await tcts(folder, 'evaluate', 'runs/my', '--json');
  expect(code, stderr).toBe(0);
  const { scores } = JSON.parse(stdout);
  expect(scores.days).toBeGreaterThan(1000);
  for (const name of ['IC', 'RankIC']) {
    const standardError = scores[name] / scores[`${name}IR`] / Math.sqrt(scores.days);
    expect(Math.abs(scores[name])).toBeLessThan(2 * Math.abs(standardError));
  }

  const mapped = filesIn(page)['my.yaml'].replace('adjusted: adj_close', 'close: adj_close');
  writeFileSync(join(folder, 'wrong.yaml'), mapped);
  const refused = await tcts(folder, 'train', 'wrong.yaml', '--quiet', ...set);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/prices seem to be adjusted/);
}, 120_000);
