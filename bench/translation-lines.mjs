// The lines of docs/results/translation.csv: an evaluation each, with what is known of the training before it.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'csv-parse/sync';
import { loadGrid } from '../dist/sweep/index.js';

export const shippedGrid = fileURLToPath(new URL('../configs/sweeps/translation-full.yaml', import.meta.url));

/** The waits of the main table. */
export const WAITS = loadGrid(shippedGrid).config.waitKStar.for;

/** Figures of an evaluation: column, digits, and where they are in its scores. */
const FIGURES = {
  sacreBLEU: [2, ['sacrebleu']],
  BLEU: [2, ['bleu']],
  chrF: [2, ['chrf']],
  length: [4, ['lengthRatio']],
  early: [0, ['endedEarly']],
  'AP of subwords': [4, ['latency', 'stacl', 'AP']],
  'AL of subwords': [3, ['latency', 'stacl', 'AL']],
  AP: [4, ['latency', 'simuleval', 'AP']],
  AL: [3, ['latency', 'simuleval', 'AL']],
  LAAL: [3, ['latency', 'simuleval', 'LAAL']],
  DAL: [3, ['latency', 'simuleval', 'DAL']],
  YAAL: [3, ['latency', 'simuleval', 'YAAL']],
};

export const HEADER = [
  ...['run', 'updates', 'validation loss', 'seconds of a core', 'losses by wait', 'policy', 'k'],
  ...Object.keys(FIGURES),
  'test loss',
];

/** @param testLoss −log P per target token under the wait of the evaluation, if it has one */
export function lineOf(run, { updates, loss, seconds, losses }, figures, testLoss) {
  const found = Object.values(FIGURES).map(([digits, path]) => {
    const value = path.reduce((at, key) => at?.[key], figures);
    return value === null || value === undefined ? '' : value.toFixed(digits);
  });
  const quoted = (text) => `"${String(text).replaceAll('"', '""')}"`;
  const policy = figures.policy ?? `wait-k:${figures.k}`;
  const training = [updates, loss.toFixed(6), Math.round(seconds), losses.map((one) => one.toFixed(5)).join(' ')];
  return [quoted(run), ...training, quoted(policy), figures.k ?? '', ...found, testLoss?.toFixed(6) ?? ''].join();
}

/** Lines by the names of their columns, numbers as such. */
export function readLines(file) {
  return parse(readFileSync(file, 'utf8'), { columns: true }).map((line) =>
    Object.fromEntries(
      Object.entries(line).map(([name, value]) =>
        name in FIGURES || name === 'k' || name.endsWith(' loss') || name.startsWith('seconds')
          ? [name, value === '' ? Number.NaN : Number(value)]
          : [name, value],
      ),
    ),
  );
}
