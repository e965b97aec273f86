/** Means and scales of features that come in bit by bit (Chan et al. 1979, in f64). */
export class Standardisation {
  readonly mean: Float32Array;
  readonly inverseStd: Float32Array;
  private count = 0;
  private means: Float64Array;
  /** Σ (x − mean)² */
  private squares: Float64Array;
  /** Features that have differed between rows of one `add`. */
  private varied: boolean[];

  /**
   * Without any data features stay as they are.
   *
   * @param withinBatches ignore a feature that has been the same for all rows of every `add`, such as the time: z = 0
   */
  constructor(
    width: number,
    private readonly withinBatches = false,
  ) {
    this.varied = new Array<boolean>(width).fill(false);
    this.mean = new Float32Array(width);
    this.inverseStd = new Float32Array(width).fill(1);
    this.means = new Float64Array(width);
    this.squares = new Float64Array(width);
  }

  get isEmpty(): boolean {
    return this.count === 0;
  }

  /** Takes rows in; z = (x − mean)·inverseStd from then on. A feature that has never changed is only centred. */
  add(rows: Iterable<Float32Array>): void {
    let first: Float32Array | undefined;
    for (const row of rows) {
      first ??= row;
      this.count++;
      for (let j = 0; j < row.length; j++) {
        if (row[j] !== first[j]) this.varied[j] = true;
        const off = row[j] - this.means[j];
        this.means[j] += off / this.count;
        this.squares[j] += off * (row[j] - this.means[j]);
      }
    }
    this.publish();
  }

  state() {
    const { count, means, squares, varied } = this;
    return { count, means: Array.from(means), squares: Array.from(squares), varied: [...varied] };
  }

  load({ count, means, squares, varied }: ReturnType<Standardisation['state']>): void {
    this.varied = [...varied];
    this.count = count;
    this.means = Float64Array.from(means);
    this.squares = Float64Array.from(squares);
    this.publish();
  }

  private publish(): void {
    if (this.count === 0) {
      this.mean.fill(0);
      this.inverseStd.fill(1);
      return;
    }
    this.mean.set(this.means);
    for (let j = 0; j < this.squares.length; j++) {
      const std = Math.sqrt(this.squares[j] / this.count);
      // Below the resolution of f32 a spread is rounding.
      this.inverseStd[j] = std > RESOLUTION * Math.abs(this.means[j]) && std > 0 ? 1 / std : 1;
      if (this.withinBatches && !this.varied[j]) this.inverseStd[j] = 0;
    }
  }
}

const RESOLUTION = 1e-6;
