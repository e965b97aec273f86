import { InputError } from '../errors.js';
import { corpusScore, formatSignature, intern, type SegmentMetric } from './segments.js';
import { singleSpaced, splitWords, strip, stripEnd } from './tokenizers.js';

/**
 * Translation edit rate of a corpus in percent (Snover et al. 2006), as sacreBLEU computes it after Tercom:
 *
 *     TER = 100 · Σ edits / Σ mean reference length,
 *
 * edits being insertions, deletions, substitutions and shifts of word sequences to the closest reference. The shifts
 * are searched greedily with Tercom's limits, so TER is an upper bound of the true edit rate.
 *
 * @param references `references[k][i]` is the k-th reference of segment i
 */
export function corpusTer(
  hypotheses: readonly string[],
  references: readonly (readonly string[])[],
  options: TercomOptions = {},
): number {
  return corpusScore(terMetric(options), hypotheses, references);
}

/** TER of one sentence in percent. */
export function sentenceTer(hypothesis: string, references: readonly string[], options: TercomOptions = {}): number {
  const metric = terMetric(options);
  return metric.score(metric.measure(hypothesis, references));
}

/** Statistics of a segment: edits, mean length of its references. */
export function terMetric(options: TercomOptions = {}): SegmentMetric {
  return {
    name: 'TER',
    lowerIsBetter: true,
    width: 2,
    measure(hypothesis, references) {
      if (references.length === 0) throw new InputError('TER needs at least one reference for each segment');
      const words = tercomWords(hypothesis, options);
      let fewest = Number.POSITIVE_INFINITY;
      let lengths = 0;
      for (const reference of references) {
        const referenceWords = tercomWords(reference, options);
        fewest = Math.min(fewest, editCount(words, referenceWords));
        lengths += referenceWords.length;
      }
      return [fewest, lengths / references.length];
    },
    score: (sums) => (sums[1] > 0 ? (100 * sums[0]) / sums[1] : sums[0] > 0 ? 100 : 0),
    signature: (references, test) =>
      formatSignature(
        references,
        [
          ['case', options.caseSensitive ? 'mixed' : 'lc'],
          ['tok', 'tercom'],
          ['norm', options.normalized ? 'yes' : 'no'],
          ['punct', options.noPunctuation ? 'no' : 'yes'],
          ['asian', options.asian ? 'yes' : 'no'],
        ],
        test,
      ),
  };
}

/** Edits and shifts that turn the words of a hypothesis into those of a reference. */
export function editCount(hypothesis: readonly string[], reference: readonly string[]): number {
  if (reference.length === 0) return hypothesis.length;
  const ids = new Map<string, number>();
  const target = Int32Array.from(reference, (word) => intern(ids, word));
  let current: Int32Array = Int32Array.from(hypothesis, (word) => intern(ids, word));

  const distances = new EditDistance(target, current.length);
  const budget = { left: MAX_SHIFT_CANDIDATES };
  let shifts = 0;
  while (true) {
    const distance = distances.setCurrent(current);
    const shift = bestShift(current, target, distance, distances, budget);
    // Out of candidates, the last shift found is not taken: sacreBLEU's rule.
    if (budget.left <= 0 || shift === undefined || shift.gain <= 0) return shifts + distance;
    shifts++;
    current = shift.words;
  }
}

// Tercom's limits, and sacreBLEU's on the number of candidates of a segment.
const MAX_SHIFT_SIZE = 10;
const MAX_SHIFT_DISTANCE = 50;
const MAX_SHIFT_CANDIDATES = 1000;

interface Shift {
  readonly gain: number;
  readonly length: number;
  readonly start: number;
  readonly target: number;
  readonly words: Int32Array;
}

