import {
  EFFECT_COLUMNS,
  effectNotes,
  effectRows,
  expectationNotes,
  type ProbeResult,
  recommendedStrategy,
} from '../report/probe.js';
import { textTable } from './text-table.js';

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
