import { type Block, type Section, text } from '../document.js';
import type { Unreadable } from '../reader.js';
import type { FoundRuns } from '../runs.js';
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
    rows: candidates.map(({ name, sweep, info, result }) => ({
      cells: [
        name,
        sweep?.group ?? '–',
        String(info.seed),
        String(result?.updates ?? '–'),
        fixed(result?.best?.performance ?? Number.NaN, 4),
      ],
    })),
  };
}

function runsTable(sets: readonly DataSet[]): Table {
  const rows = sets.flatMap(({ title, settings }) =>
    settings.flatMap(({ label, main, runs }) =>
      runs.map(({ name, info, result }) => ({
        cells: [
          name,
          title,
          label,
          String(main ?? '–'),
          String(info.seed),
          String(result?.updates ?? '–'),
          fixed(result?.best?.performance ?? Number.NaN, 4),
          String(result?.best?.update ?? '–'),
        ],
      })),
    ),
  );
  const columns = ['Run', 'Data', 'Method', 'Main task', 'Seed', 'Updates', 'Best validation', 'at update'];
  return {
    id: 'runs',
    title: 'Finished runs',
    caption: 'Best validation: performance on the main task, higher is better.',
    columns: columns.map(textColumn),
    rows,
  };
}
