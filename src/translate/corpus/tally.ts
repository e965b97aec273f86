import { special } from '../text/vocabulary.js';
import type { SideSummary, SplitSummary } from './corpus.js';
import type { FilterReason } from './filters.js';

/** Counts the pairs of a split while they are written. */
export class Tally {
  private readonly split: SplitSummary;

  /** Goes on from the counts of an interrupted run. */
  constructor(resume: SplitSummary = emptySplit()) {
    this.split = structuredClone(resume);
  }

  reject(reason: FilterReason): void {
    this.split.lines++;
    this.split.filtered[reason]++;
  }

  /** Ids with the end of the sentence. */
  accept(source: Int32Array, target: Int32Array): void {
    this.split.lines++;
    this.split.pairs++;
    if (source.length === 1 || target.length === 1) this.split.emptyKept++;
    add(this.split.source, source);
    add(this.split.target, target);
  }

  summary(): SplitSummary {
    return structuredClone(this.split);
  }
}

function add(side: SideSummary, ids: Int32Array): void {
  side.tokens += ids.length - 1;
  side.longest = Math.max(side.longest, ids.length);
  for (const id of ids) if (id === special.unk) side.unknown++;
}

function emptySplit(): SplitSummary {
  const side = (): SideSummary => ({ tokens: 0, unknown: 0, longest: 0 });
  const filtered = { empty: 0, length: 0, ratio: 0, tokens: 0 };
  return { lines: 0, pairs: 0, filtered, emptyKept: 0, source: side(), target: side() };
}
