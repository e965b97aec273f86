/** One step of rewriting a hypothesis into its reference. */
export const Edit = { keep: 0, substitute: 1, insert: 2, delete: 3 } as const;

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
export class EditDistance {
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
