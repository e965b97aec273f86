import { special } from '../text/vocabulary.js';
import type { Cache } from './cache.js';
import type { Sentence } from './sentence.js';
import type { StepModel } from './step-model.js';

/** Sentences that write together: one column of the caches for each hypothesis of each, in order. */
export interface Group {
  readonly sentences: readonly Sentence[];
  readonly target: Cache;
  /** Keys and values of the source. */
  readonly memory: Cache;
}

/**
 * One target token for every hypothesis of every sentence, all of the same length. Whatever the target's cache lacks of
 * what is written is taken in first. Returns the group of those that go on.
 */
export async function writeRound(model: StepModel, { sentences, target, memory }: Group): Promise<Group> {
  const rows = sentences.flatMap((sentence) => sentence.search.hypotheses.map(({ tokens }) => ({ sentence, tokens })));
  const candidates = await model.write(target, memory, {
    tokens: rows.map(({ tokens }) => [special.eos, ...tokens].slice(target.length)),
    lengths: rows.map(() => target.length),
    visible: rows.map(({ sentence }) => sentence.read),
  });
  const kept: number[] = [];
  let first = 0;
  for (const sentence of sentences) {
    const count = sentence.search.hypotheses.length;
    for (const parent of sentence.write(candidates, first)) kept.push(first + parent);
    first += count;
  }
  const same = (column: number, row: number): boolean => column === row;
  const sameSentence = (column: number, row: number): boolean => rows[column].sentence === rows[row].sentence;
  return {
    sentences: sentences.filter(({ search }) => !search.done),
    target: rearranged(target, kept, same),
    memory: rearranged(memory, kept, sameSentence),
  };
}

/** The group after something was read, over the new keys and values of the source if there are any. */
export function afterReading(model: StepModel, group: Group, memory: Cache = group.memory): Group {
  const { sentences, target } = group;
  return { sentences, memory, target: model.redecodes ? model.target(target.batch) : target };
}

function rearranged(cache: Cache, columns: readonly number[], same: (column: number, row: number) => boolean): Cache {
  if (columns.length === cache.batch && columns.every(same)) return cache;
  const rising = columns.length > 0 && columns.every((column, i) => i === 0 || column > columns[i - 1]);
  return rising ? cache.narrowed(columns) : cache.select(columns);
}