function bestShift(
  words: Int32Array,
  reference: Int32Array,
  distance: number,
  distances: EditDistance,
  budget: { left: number },
): Shift | undefined {
  const { alignment, wrongReference, wrongHypothesis } = align(distances.trace(), words.length, reference.length);
  let best: Shift | undefined;
  for (const [start, referenceStart, length] of matchingRuns(words, reference)) {
    // A shift is worth trying where the words are wrong now and wanted where they would go, outside themselves.
    if (!anyOf(wrongHypothesis, start, length) || !anyOf(wrongReference, referenceStart, length)) continue;
    if (start <= alignment[referenceStart] && alignment[referenceStart] < start + length) continue;

    let previous = -1;
    for (let offset = -1; offset < length; offset++) {
      const position = referenceStart + offset;
      if (position >= reference.length) break;
      const target = position === -1 ? 0 : alignment[position] + 1;
      if (target === previous) continue;
      previous = target;
      const shifted = moveRun(words, start, length, target);
      const gain = distance - distances.distance(shifted, Math.min(start, target));
      const shift = { gain, length, start, target, words: shifted };
      budget.left--;
      if (best === undefined || ranksBefore(shift, best)) best = shift;
    }
    if (budget.left <= 0) break;
  }
  return best;
}

// Tercom's order: largest gain, longest run, earliest run, earliest target.
function ranksBefore(a: Shift, b: Shift): boolean {
  if (a.gain !== b.gain) return a.gain > b.gain;
  if (a.length !== b.length) return a.length > b.length;
  if (a.start !== b.start) return a.start < b.start;
  return a.target < b.target;
}

/** For each reference position the hypothesis position it is aligned to, and which positions are in error. */
function align(trace: readonly number[], length: number, referenceLength: number) {
  const alignment = new Int32Array(referenceLength);
  const wrongReference = new Uint8Array(referenceLength);
  const wrongHypothesis = new Uint8Array(length);
  let position = -1;
  let referencePosition = -1;
  for (const edit of trace) {
    const wrong = edit === Edit.keep ? 0 : 1;
    if (edit !== Edit.insert) wrongHypothesis[++position] = wrong;
    if (edit !== Edit.delete) {
      wrongReference[++referencePosition] = wrong;
      alignment[referencePosition] = position;
    }
  }
  return { alignment, wrongReference, wrongHypothesis };
}

/** Runs of equal words as [start, start in the reference, length], every length from one on. */
function* matchingRuns(words: Int32Array, reference: Int32Array): Generator<[number, number, number]> {
  for (let start = 0; start < words.length; start++) {
    const first = Math.max(0, start - MAX_SHIFT_DISTANCE);
    const last = Math.min(reference.length - 1, start + MAX_SHIFT_DISTANCE);
    for (let referenceStart = first; referenceStart <= last; referenceStart++) {
      const longest = Math.min(MAX_SHIFT_SIZE, words.length - start, reference.length - referenceStart);
      for (let length = 1; length <= longest; length++) {
        if (words[start + length - 1] !== reference[referenceStart + length - 1]) break;
        yield [start, referenceStart, length];
      }
    }
  }
}

function moveRun(words: Int32Array, start: number, length: number, target: number): Int32Array {
  const moved = new Int32Array(words.length);
  // A target inside the run moves it right by as many words, as Tercom does.
  const end =
    target < start ? start + length : target > start + length ? target : Math.min(words.length, length + target);
  const from = Math.min(start, target);
  moved.set(words.subarray(0, from));
  const run = words.subarray(start, start + length);
  if (target < start) {
    moved.set(run, target);
    moved.set(words.subarray(target, start), target + length);
  } else {
    const between = words.subarray(start + length, end);
    moved.set(between, start);
    moved.set(run, start + between.length);
  }
  moved.set(words.subarray(end), end);
  return moved;
}

function anyOf(flags: Uint8Array, start: number, length: number): boolean {
  for (let i = start; i < start + length; i++) if (flags[i] === 1) return true;
  return false;
}

