import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { InputError } from '../errors.js';
import { readText } from '../files.js';
import { readJsonFile } from '../json-file.js';
import { type BlockBootstrap, blockBootstrap } from '../metrics/index.js';
import { Random } from '../random.js';
import { evaluatedDataSchema } from '../run/index.js';

/** By how much one run's daily scores are above another's. */
export interface Comparison {
  readonly against: string;
  /** Of RankIC and IC, the mean daily difference with its block bootstrap. */
  readonly RankIC: BlockBootstrap;
  readonly IC: BlockBootstrap;
}

/**
 * Compares two runs that have been evaluated on the same part of the same data, day by day: a circular block bootstrap
 * of the daily differences, 10,000 resamples, the same ones every time.
 *
 * @param evaluation name of the folder of the evaluation, the same in both runs
 */
export function compareForecasts(run: string, against: string, evaluation: string): Comparison {
  const folders = [run, against].map((folder) => join(folder, 'evaluation', evaluation));
  const [own, other] = folders.map((folder) => readDaily(join(folder, 'daily.csv')));
  requireSameData(folders[0], folders[1]);
  const dates = [...own.keys()].filter((date) => other.has(date));
  const test = (column: 'RankIC' | 'IC'): BlockBootstrap => {
    const random = new Random(1).fork('block bootstrap');
    const differences = dates.map((date) => own.get(date)![column] - other.get(date)![column]);
    return blockBootstrap(differences, (n) => random.int(n));
  };
  return { against, RankIC: test('RankIC'), IC: test('IC') };
}

function requireSameData(own: string, other: string): void {
  const [a, b] = [own, other].map((folder) => {
    const file = join(folder, 'scores.json');
    return existsSync(file) ? readJsonFile(file, scoresSchema).data : undefined;
  });
  if (a?.digest === b?.digest) return;
  const [first, second] = [a, b].map((data) => (data === undefined ? 'data that it does not name' : data.name));
  throw new InputError(`it was evaluated on ${second}, and not on the same data as the other run, ${first}`, {
    file: other,
  });
}

const scoresSchema = z.looseObject({ data: evaluatedDataSchema.optional() });

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
