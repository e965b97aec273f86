import { join } from 'node:path';
import { z } from 'zod';
import { InputError } from '../errors.js';
import { type ChoiceRecord, readSweep, type SweepRecord, WAIT_K_STAR } from '../sweep/record.js';
import type { Unreadable } from './reader.js';
import type { DataSet, Setting } from './settings.js';

/** A sweep among whose runs are some of the report. */
export interface FoundSweep {
  /** Where its run folders are. */
  readonly folder: string;
  readonly record: SweepRecord;
}

/** What a sweep says of one of its runs. */
export interface SweepPlace {
  readonly group: string;
  /** It was made to choose settings by, and is none of the results. */
  readonly candidate: boolean;
  /** Keys whose values were chosen by validation or taken from other runs. */
  readonly chosenKeys: readonly string[];
}

/** Reads the record of every folder once. One that cannot be read is noted, and its runs are taken as they are. */
export class SweepReader {
  readonly problems: Unreadable[] = [];
  private readonly known = new Map<string, { found: FoundSweep; places: Map<string, SweepPlace> } | undefined>();

  get sweeps(): FoundSweep[] {
    return [...this.known.values()].flatMap((sweep) => sweep?.found ?? []);
  }

  /** Where the run with that name in that folder stands, if a sweep has made it. */
  place(folder: string, name: string): SweepPlace | undefined {
    if (!this.known.has(folder)) this.known.set(folder, this.read(folder));
    return this.known.get(folder)?.places.get(name);
  }

  private read(folder: string): { found: FoundSweep; places: Map<string, SweepPlace> } | undefined {
    try {
      const record = readSweep(folder);
      if (record === undefined) return undefined;
      const chosen = chosenKeys(record, folder);
      const places = record.runs.map(({ name, group, candidate }): [string, SweepPlace] => [
        name,
        { group, candidate, chosenKeys: chosen.get(group) ?? [] },
      ]);
      return { found: { folder, record }, places: new Map(places) };
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      this.problems.push({ name: 'sweep.json', reason: error.message });
      return undefined;
    }
  }
}

/**
 * Adds the paper's wait-k* where a sweep has chosen it: for each k the runs with the wait that was best on wait-k in
 * validation, as a method of its own. These runs stay what they are besides.
 */
export function withBestWaits(data: DataSet, sweeps: readonly FoundSweep[]): DataSet {
  const added = sweeps.flatMap(({ folder, record }) => {
    const choices = record.choices.filter(({ step }) => step === WAIT_K_STAR);
    return choices.flatMap((choice) => bestWait(data, folder, choice) ?? []).map((setting) => ({ setting, record }));
  });
  const isAlone = ({ main }: Setting): boolean =>
    added.filter(({ setting }) => setting.main === main).length === 1 &&
    data.settings.every(({ label }) => label !== LABEL);
  const alone = added.every(({ setting }) => isAlone(setting));
  const chosen = added.map(({ setting, record }) => ({
    ...setting,
    label: alone ? LABEL : `${LABEL} (${record.name})`,
  }));
  const place = data.settings.findLastIndex(({ strategy }) => strategy === 'fixed') + 1;
  return { ...data, settings: data.settings.toSpliced(place, 0, ...chosen) };
}

/** Whether a key of the configuration was chosen by validation, or taken from other runs. */
export function isChosen(key: string, chosen: Iterable<string>): boolean {
  return [...chosen].some((name) => key === name || key.startsWith(`${name}.`));
}

const LABEL = 'wait-k*';

function bestWait({ settings }: DataSet, folder: string, choice: ChoiceRecord): Setting | undefined {
  const winner = choice.candidates.find(({ labels }) => JSON.stringify(labels) === JSON.stringify(choice.chosen));
  const folders = winner?.runs.map((name) => join(folder, name)) ?? [];
  const trained = settings.find(({ runs }) => runs.some((run) => folders.includes(run.folder)));
  if (winner === undefined || trained === undefined) return undefined;
  const main = Number(choice.for.main);
  const task = trained.keys.get('strategy.task');
  const performance = winner.score ?? Number.NaN;
  return {
    label: LABEL,
    strategy: 'best-fixed',
    main,
    trainedFor: typeof task === 'number' ? task : trained.main,
    keys: new Map([...trained.keys, ['problem.main', main], ['strategy.name', 'best-fixed']]),
    // How good they are on wait-k in validation is what they were chosen by, not what their own training ended with.
    runs: trained.runs
      .filter((run) => folders.includes(run.folder))
      .map((run) => ({ ...run, result: run.result && { ...run.result, best: { performance, update: 0 } } })),
  };
}

const gridSchema = z.object({
  groups: z.array(
    z.object({
      name: z.string(),
      select: z.object({ over: z.record(z.string(), z.unknown()) }).optional(),
      atBestWait: z.string().optional(),
      warmStart: z.string().optional(),
    }),
  ),
});

/** By group. */
function chosenKeys({ grid }: SweepRecord, folder: string): Map<string, string[]> {
  const parsed = gridSchema.safeParse(grid.values);
  if (!parsed.success)
    throw new InputError('expected the grid of a sweep', { file: join(folder, 'sweep.json'), key: 'grid' });
  return new Map(
    parsed.data.groups.map(({ name, select, atBestWait, warmStart }) => [
      name,
      [
        ...Object.keys(select?.over ?? {}),
        ...(atBestWait === undefined ? [] : [atBestWait]),
        ...(warmStart === undefined ? [] : ['problem.warmStart']),
      ],
    ]),
  );
}
