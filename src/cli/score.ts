import type { Command } from 'commander';
import { registerCompare } from './score-compare.js';
import { registerForecast } from './score-forecast.js';
import { registerLatency } from './score-latency.js';
import { registerBleu, registerChrfAndTer } from './score-text.js';

/** `tcts score`: the metrics on files of the user's own. */
export function registerScore(program: Command): void {
  const score = program
    .command('score')
    .description('Score translations, latencies and forecasts from files.')
    .addHelpText(
      'after',
      `
Examples:
  tcts score bleu out.de test.de
  tcts score compare waitk.de tcts.de test.de
  tcts score latency instances.log --convention simuleval
  tcts score forecast predictions.csv --json`,
    );
  registerBleu(score);
  registerChrfAndTer(score);
  registerCompare(score);
  registerLatency(score);
  registerForecast(score);
}
