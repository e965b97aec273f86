import { existsSync, realpathSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { z } from 'zod';
import { readJsonFile } from '../json-file.js';
import { figure } from './evaluations.js';
import type { ProbeResult } from './probe.js';
import type { Unreadable } from './reader.js';
import { foldersHolding } from './runs.js';

/** The file that `tcts probe` writes when it ends, and the one that it writes while it is at work. */
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
  for (const path of foldersHolding(folder, holdsProbe)) {
    const name = relative(folder, path) || basename(realpathSync(path));
    const file = join(path, RESULT);
    if (!existsSync(file)) {
      problems.push({ name, reason: 'a probe that has not been finished: the same command goes on with it' });
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
