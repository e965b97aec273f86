import { existsSync } from 'node:fs';
import { join } from 'node:path';
import * as Plot from '@observablehq/plot';
import { z } from 'zod';
import { readJsonFile } from '../files.js';
import { figure, foldersHolding } from '../run/index.js';
import {
  type Effect,
  type Expectation,
  type Interval,
  isCertain,
  isVisible,
  type ProbePlan,
  type Recommendation,
  smallestVisible,
  strategyNamed,
} from '../schedule/index.js';
import { formatP, type Section, signed, slug, text, textColumn, toDigits } from './document.js';
import { draw, type Figure, seriesStyle, textWidth } from './figures/figure.js';
import type { Unreadable } from './reader.js';

/** What a probe has found. */
export interface ProbeResult {
  readonly plan: Pick<ProbePlan, 'tasks' | 'main' | 'seeds' | 'checkpoints' | 'length'>;
  /** Mean improvement of the main task over a branch that trains it alone. */
  readonly mainGain: number;
  readonly effects: readonly Effect[];
  readonly recommendation: Pick<Recommendation, 'strategy' | 'arm' | 'reason'>;
  readonly expectation: Expectation;
  /** What the strategy of the configuration adds to an update, and what an update takes without it. */
  readonly configured: { readonly strategy: string; readonly adds: number; readonly update: number };
}

/** Columns of `effectRows`. */
export const EFFECT_COLUMNS = ['comparison', 'gain', 'relative', '95 % interval', 'p (Holm)', ''];

/** The effects, a row each. */
export function effectRows({ effects }: ProbeResult): string[][] {
  const number = effectFormat(effects);
  return effects.map((effect) => [
    comparison(effect),
    number(effect.mean),
    `${signed(100 * effect.share, 1)} %`,
    `${number(effect.low)} to ${number(effect.high)}`,
    formatP(effect.p),
    isVisible(effect) ? (effect.mean > 0 ? 'helps' : 'hurts') : isCertain(effect) ? 'too small to matter' : '',
  ]);
}

/** Notes on reading the table. */
export function effectNotes({ plan, mainGain, effects }: ProbeResult): string[] {
  const number = effectFormat(effects);
  const smallest = number(smallestVisible(effects, plan.seeds.length)).replace('+', '');
  const notes = [
    'relative: to the largest change over a branch. Intervals are for each gain alone, p for all together.',
    `The main task alone gained ${number(mainGain)} over a branch; differences below about ${smallest} could not have been seen.`,
  ];
  if (plan.length >= SHORT) return notes;
  const short = `${plan.length} ${plan.length === 1 ? 'update' : 'updates'}`;
  return [...notes, `Branches of ${short} say little about a whole training: a larger --budget makes them longer.`];
}

/** Updates of a branch below which the reader is warned. */
const SHORT = 4;

/** The recommended strategy in the form of a configuration. */
export function recommendedStrategy({ recommendation }: ProbeResult): string {
  const keys = Object.entries(recommendation.strategy).map(([key, value]) => `${key}: ${value}`);
  return `strategy: {${keys.join(', ')}}`;
}

/** What the recommendation is expected to save or cost. */
export function expectationNotes({ recommendation, expectation, configured }: ProbeResult): string[] {
  const { strategy, arm } = recommendation;
  const lines = [`expected time: ${timeText(expectation.updates, arm, expectation.against)}.`];
  if (strategyNamed(strategy.name)?.extraCost !== undefined) {
    lines.push(`${strategy.name} takes extra time for measuring: docs/strategies.md.`);
  }
  const { strategy: name, adds, update } = configured;
  if (name !== strategy.name && adds > 0.01 * update) {
    lines.push(
      `The configured strategy ${name} adds ${milliseconds(adds)} to every update of ${milliseconds(update)}.`,
    );
  }
  return lines;
}

/** The transfer matrix; `name` is that of the configuration. */
export function probeFigure({ plan, effects }: ProbeResult, name: string, id: string): Figure {
  const main = plan.tasks[plan.main];
  return transferFigure(
    effects.map((effect) => ({ ...effect, visible: isVisible(effect) })),
    {
      id,
      title: `What siblings do to ${main} (${name})`,
      caption: `Gain in the validation performance of ${main} over branches of ${plan.length} updates, ${plan.seeds.length} seeds, ${plan.checkpoints} checkpoint(s).`,
    },
    effectFormat(effects),
  );
}

