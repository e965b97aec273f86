/**
 * A series of any length, of which a chart gets a bounded number of items: all of them as long as there are few, later the
 * lowest and the highest of each stretch, so that no peak is lost, and always the last.
 */
export class SampledSeries<T> {
  private stretches: Stretch<T>[] = [];
  /** Items of a stretch. */
  private width = 1;
  private count = 0;
  private last: Placed<T> | undefined;

  /**
   * @param most stretches that are kept; twice as many items at most
   * @param height what the chart shows of an item; null: nothing
   */
  constructor(
    private readonly most: number,
    private readonly height: (item: T) => number | null,
  ) {}

  add(item: T): void {
    const placed = { item, place: this.count++, height: this.height(item) };
    this.last = placed;
    const stretch = this.stretches.at(-1);
    if (stretch !== undefined && stretch.size < this.width) {
      this.stretches[this.stretches.length - 1] = joined(stretch, { low: placed, high: placed, size: 1 });
      return;
    }
    this.stretches.push({ low: placed, high: placed, size: 1 });
    if (this.stretches.length > this.most) this.halve();
  }

  /** In the order in which they came. */
  items(): T[] {
    const all = new Set(
      this.stretches.flatMap(({ low, high }) => (low.place < high.place ? [low, high] : [high, low])),
    );
    if (this.last !== undefined) all.add(this.last);
    return [...all].map(({ item }) => item);
  }

  private halve(): void {
    const { stretches } = this;
    const pairs = stretches.filter((_, i) => i % 2 === 0);
    this.stretches = pairs.map((first, i) => {
      const second = stretches[2 * i + 1];
      return second === undefined ? first : joined(first, second);
    });
    this.width *= 2;
  }
}

interface Placed<T> {
  readonly item: T;
  readonly place: number;
  readonly height: number | null;
}

interface Stretch<T> {
  readonly low: Placed<T>;
  readonly high: Placed<T>;
  readonly size: number;
}

function joined<T>(a: Stretch<T>, b: Stretch<T>): Stretch<T> {
  return {
    low: isBeyond(b.low, a.low, -1) ? b.low : a.low,
    high: isBeyond(b.high, a.high, 1) ? b.high : a.high,
    size: a.size + b.size,
  };
}

/** An item without a height gives way to any that has one. */
function isBeyond(b: Placed<unknown>, a: Placed<unknown>, sign: 1 | -1): boolean {
  return b.height !== null && (a.height === null || sign * (b.height - a.height) > 0);
}
