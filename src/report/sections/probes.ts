import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readJsonFile } from '../../files.js';
import { figure, foldersHolding } from '../../run/index.js';
import { type Section, slug, text, textColumn } from '../document.js';
import {
  EFFECT_COLUMNS,
  effectNotes,
  effectRows,
  expectationNotes,
  type ProbeResult,
  probeFigure,
  recommendedStrategy,
} from '../probe.js';
import type { Unreadable } from '../reader.js';

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