/** With a sign, and as many digits as the intervals justify. */
function effectFormat(effects: readonly Effect[]): (value: number) => string {
  const halves = effects.map(({ low, high }) => (high - low) / 2).filter((half) => half > 0);
  const typical = halves.toSorted((a, b) => a - b)[halves.length >> 1] ?? 1;
  const digits = Math.min(8, Math.max(0, 1 - Math.floor(Math.log10(typical))));
  return (value) => signed(value, digits);
}

function comparison({ kind, task }: Effect): string {
  if (kind === 'uniform') return 'all tasks alike, against main alone';
  return kind === 'added' ? `half ${task}, against main alone` : `all tasks, against all but ${task}`;
}

/** The other arm's improvement may have any sign; the recommended one's is positive if a ratio is given. */
function timeText(updates: Interval | undefined, arm: string, against: string): string {
  if (updates === undefined) return 'the branches are too short to show what it saves or costs';
  const { mean: factor, low, high } = updates;
  if (factor <= 0) return `the main task improves with "${arm}" but not with "${against}"`;
  if (Math.abs(factor - 1) < 0.01 && low > 0.9 && high < 1.1) return `"${arm}" needs as many updates as "${against}"`;
  const change = factor < 1 ? `saves ${percent(1 - factor)}` : `costs ${percent(factor - 1)}`;
  const sure = high < 1 || low > 1 ? change : `${change}, which may be chance`;
  return `for the same improvement "${arm}" needs ${toDigits(factor, 2)} times the updates of "${against}" (${toDigits(Math.max(0, low), 2)} to ${toDigits(high, 2)}): ${sure}`;
}

function percent(share: number): string {
  return `${Number((100 * share).toPrecision(2))} %`;
}

function milliseconds(seconds: number): string {
  return `${Number((1000 * seconds).toPrecision(2))} ms`;
}

/** What a sibling does to the main task, as `tcts probe` measures it. */
export interface Transfer {
  readonly kind: 'uniform' | 'added' | 'mixed';
  /** The sibling; undefined: all of them. */
  readonly task?: string;
  readonly mean: number;
  readonly low: number;
  readonly high: number;
  /** Corrected for the number of effects. */
  readonly p: number;
  /** Whether p is small enough. */
  readonly visible: boolean;
}

/** The transfer matrix on the main task: a row for each sibling, with the same numbers and their intervals next to it. */
export function transferFigure(
  effects: readonly Transfer[],
  about: Pick<Figure, 'id' | 'title' | 'caption'>,
  number: (value: number) => string,
): Figure {
  const cells = effects.map((effect) => ({
    ...effect,
    row: effect.task ?? ALL,
    column: effect.kind === 'mixed' ? MIXED : ADDED,
    label: `${number(effect.mean)}${effect.visible ? ' *' : ''}`,
  }));
  const rows = [...new Set(cells.map(({ row }) => row))].filter((row) => row !== ALL).concat(ALL);
  const columns = [ADDED, MIXED].filter((title) => cells.some(({ column }) => column === title));
  const largest = Math.max(...cells.map(({ mean }) => Math.abs(mean))) || 1;
  const marginLeft = Math.ceil(Math.max(...rows.map((row) => textWidth(row, 12))) + 16);
  const height = 34 * rows.length + 70;
  const y = { type: 'band', domain: rows, label: null, padding: 0.1 } as const;
  const matrix: Plot.PlotOptions = {
    marginLeft,
    x: { domain: columns, label: null, padding: 0.05 },
    y,
    // Blue helps, orange hurts (Okabe and Ito); effects that are not significant are pale and have no star.
    marks: [
      Plot.cell(cells, {
        x: 'column',
        y: 'row',
        fill: (d: Cell) => (d.mean >= 0 ? '#0072b2' : '#e69f00'),
        fillOpacity: (d: Cell) => (0.08 + 0.42 * Math.abs(d.mean / largest)) * (d.visible ? 1 : 0.5),
        stroke: (d: Cell) => (d.visible ? '#222222' : 'none'),
      }),
      Plot.text(cells, { x: 'column', y: 'row', text: 'label' }),
    ],
    opacity: { type: 'identity' },
    color: { type: 'identity' },
  };
  const ends = cells.flatMap(({ low, high }) => [low, high]);
  const series = columns.map((title, i) => {
    const own = cells.filter(({ column }) => column === title);
    const { color, symbol } = seriesStyle(i);
    const dy = columns.length === 1 ? 0 : i === 0 ? -5 : 5;
    return [
      Plot.ruleY(own, { y: 'row', x1: 'low', x2: 'high', stroke: color, strokeWidth: 1.6, dy }),
      Plot.dot(own, {
        y: 'row',
        x: 'mean',
        symbol,
        r: 4,
        dy,
        stroke: color,
        fill: (d: Cell) => (d.visible ? color : '#ffffff'),
      }),
    ];
  });
  const intervals: Plot.PlotOptions = {
    marginLeft,
    // Room for half of the last label.
    marginRight: 32,
    x: {
      label: 'gain in main-task validation performance',
      labelAnchor: 'center',
      labelArrow: 'none',
      domain: [Math.min(0, ...ends), Math.max(0, ...ends)],
      nice: true,
      ticks: 5,
      grid: true,
    },
    y,
    color: { type: 'identity' },
    marks: [Plot.ruleX([0]), ...series.flat()],
  };
  const width = marginLeft + 20 + 120 * columns.length;
  const panels = [
    { title: 'transfer on the main task (* visible)', width: Math.max(width, 250), height, plot: matrix },
    { title: '95 % intervals (filled: visible)', width: marginLeft + 330, height, plot: intervals },
  ];
  const legend = columns.map((label, i) => ({ label, style: { ...seriesStyle(i), dash: 'none' } }));
  return {
    ...about,
    svg: draw(about.title, [panels], { legend }),
    data: {
      columns: ['comparison', 'sibling', 'mean', 'low', 'high', 'p (Holm)'],
      rows: cells.map(({ column, row, mean, low, high, p }) => [column, row, mean, low, high, p]),
    },
  };
}