/** Tercom's text normalisation, as in sacreBLEU. */
export interface TercomOptions {
  /** Split punctuation off the words. Default false. */
  readonly normalized?: boolean;
  /** Remove punctuation. Default false. */
  readonly noPunctuation?: boolean;
  /** With `normalized` and `noPunctuation`: also CJK characters and punctuation. Default false. */
  readonly asian?: boolean;
  /** Default false: text is lowercased. */
  readonly caseSensitive?: boolean;
}

/** The words TER edits (`Normalizer.java` of Tercom, in sacreBLEU's reading). */
export function tercomWords(line: string, options: TercomOptions = {}): string[] {
  let text = stripEnd(line);
  if (!options.caseSensitive) text = text.toLowerCase();
  if (options.normalized && text !== '') {
    text = normalizeWestern(text);
    if (options.asian) text = normalizeAsian(text);
    text = strip(singleSpaced(text));
  }
  if (options.noPunctuation) {
    text = text.replace(/[.,?:;!"()]/g, '');
    if (options.asian) text = text.replace(ASIAN_PUNCTUATION, '').replace(FULL_WIDTH_PUNCTUATION, '');
  }
  return splitWords(text);
}

function normalizeWestern(text: string): string {
  const plain = text.replaceAll('&quot;', '"').replaceAll('&amp;', '&').replaceAll('&lt;', '<').replaceAll('&gt;', '>');
  return ` ${plain} `
    .replace(/[{-~[-` -&(-+:-@/]/g, ' $& ')
    .replaceAll("'s ", " 's ")
    .replace(/([^0-9])([.,])/g, '$1 $2 ')
    .replace(/([.,])([^0-9])/g, ' $1 $2')
    .replace(/([0-9])(-)/g, '$1 $2 ');
}

function normalizeAsian(text: string): string {
  // Tercom also has rules for runs of kana, but anchored to the ends of a line that here begins and ends with a space:
  // they never apply.
  return text
    .replace(/[\u4e00-\u9fff\u3400-\u4dbf]/g, ' $& ')
    .replace(/[\u31c0-\u31ef\u2e80-\u2eff]/g, ' $& ')
    .replace(/[\u3300-\u33ff\uf900-\ufaff\ufe30-\ufe4f]/g, ' $& ')
    .replace(/[\u3200-\u3f22]/g, ' $& ')
    .replace(ASIAN_PUNCTUATION, ' $& ')
    .replace(FULL_WIDTH_PUNCTUATION, ' $& ');
}

const ASIAN_PUNCTUATION = /[\u3001\u3002\u3008-\u3011\u3014-\u301f\uff61-\uff65\u30fb]/g;
const FULL_WIDTH_PUNCTUATION = /[\uff0e\uff0c\uff1f\uff1a\uff1b\uff01\uff02\uff08\uff09]/g;

/** One step of rewriting a hypothesis into its reference. */
const Edit = { keep: 0, substitute: 1, insert: 2, delete: 3 } as const;

// Tercom's beam: cells further than this from the (pseudo-)diagonal are not looked at.
const BEAM_WIDTH = 25;
const UNREACHED = 1e16;

/**
 * Levenshtein distances of many reorderings of one hypothesis to one reference, inside Tercom's beam. Words are
 * integers. All hypotheses must have the length given.
 *
 * Holds the matrix of the current hypothesis, of each row only the cells inside the beam; a candidate is compared by
 * recomputing only the rows after the words it shares with the current one.
 */
class EditDistance {
  private readonly reference: Int32Array;
  private readonly length: number;
  // Row i of the matrix covers the reference positions from `from[i]` up to `to[i]`; row 0 all of them.
  private readonly from: Int32Array;
  private readonly to: Int32Array;
  // Row 0, then the others, `width` cells each.
  private readonly width: number;
  private readonly costs: Float64Array;
  private readonly edits: Uint8Array;
  private readonly scratch: Float64Array;

  constructor(reference: Int32Array, length: number) {
    const stride = reference.length + 1;
    const ratio = length > 0 ? reference.length / length : 1;
    // Very different lengths: neighbouring rows must still overlap.
    const beam = BEAM_WIDTH < ratio / 2 ? Math.ceil(ratio / 2 + BEAM_WIDTH) : BEAM_WIDTH;
    this.reference = reference;
    this.length = length;
    this.from = new Int32Array(length + 1);
    this.to = new Int32Array(length + 1).fill(stride);
    this.width = 0;
    for (let i = 1; i <= length; i++) {
      const diagonal = Math.floor(i * ratio);
      this.from[i] = Math.max(0, diagonal - beam);
      if (i < length) this.to[i] = Math.min(stride, diagonal + beam);
      this.width = Math.max(this.width, this.to[i] - this.from[i]);
    }
    this.costs = new Float64Array(stride + length * this.width);
    this.edits = new Uint8Array(this.costs.length);
    this.scratch = new Float64Array(2 * this.width);
    for (let j = 0; j < stride; j++) {
      this.costs[j] = j;
      this.edits[j] = Edit.insert;
    }
  }

  /** Makes `hypothesis` the current one; returns its distance. */
  setCurrent(hypothesis: Int32Array): number {
    for (let i = 1; i <= this.length; i++) {
      this.row(i, hypothesis[i - 1], this.costs, this.base(i - 1), this.costs, this.base(i), this.edits);
    }
    return this.last(this.costs, this.base(this.length));
  }

  /** The distance of a candidate whose first `shared` words are those of the current hypothesis. */
  distance(candidate: Int32Array, shared: number): number {
    let above = this.costs;
    let aboveBase = this.base(shared);
    let hereBase = 0;
    for (let i = shared + 1; i <= this.length; i++) {
      this.row(i, candidate[i - 1], above, aboveBase, this.scratch, hereBase);
      above = this.scratch;
      aboveBase = hereBase;
      hereBase = this.width - hereBase;
    }
    return this.last(above, aboveBase);
  }

  /** The edits that rewrite the current hypothesis into the reference, first to last. */
  trace(): number[] {
    const steps: number[] = [];
    let i = this.length;
    let j = this.reference.length;
    while (i > 0 || j > 0) {
      const edit = this.edits[this.base(i) + j - this.from[i]];
      steps.push(edit);
      if (edit !== Edit.insert) i--;
      if (edit !== Edit.delete) j--;
    }
    return steps.reverse();
  }

  private base(i: number): number {
    return i === 0 ? 0 : this.reference.length + 1 + (i - 1) * this.width;
  }

  private last(costs: Float64Array, base: number): number {
    return costs[base + this.reference.length - this.from[this.length]];
  }

  private row(
    i: number,
    word: number,
    above: Float64Array,
    aboveBase: number,
    here: Float64Array,
    hereBase: number,
    edits?: Uint8Array,
  ): void {
    const reference = this.reference;
    const [from, to, aboveFrom, aboveTo] = [this.from[i], this.to[i], this.from[i - 1], this.to[i - 1]];
    let left = UNREACHED;
    let diagonal = from > aboveFrom && from <= aboveTo ? above[aboveBase + from - 1 - aboveFrom] : UNREACHED;
    for (let j = from; j < to; j++) {
      const up = j < aboveTo ? above[aboveBase + j - aboveFrom] : UNREACHED;
      // Tercom prefers keep or substitute, then (as the trace is read from the reference's side) delete, then insert.
      let cost = up + 1;
      let edit: number = Edit.delete;
      if (j > 0) {
        const same = word === reference[j - 1];
        const straight = diagonal + (same ? 0 : 1);
        if (straight <= cost) {
          cost = straight;
          edit = same ? Edit.keep : Edit.substitute;
        }
        if (left + 1 < cost) {
          cost = left + 1;
          edit = Edit.insert;
        }
      }
      here[hereBase + j - from] = cost;
      if (edits) edits[hereBase + j - from] = edit;
      diagonal = up;
      left = cost;
    }
  }
}
