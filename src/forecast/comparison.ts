import { join } from 'node:path';
import { InputError } from '../errors.js';
import { readText } from '../files.js';
import { type BlockBootstrap, blockBootstrap } from '../metrics/index.js';
import { Random } from '../random.js';

/** By how much one run's daily scores are above another's. */
export interface Comparison {
  readonly against: string;
  /** Of RankIC and IC, the mean daily difference with its block bootstrap. */
  readonly RankIC: BlockBootstrap;
  readonly IC: BlockBootstrap;
}

/**
 * Compares two runs that have been evaluated on the same part, day by day: a circular block bootstrap of the daily
 * differences, 10,000 resamples, the same ones every time.
 */
export function compareForecasts(run: string, against: string, split: 'validation' | 'test'): Comparison {
  const [own, other] = [run, against].map((folder) => readDaily(join(folder, 'evaluation', split, 'daily.csv')));
  const dates = [...own.keys()].filter((date) => other.has(date));
  const test = (column: 'RankIC' | 'IC'): BlockBootstrap => {
    const random = new Random(1).fork('block bootstrap');
    const differences = dates.map((date) => own.get(date)![column] - other.get(date)![column]);
    return blockBootstrap(differences, (n) => random.int(n));
  };
  return { against, RankIC: test('RankIC'), IC: test('IC') };
}

function readDaily(file: string): Map<string, { IC: number; RankIC: number }> {
  const [head, ...lines] = readText(file).trimEnd().split('\n');
  if (head !== 'date,IC,RankIC,zMSE') {
    throw new InputError(`expected the columns date,IC,RankIC,zMSE, found ${head}`, { file, line: 1 });
  }
  const number = (cell: string) => (cell === '' ? Number.NaN : Number(cell));
  return new Map(
    lines.map((line) => {
      const [date, IC, RankIC] = line.split(',');
      return [date, { IC: number(IC), RankIC: number(RankIC) }];
    }),
  );
}
