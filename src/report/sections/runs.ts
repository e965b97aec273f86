import { validationMeasure } from '../../run/index.js';
import { type Block, type Section, text } from '../document.js';
import type { Unreadable } from '../reader.js';
import type { FoundRuns, ReportedRun } from '../runs.js';
import type { DataSet } from '../settings.js';
import { fixed, type Table, textColumn } from '../table.js';

/** Every run of the folder: those in the tables, and those that are not, with the reason. */
export function runsSection(
  sets: readonly DataSet[],
  { setAside, candidates }: FoundRuns,
  unreadable: readonly Unreadable[],
): Section {
  const blocks: Block[] = [];
  if (setAside.length > 0) {
    blocks.push({ kind: 'table', table: setAsideTable(setAside) });
  } else {
    blocks.push(text('All runs of the folder are finished and sound.'));
  }
  if (unreadable.length > 0) blocks.push({ kind: 'table', table: unreadableTable(unreadable) });
  blocks.push({ kind: 'table', table: runsTable(sets) });
  if (candidates.length > 0) blocks.push({ kind: 'table', table: candidatesTable(candidates) });
  return { title: 'Runs', blocks };
}

function setAsideTable(setAside: FoundRuns['setAside']): Table {
  return {
    id: 'runs-set-aside',
    title: 'Runs that are not counted',
    caption: 'These runs are in no table and no figure.',
    columns: ['Run', 'State', 'Reason'].map(textColumn),
    rows: setAside.map(({ name, state, reason }) => ({ cells: [name, state, reason] })),
  };
}

function unreadableTable(unreadable: readonly Unreadable[]): Table {
  return {
    id: 'files-left-out',
    title: 'Files that could not be read',
    caption: 'What would have come from these files is missing above.',
    columns: ['Run', 'Reason'].map(textColumn),
    rows: unreadable.map(({ name, reason }) => ({ cells: [name, reason] })),
  };
}

function candidatesTable(candidates: FoundRuns['candidates']): Table {
  return {
    id: 'runs-candidates',
    title: 'Candidates',
    caption:
      'Runs of sweeps that settings were chosen by and that were not chosen. They are in no other table and no figure.',
    columns: ['Run', 'Group', 'Seed', 'Updates', 'Best validation'].map(textColumn),
    rows: candidates.map((run) => ({
      cells: [
        run.name,
        run.sweep?.group ?? '–',
        String(run.info.seed),
        String(run.result?.updates ?? '–'),
        bestValidation(run),
      ],
    })),
  };
}

function runsTable(sets: readonly DataSet[]): Table {
  const rows = sets.flatMap(({ title, settings }) =>
    settings.flatMap(({ label, main, runs }) =>
      runs.map((run) => ({
        cells: [
          run.name,
          title,
          label,
          String(main ?? '–'),
          String(run.info.seed),
          String(run.result?.updates ?? '–'),
          bestValidation(run),
          String(run.result?.best?.update ?? '–'),
        ],
      })),
    ),
  );
  const columns = ['Run', 'Data', 'Method', 'Main task', 'Seed', 'Updates', 'Best validation', 'at update'];
  return {
    id: 'runs',
    title: 'Finished runs',
    caption: 'Best validation: of the main task, where it was best.',
    columns: columns.map(textColumn),
    rows,
  };
}

/** `loss 0.0602`. */
function bestValidation({ config, result }: ReportedRun): string {
  const { name, shown } = validationMeasure(config);
  const figure = fixed(shown(result?.best?.performance ?? Number.NaN), 4);
  return figure === '–' ? figure : `${name.replace('validation ', '')} ${figure}`;
}
