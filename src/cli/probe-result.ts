import { join } from 'node:path';
import { writeFileAtomic } from '../files.js';
import { mean } from '../metrics/index.js';
import { csv, pngOf } from '../report/files.js';
import {
  EFFECT_COLUMNS,
  effectNotes,
  effectRows,
  expectationNotes,
  type ProbeResult,
  probeFigure,
  recommendedStrategy,
} from '../report/probe.js';
import { toolVersion } from '../run/index.js';
import { expectation, gainsBySeed, probeEffects, recommend } from '../schedule/index.js';
import { MAIN } from '../schedule/probe.js';
import { textTable } from '../text-table.js';
import type { ProbeRun } from './probe-run.js';

/** What the branches say. */
export function resultOf({ plan, branches, speed }: ProbeRun, strategy: string): ProbeResult {
  const effects = probeEffects(branches, plan);
  const recommendation = recommend(effects, plan);
  return {
    plan,
    mainGain: mean(gainsBySeed(branches, plan).get(MAIN)!),
    effects,
    recommendation,
    expectation: expectation(recommendation, branches, plan),
    configured: { strategy, adds: speed.strategy, update: speed.update },
  };
}

/** `probe.json`, and the matrix of transfer as `transfer.svg`, `.png` and `.csv`. */
export function writeResult(folder: string, result: ProbeResult, name: string): void {
  const { caption, svg, data } = probeFigure(result, name, 'transfer');
  writeFileAtomic(join(folder, 'transfer.svg'), svg);
  writeFileAtomic(join(folder, 'transfer.png'), pngOf(svg));
  writeFileAtomic(join(folder, 'transfer.csv'), csv(data.columns, data.rows));
  writeFileAtomic(
    join(folder, 'probe.json'),
    `${JSON.stringify({ format: 'tcts probe 1', version: toolVersion, configuration: name, caption, ...result }, null, 2)}\n`,
  );
}

/** Table, answer and expectation, as they are printed. */
export function probeText(result: ProbeResult): string {
  return [
    `Gain in the main task's validation performance over a branch, mean of ${result.plan.seeds.length} seeds:`,
    textTable(EFFECT_COLUMNS, effectRows(result)),
    ...effectNotes(result),
    '',
    result.recommendation.reason,
    `recommended: ${recommendedStrategy(result)}`,
    ...expectationNotes(result),
  ].join('\n');
}
