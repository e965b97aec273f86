import { type Section, slug, text } from '../document.js';
import {
  EFFECT_COLUMNS,
  effectNotes,
  effectRows,
  expectationNotes,
  probeFigure,
  recommendedStrategy,
} from '../probe.js';
import type { ReportedProbe } from '../probes.js';
import { textColumn } from '../table.js';

/** What `tcts probe` has found: what siblings do to the main task, and what follows for the strategy. */
export function probeSection({ name, configuration, result }: ReportedProbe): Section {
  const { plan, recommendation } = result;
  const table = {
    id: `${slug(name)}-transfer-table`,
    title: `Transfer on ${plan.tasks[plan.main]}`,
    caption: [
      `Gain in the main task's validation performance over a branch of ${plan.length} updates, mean of ${plan.seeds.length} seeds;`,
      ...effectNotes(result),
    ].join(' '),
    columns: EFFECT_COLUMNS.map(textColumn),
    rows: effectRows(result).map((cells) => ({ cells })),
  };
  return {
    title: `Probe: ${configuration} (${name})`,
    blocks: [
      text(`${recommendation.reason} Recommended: ${recommendedStrategy(result)}`),
      text(expectationNotes(result).map(sentence).join(' ')),
      { kind: 'figure', figure: probeFigure(result, configuration, `${slug(name)}-transfer`) },
      { kind: 'table', table },
    ],
  };
}

function sentence(line: string): string {
  return line.startsWith('expected') ? `E${line.slice(1)}` : line;
}
