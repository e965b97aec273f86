import { basename, join, resolve } from 'node:path';
import { InputError } from '../errors.js';
import { strategies } from '../schedule/index.js';
import { type Section, text } from './document.js';
import { type ReportFiles, writeFiles } from './files.js';
import { type FoundProbes, findProbes, probeSection } from './probe.js';
import { SeriesReader } from './reader.js';
import { type FoundRuns, findRuns, withBestWaits, withSharedRuns } from './runs.js';
import { forecastSection } from './sections/forecast.js';
import { methodsSection, runsSection } from './sections/methods.js';
import { dataInWords, otherDataSection, separateData } from './sections/other-data.js';
import { policySections } from './sections/policies.js';
import { otherSection } from './sections/results.js';
import { schedulingSection } from './sections/scheduling.js';
import { trainingSection } from './sections/training.js';
import { translationSection } from './sections/translation.js';
import { groupRuns } from './settings.js';
import { type ReportView, requireKnown, viewOf } from './view.js';

export type { ReportFiles } from './files.js';

/** Where a report goes, and what it compares with. */
export interface ReportOptions {
  /** Where the report is written. Default `report` in the folder. */
  readonly out?: string;
  /**
   * Strategies, or methods as named in the report, that others are compared with. Default: the baselines among the
   * strategies present.
   */
  readonly baselines?: readonly string[];
  /** Default the name of the folder. */
  readonly title?: string;
}

/** Reports on all runs and probes in a folder: an HTML page, Markdown, and each table and figure as a separate file. */
export async function writeReport(folder: string, options: ReportOptions = {}): Promise<ReportFiles> {
  const found = findRuns(folder);
  const probed = findProbes(folder);
  const all = [found.runs, found.candidates, found.setAside, probed.probes, probed.problems];
  if (all.every(({ length }) => length === 0)) {
    throw new InputError('there is no run in the folder or below it', { file: folder });
  }
  const { sets, others } = separateData(groupRuns(found.runs));
  const results = sets.map((data) => withSharedRuns(withBestWaits(data, found.sweeps)));
  if (options.baselines !== undefined) requireKnown(results, options.baselines);
  const reader = new SeriesReader();
  const baselines = options.baselines ?? strategies.filter(({ role }) => role === 'baseline').map(({ name }) => name);
  const views = results.map((data) => viewOf(data, reader, baselines));
  const sections = views.flatMap((view, i) => [resultsSection(view), trainingSection({ ...view, data: sets[i] })]);
  sections.push(...schedulingSection(sets, reader), ...policySections(views), ...otherDataSection(others));
  sections.push(...probed.probes.map(probeSection));
  if (sets.length > 0) sections.push(methodsSection(sets, found.sweeps));
  // Last, once unreadable files are known.
  sections.push(runsSection(sets, found, [...found.problems, ...reader.problems, ...probed.problems]));

  const { out = join(folder, 'report'), title = `Report on ${basename(resolve(folder))}` } = options;
  return {
    ...writeFiles(out, title, sections, leadOf(found, probed)),
    runs: found.runs.length,
    probes: probed.probes.length,
    setAside: found.setAside.length,
  };
}

function resultsSection(view: ReportView): Section {
  const kinds: Readonly<Record<string, (view: ReportView) => Section>> = {
    forecast: forecastSection,
    translation: translationSection,
    monotonic: translationSection,
  };
  const { title, blocks } = (kinds[view.data.kind] ?? otherSection)(view);
  const of = dataInWords(view.data);
  return { title, blocks: of === '' ? blocks : [text(of), ...blocks] };
}

function leadOf({ runs, candidates, setAside }: FoundRuns, { probes }: FoundProbes): string {
  const chosen = candidates.length === 0 ? '' : `, and ${candidates.length} used only to choose settings`;
  const probed = probes.length === 0 ? '' : `, and ${probes.length} probe${probes.length === 1 ? '' : 's'}`;
  const finished = `${runs.length} finished run${runs.length === 1 ? '' : 's'}${chosen}${probed}`;
  if (setAside.length === 0) return `${finished}.`;
  return `${finished}; ${setAside.length} not counted: running, stopped or broken, listed with the reason under Runs.`;
}