type Cell = Transfer & { readonly row: string; readonly column: string; readonly label: string };

const ALL = 'all siblings';
const ADDED = 'added to main';
const MIXED = 'in the mix';

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

/** The file that `tcts probe` writes when it ends, and the one it writes while it runs. */
const [RESULT, BRANCHES] = ['probe.json', 'branches.jsonl'];

/** What a report shows of `probe.json`. */
const probeSchema = z.object({
  format: z.literal('tcts probe 1'),
  configuration: z.string(),
  plan: z.object({
    tasks: z.array(z.string()).min(2),
    main: z.int().min(0),
    seeds: z.array(z.number()).min(2),
    checkpoints: z.int().min(1),
    length: z.int().min(1),
  }),
  mainGain: figure,
  effects: z
    .array(
      z.object({
        kind: z.enum(['uniform', 'added', 'mixed']),
        task: z.string().optional(),
        ...{ mean: figure, share: figure, low: figure, high: figure, p: figure },
      }),
    )
    .min(1),
  recommendation: z.object({ strategy: z.looseObject({ name: z.string() }), arm: z.string(), reason: z.string() }),
  expectation: z.object({
    against: z.string(),
    updates: z.object({ mean: figure, low: figure, high: figure }).optional(),
  }),
  configured: z.object({ strategy: z.string(), adds: figure, update: figure }),
});

/** A probe that was finished. */
export interface ReportedProbe {
  /** Path of its folder within the reported one. */
  readonly name: string;
  /** File name of the configuration that was probed. */
  readonly configuration: string;
  readonly result: ProbeResult;
}

export interface FoundProbes {
  readonly probes: readonly ReportedProbe[];
  /** Probes that are not finished, or whose result could not be read. */
  readonly problems: readonly Unreadable[];
}

/** All probes in a folder, at any depth, by name. */
export function findProbes(folder: string): FoundProbes {
  const probes: ReportedProbe[] = [];
  const problems: Unreadable[] = [];
  const holdsProbe = (names: readonly string[]) => names.includes(RESULT) || names.includes(BRANCHES);
  for (const { path, name } of foldersHolding(folder, holdsProbe)) {
    const file = join(path, RESULT);
    if (!existsSync(file)) {
      problems.push({ name, reason: 'an unfinished probe: run the same command again to continue it' });
      continue;
    }
    try {
      const { configuration, ...result } = readJsonFile(file, probeSchema);
      probes.push({ name, configuration, result });
    } catch (error) {
      problems.push({ name, reason: (error as Error).message });
    }
  }
  return { probes, problems };
}
