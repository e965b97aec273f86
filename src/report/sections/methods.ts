import { InputError } from '../../errors.js';
import { groupBy } from '../../metrics/statistics.js';
import { kindOf } from '../../problems/index.js';
import { readDataSummary, validationMeasure } from '../../run/index.js';
import type { ChoiceRecord } from '../../sweep/record.js';
import { readModelSummary } from '../../translate/model/config.js';
import { type Block, type Section, slug, type Table, text, textColumn, toDigits } from '../document.js';
import { shownValue, varyingKeys } from '../labels.js';
import type { Unreadable } from '../reader.js';
import type { FoundRuns, FoundSweep, ReportedRun } from '../runs.js';
import { type DataSet, labelsOf, mainsOf, type Setting } from '../settings.js';

/** What is needed to repeat the experiments: data and their sizes, seeds, versions, commands. */
export function methodsSection(sets: readonly DataSet[], sweeps: readonly FoundSweep[]): Section {
  const blocks = sets.flatMap((data): Block[] => [
    text(paragraphOf(data)),
    ...settingsTable(data),
    ...commandsOf(data),
  ]);
  return { title: 'Methods', blocks: [...blocks, ...sweeps.flatMap(sweepBlocks)] };
}

function paragraphOf(data: DataSet): string {
  const runs = data.settings.flatMap((setting) => setting.runs);
  const seeds = distinct(runs.map(({ info }) => info.seed)).sort((a, b) => a - b);
  const mains = mainsOf(data).filter((main) => main !== undefined);
  const versions = distinct(
    runs.map(({ info }) => `tcts ${info.version}, Node ${info.node}, ONNX Runtime ${info.onnxruntime}`),
  );
  const sentences = [
    `${data.title}: ${sizesOf(data)}`,
    mains.length > 0 ? `Main task${mains.length === 1 ? '' : 's'}: ${mains.join(', ')}.` : '',
    `Methods: ${labelsOf(data).join('; ')}.`,
    `Training: ${lengthOf(data.settings)}.`,
    `${runs.length} finished run${runs.length === 1 ? '' : 's'} with seed${seeds.length === 1 ? '' : 's'} ${seeds.join(', ')}; the model of each run is the one that was best on validation data.`,
    `Made with ${versions.join('; ')}.`,
  ];
  return sentences.filter((sentence) => sentence !== '').join(' ');
}

/** The keys in which methods differ, beyond what their names say. */
function settingsTable(data: DataSet): Block[] {
  const keys = varyingKeys(data.settings);
  if (keys.length === 0) return [];
  const rows = [...groupBy(data.settings, ({ label }) => label)].map(([label, settings]) => ({
    cells: [label, ...keys.map((key) => distinct(settings.map((one) => shownValue(one.keys.get(key)))).join(', '))],
  }));
  const table: Table = {
    id: `${slug(data.title)}-settings`,
    title: `Settings, ${data.title}`,
    caption: 'All keys of the configuration in which methods differ, except the strategy, the main task and the seed.',
    columns: ['Method', ...keys].map(textColumn),
    rows,
  };
  return [{ kind: 'table', table }];
}

/** The sizes of the data, as far as the run folders record them. */
function sizesOf({ kind, settings }: DataSet): string {
  const runs = settings.flatMap((setting) => setting.runs);
  const { evaluations, schema } = kindOf({ kind }) ?? {};
  if (evaluations === 'forecasts') {
    const { panel, parts } = firstOf(runs, readDataSummary) ?? {};
    if (panel === undefined) return UNKNOWN;
    const extents = Object.entries(parts ?? {}).map(
      ([name, { samples, days, first, last }]) =>
        `${name} ${count(samples)} samples on ${count(days)} days (${first} to ${last})`,
    );
    const size = `${count(panel.stocks)} stocks on ${count(panel.days)} days`;
    return extents.length === 0 ? `${size}.` : `${size}; ${extents.join(', ')}.`;
  }
  if (evaluations === 'translations') {
    const vocabulary = firstOf(runs, (run) => readModelSummary(run)?.model.vocabulary);
    const pairs = settings[0].keys.get('problem.data.pairs');
    const splits = runs.flatMap(({ evaluations }) =>
      evaluations.translations.map(({ split, sentences }) => `${split} ${count(sentences)} sentences`),
    );
    const known = [
      ...(typeof pairs === 'number' ? [`train ${count(pairs)} sentence pairs`] : []),
      ...distinct(splits),
      ...(vocabulary ? [`vocabularies of ${count(vocabulary.source)} and ${count(vocabulary.target)} entries`] : []),
    ];
    return known.length > 0 ? `${known.join(', ')}.` : UNKNOWN;
  }
  if (schema !== undefined && !('data' in schema.shape))
    return 'a synthetic problem, whose data are drawn from the seed.';
  return UNKNOWN;
}

const UNKNOWN = 'the runs do not record the size of the data.';

/** `15 episodes of 250 updates`, or the range where settings differ. */
function lengthOf(settings: readonly Setting[]): string {
  const [episodes, steps] = ['training.episodes', 'training.steps'].map((key) =>
    distinct(settings.map(({ keys }) => Number(keys.get(key))))
      .sort((a, b) => a - b)
      .join(' or '),
  );
  const patience = distinct(settings.map(({ keys }) => Number(keys.get('earlyStopping.patience') ?? 0)))
    .filter((validations) => validations > 0)
    .join(' or ');
  const stopping = patience === '' ? '' : `, or until ${patience} validations in a row without improvement`;
  return `${episodes} episodes of ${steps} updates${stopping}`;
}

