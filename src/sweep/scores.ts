import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { InputError } from '../errors.js';
import { readText } from '../files.js';

/** Validation performance of a finished run on its main task, where it was best. */
export function validationPerformance(folder: string): number {
  return figureAt(join(folder, 'result.json'), ['best', 'performance']);
}

/** Performance of a run on a split under wait-k, as `tcts evaluate --loss` has left it in the run folder. */
export function waitPerformance(folder: string, split: string, k: number): number {
  return figureAt(join(folder, 'evaluation', `${split}-wait-${k}-loss.json`), ['performance']);
}

function figureAt(file: string, path: readonly string[]): number {
  const content = existsSync(file) ? parsed(file) : undefined;
  const figure = path.reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], content);
  if (typeof figure === 'number') return figure;
  throw new InputError('expected a number to choose by', { file, key: path.join('.') });
}

function parsed(file: string): unknown {
  try {
    return JSON.parse(readText(file));
  } catch (error) {
    if (error instanceof SyntaxError) throw new InputError('the file is not valid JSON', { file });
    throw error;
  }
}

/** The candidate with the highest score, the first of equals; one that has no score, or NaN, is not chosen. */
export function best<C extends { readonly score: number | null }>(candidates: readonly C[]): C | undefined {
  return candidates.reduce<C | undefined>((leader, candidate) => {
    if (candidate.score === null || Number.isNaN(candidate.score)) return leader;
    return leader === undefined || candidate.score > leader.score! ? candidate : leader;
  }, undefined);
}
