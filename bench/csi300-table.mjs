// The tables of docs/results/csi300.md from its lines of runs, by the report's own code: each line becomes a run as
// `tcts report` would have read it from a folder.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { markdownBlock } from '../dist/report/files.js';
import { differencesBlock, methodDifferences } from '../dist/report/sections/differences.js';
import { paperTables } from '../dist/report/sections/paper-tables.js';
import { groupRuns } from '../dist/report/settings.js';
import { isPapersMethod } from '../dist/report/view.js';
import { countRuns, loadGrid } from '../dist/sweep/index.js';

const configs = (name) => fileURLToPath(new URL(`../configs/${name}`, import.meta.url));

/** Markdown with the tables of Table 3 and ICIR beside the paper's, and the tests over seeds and days. */
export function tables(file) {
  const lines = readLines(file);
  for (const { arm, main, seed, days } of lines) {
    const other = lines.find((line) => line.main === main && line.days.length !== days.length);
    if (other !== undefined)
      throw new Error(`${file}: ${arm}, main ${main}, seed ${seed} has other days than ${other.arm}`);
  }
  const runs = lines.map(runOf);
  const [data, ...others] = groupRuns(runs);
  if (data === undefined || others.length > 0) throw new Error(`${file}: expected runs of one data set`);
  const days = new Map(lines.map((line, i) => [runs[i].folder, line.days]));
  const reader = { series: ({ folder }) => seriesOf(days.get(folder)) };
  const tested = methodDifferences(data, reader);
  const blocks = paperTables(data, 'csi300').map((table) => ({ kind: 'table', table }));
  const counts = { table: 0, figure: 0 };
  const all = [...blocks, differencesBlock(data, tested, 'csi300')].map((block) => markdownBlock(block, counts));
  return [summary(lines, tested), ...all].join('\n\n');
}

function readLines(file) {
  const [head, ...lines] = readFileSync(file, 'utf8').trimEnd().split('\n');
  const names = head.split(',');
  return lines.map((line, i) => {
    const cells = line.split(',');
    if (cells.length !== names.length) {
      throw new Error(`${file}, line ${i + 2}: expected ${names.length} cells, found ${cells.length}`);
    }
    const cell = Object.fromEntries(names.map((name, c) => [name, cells[c]]));
    return { ...cell, days: cell['RankIC by day'].split(' ').map((value) => Number(value) / 1e4) };
  });
}

function runOf({ arm, main, seed, updates, best, 'validation loss': loss, ...figures }) {
  const [name, tasks] = arm.split(' ');
  const config = parse(readFileSync(configs('csi300.yaml'), 'utf8'));
  const problem = { ...config.problem, main: Number(main) };
  if (tasks !== undefined) problem.tasks = Number(tasks);
  else problem.model = { name };
  const strategy = { name: tasks === undefined ? 'fixed' : name };
  const folder = `${arm} main ${main} seed ${seed}`;
  const scores = Object.fromEntries(
    ['RankIC', 'RankICIR', 'IC', 'ICIR', 'MSE', 'zMSE'].map((figure) => [figure, Number(figures[figure])]),
  );
  return {
    folder,
    name: folder,
    info: { seed: Number(seed) },
    config: { ...config, problem, strategy },
    result: { updates: Number(updates), best: { update: Number(best), performance: -Number(loss) } },
    evaluations: { forecasts: [{ split: 'test', folder, scores }], translations: [], policies: [] },
    sweep: undefined,
  };
}

/** The lines have no dates; all runs are of the same days. */
function seriesOf(values) {
  const dates = values.map((_, t) => String(t).padStart(6, '0'));
  return { dates, columns: { RankIC: Float64Array.from(values) } };
}

function summary(lines, tested) {
  const planned = countRuns(loadGrid(configs('sweeps/stock-full.yaml')));
  const hours = lines.reduce((sum, { seconds }) => sum + Number(seconds), 0) / 3600;
  const own = tested.filter(({ candidate }) => isPapersMethod(candidate));
  const better = own.filter(({ test, holm }) => test.mean > 0 && holm < 0.05).length;
  const worse = own.filter(({ test, holm }) => test.mean < 0 && holm < 0.05).length;
  return (
    `${lines.length} of the ${planned} runs of the plan, ${hours.toFixed(0)} hours of one core of a busy machine. ` +
    `TCTS in ${own.length} comparisons, corrected: better in ${better}, worse in ${worse}.`
  );
}
