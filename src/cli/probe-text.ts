import { fixed, formatP, signed } from '../report/table.js';
import {
  type Effect,
  type Expectation,
  type Interval,
  isCertain,
  isVisible,
  type ProbePlan,
  type Recommendation,
  smallestVisible,
} from '../schedule/index.js';
import { percent, plural } from './probe-run.js';
import { textTable } from './text-table.js';

/** What a probe has found; `probe.json`. */
export interface ProbeResult {
  readonly plan: ProbePlan;
  /** Mean improvement of the main task over a branch that trains it alone. */
  readonly mainGain: number;
  readonly effects: readonly Effect[];
  readonly recommendation: Recommendation;
  readonly expectation: Expectation;
  /** What the strategy of the configuration adds to an update, and what an update takes without it. */
  readonly configured: { readonly strategy: string; readonly adds: number; readonly update: number };
}

/** Table, answer and expectation, as they are printed. */
export function probeText(result: ProbeResult): string {
  const { plan, mainGain, effects, recommendation } = result;
  const number = effectFormat(effects);
  const smallest = smallestVisible(effects, plan.seeds.length);
  const head = ['comparison', 'gain', 'relative', '95 % interval', 'p (Holm)', ''];
  const rows = effects.map((effect) => [
    comparison(effect),
    number(effect.mean),
    `${signed(100 * effect.share, 1)} %`,
    `${number(effect.low)} to ${number(effect.high)}`,
    formatP(effect.p),
    isVisible(effect) ? (effect.mean > 0 ? 'helps' : 'hurts') : isCertain(effect) ? 'too small to matter' : '',
  ]);
  const keys = Object.entries(recommendation.strategy).map(([key, value]) => `${key}: ${value}`);
  return [
    `Gain in the main task's validation performance over a branch, mean of ${plan.seeds.length} seeds:`,
    textTable(head, rows),
    'relative: to the largest change over a branch. Intervals are for each gain alone, p for all together.',
    `The main task alone gained ${number(mainGain)} over a branch; differences below about ${number(smallest).replace('+', '')} could not have been seen.`,
    ...(plan.length < SHORT
      ? [
          `Branches of ${plural(plan.length, 'update')} say little about a whole training: a larger --budget makes them longer.`,
        ]
      : []),
    '',
    recommendation.reason,
    `recommended: strategy: {${keys.join(', ')}}`,
    expectationText(result),
  ].join('\n');
}

/** Updates of a branch below which the reader is warned. */
const SHORT = 4;

/** With a sign, and as many digits as the intervals justify. */
export function effectFormat(effects: readonly Effect[]): (value: number) => string {
  const halves = effects.map(({ low, high }) => (high - low) / 2).filter((half) => half > 0);
  const typical = halves.toSorted((a, b) => a - b)[halves.length >> 1] ?? 1;
  const digits = Math.min(8, Math.max(0, 1 - Math.floor(Math.log10(typical))));
  return (value) => signed(value, digits);
}

function comparison({ kind, task }: Effect): string {
  if (kind === 'uniform') return 'all tasks alike, against main alone';
  return kind === 'added' ? `half ${task}, against main alone` : `all tasks, against all but ${task}`;
}

function expectationText({ recommendation, expectation, configured }: ProbeResult): string {
  const { strategy, arm } = recommendation;
  const { updates, against } = expectation;
  const lines = [`expected time: ${timeText(updates, arm, against)}.`];
  if (strategy.name === 'influence') lines.push('influence takes time of its own for measuring: docs/strategies.md.');
  const { strategy: name, adds, update } = configured;
  if (name !== strategy.name && adds > 0.01 * update) {
    lines.push(
      `The configured strategy ${name} adds ${milliseconds(adds)} to every update of ${milliseconds(update)}.`,
    );
  }
  return lines.join('\n');
}

/** The other arm's improvement may be anything; the recommended one's is positive where a ratio is given. */
function timeText(updates: Interval | undefined, arm: string, against: string): string {
  if (updates === undefined) return 'the branches are too short to tell what it saves or costs';
  const { mean: factor, low, high } = updates;
  if (factor <= 0) return `the main task improves with "${arm}" and gets no better with "${against}"`;
  if (Math.abs(factor - 1) < 0.01 && low > 0.9 && high < 1.1) return `"${arm}" needs as many updates as "${against}"`;
  const change = factor < 1 ? `saves ${percent(1 - factor)}` : `costs ${percent(factor - 1)}`;
  const sure = high < 1 || low > 1 ? change : `${change}, which may be chance`;
  return `for the same improvement "${arm}" needs ${fixed(factor, 2)} times the updates of "${against}" (${fixed(Math.max(0, low), 2)} to ${fixed(high, 2)}): ${sure}`;
}

function milliseconds(seconds: number): string {
  return `${Number((1000 * seconds).toPrecision(2))} ms`;
}