/** A command for each setting, with the seeds that it was run with; runs of a sweep have the command of the sweep. */
function commandsOf({ settings }: DataSet): Block[] {
  const alone = settings.filter(({ runs }) => runs.some(({ sweep }) => sweep === undefined));
  const lines = alone.map(({ label, main, runs }) => {
    // A resumed run records only the command that resumed it.
    const run = runs.find(({ info }) => !info.command.includes('--resume')) ?? runs[0];
    const seeds = runs.map(({ info }) => info.seed).join(', ');
    return `${commandLine(run)}  # ${label}${main === undefined ? '' : `, main task ${main}`}; seed${runs.length === 1 ? '' : 's'} ${seeds}`;
  });
  const more = lines.length - MOST_COMMANDS;
  if (more > 0) lines.splice(MOST_COMMANDS, more, `# and ${more} more, in run.json of each run`);
  return lines.length === 0 ? [] : [{ kind: 'commands', lines }];
}

const MOST_COMMANDS = 40;

/** How a sweep was run, and what it has chosen. */
function sweepBlocks({ record }: FoundSweep): Block[] {
  const { name, grid, choices } = record;
  const data = grid.data === undefined ? [] : ['--data', grid.data];
  const sets = (grid.set ?? []).flatMap((set) => ['--set', withoutPassword(set)]);
  const command = ['tcts', 'sweep', grid.file, ...data, ...sets];
  const blocks: Block[] = [{ kind: 'commands', lines: [`${command.map(quoted).join(' ')}  # ${name}`] }];
  if (choices.length === 0) return blocks;
  const inWords = (labels: Readonly<Record<string, string>>): string =>
    Object.entries(labels)
      .map(([key, value]) => `${key} ${value}`)
      .join(', ') || '–';
  const hasRungs = choices.some(({ candidates }) => candidates.some(({ rungs }) => rungs !== undefined));
  const rows = choices.flatMap(({ step, for: where, candidates, chosen }) =>
    candidates.map(({ labels, score, runs, rungs }, i) => ({
      cells: [
        step,
        inWords(where),
        inWords(labels),
        toDigits(score ?? Number.NaN, 4),
        ...(hasRungs ? [rungs === undefined ? 'all' : count(rungs.at(-1)?.updates ?? 0)] : []),
        String(runs.length),
        JSON.stringify(labels) === JSON.stringify(chosen) ? 'chosen' : '',
      ],
      rule: i === 0,
    })),
  );
  const table: Table = {
    id: `${slug(name)}-choices`,
    title: `Choices by validation, ${name}`,
    caption:
      'Settings that the sweep chose from, and their validation performance (minus the loss, unless the configuration ' +
      'measures something else): for wait-k* that of models trained on one wait, measured on wait-k. Mean over the ' +
      `runs; higher is better.${hasRungs ? ' After the updates at which the search stopped it.' : ''}${looksInWords(choices)}`,
    columns: ['Choice', 'For', 'Candidate', 'Validation', ...(hasRungs ? ['Updates'] : []), 'Runs', ''].map(textColumn),
    rows,
  };
  return [...blocks, { kind: 'table', table }];
}

/** How many scores were compared before a choice, and what that means. */
function looksInWords(choices: readonly ChoiceRecord[]): string {
  const looks = choices.flatMap((choice) => choice.looks ?? []);
  if (looks.length === 0) return '';
  const sum = (key: 'configurations' | 'scores') => looks.reduce((total, look) => total + look[key], 0);
  const of = looks.length === 1 ? '' : ` in ${looks.length} choices`;
  return (
    ` Looked at${of}: ${count(sum('configurations'))} configurations, ${count(sum('scores'))} validation scores. The ` +
    'score of the chosen one is the best of these and therefore optimistic; a p-value on validation data ' +
    'is multiplied by their number (Bonferroni). Test data decided nothing here, and tests on them need no ' +
    'correction for it.'
  );
}

/** The command as typed, without passwords in URLs. */
export function commandLine({ info }: Pick<ReportedRun, 'info'>): string {
  const [, , ...args] = info.command;
  return ['tcts', ...args.map((arg) => quoted(withoutPassword(String(arg))))].join(' ');
}

function withoutPassword(arg: string): string {
  return arg.replace(/(\w+:\/\/)[^/@\s]*@/g, '$1…@');
}

function quoted(arg: string): string {
  return /^[\w./:=,@%+…-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", "'\\''")}'`;
}

/** The content from the first run whose file exists and is valid. */
function firstOf<T>(runs: readonly ReportedRun[], read: (run: string) => T | undefined): T | undefined {
  for (const { folder } of runs) {
    try {
      const found = read(folder);
      if (found !== undefined) return found;
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
    }
  }
  return undefined;
}

function distinct<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}

function count(value: number): string {
  return value.toLocaleString('en');
}

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
    blocks.push(text('All runs of the folder are finished and valid.'));
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
    caption: 'Anything based on these files is missing above.',
    columns: ['Run', 'Reason'].map(textColumn),
    rows: unreadable.map(({ name, reason }) => ({ cells: [name, reason] })),
  };
}

function candidatesTable(candidates: FoundRuns['candidates']): Table {
  return {
    id: 'runs-candidates',
    title: 'Candidates',
    caption:
      'Runs of sweeps that were candidates for settings and not chosen. They are in no other table and no figure.',
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
          `${run.result?.updates ?? '–'}${run.result?.stoppedEarly ? ', stopped early' : ''}`,
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
    caption: 'Best validation: the best result on the main task.',
    columns: columns.map(textColumn),
    rows,
  };
}

/** `loss 0.0602`. */
function bestValidation({ config, info, result }: ReportedRun): string {
  const { name, shown } = validationMeasure(config, info);
  const figure = toDigits(shown(result?.best?.performance ?? Number.NaN), 4);
  return figure === '–' ? figure : `${name.replace('validation ', '')} ${figure}`;
}
