import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { writeReport } from '../../src/report/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { makeForecast } from './run-folders.js';

/** The report on two strategies, of which the second has `gains` over the first, one for each seed. */
async function reportOn(gains: readonly number[]): Promise<string> {
  const folder = temporaryFolder();
  for (const [i, gain] of gains.entries()) {
    const daily = [0.1, 0.02, 0.05, -0.03, 0.07, 0.04].map((value) => value + i / 1000);
    makeForecast(join(folder, `fixed-${i}`), { strategy: 'fixed', seed: i + 1, daily });
    const better = daily.map((value) => value + gain);
    makeForecast(join(folder, `learned-${i}`), { strategy: 'learned', seed: i + 1, daily: better });
  }
  const { markdown } = await writeReport(folder, { out: join(folder, 'report') });
  return readFileSync(markdown, 'utf8');
}

// Paired t-tests: t = 5 of .01 and .015 (1 degree of freedom, p = .13); of one seed there is none; t = 13 with 4 degrees.
it.each([
  ['two seeds', [0.01, 0.015], 'Undecided: with 2 seeds no method differs significantly from a baseline.'],
  ['one seed', [0.02], 'Undecided: with one seed nothing can be said about other seeds.'],
])('the table of results says that %s cannot decide', async (_, gains, sentence) => {
  expect(await reportOn(gains)).toContain(sentence);
});

it('nothing is said where the seeds decide', async () => {
  expect(await reportOn([0.02, 0.021, 0.025, 0.019, 0.027])).not.toContain('Undecided');
});
