import type { StoredTensor } from '../../optim/index.js';
import type { Random } from '../../random.js';
import type { Snapshot } from '../../run/index.js';

/** States and actions in equal numbers. */
export interface Actions {
  /** [rows, width] */
  readonly features: Float32Array;
  /** [rows] */
  readonly tasks: Int32Array;
}

/**
 * ℬ of Algorithm 1: the features I and the task T of every decision of an episode. It grows in pages, so that nothing
 * is ever moved and features are written where they stay; besides its features a decision takes the 4 bytes of its task.
 */
export class ActionBuffer {
  private pages: Page[] = [];
  /** Pages of earlier episodes, to be filled again. */
  private spare: Page[] = [];

  /** `width` is the number of features. */
  constructor(readonly width: number) {}

  /** Decisions in the buffer. */
  get length(): number {
    return this.pages.reduce((sum, { used }) => sum + used, 0);
  }

  /** Room for the next `rows` decisions, to be filled by the caller. */
  append(rows: number): Actions {
    let page = this.pages.at(-1);
    if (page === undefined || page.used + rows > page.capacity) {
      // A whole number of batches fills a page to the last row.
      page = this.page(rows * Math.ceil(PAGE_ROWS / rows));
      this.pages.push(page);
    }
    const begin = page.used;
    page.used += rows;
    return part(page, this.width, begin, page.used);
  }

  /** Everything, page by page, in the order of the decisions. */
  chunks(): Actions[] {
    return this.pages.map((page) => part(page, this.width, 0, page.used));
  }

  /** Everything in random order, in new arrays of `size` decisions; the last may be shorter. */
  *minibatches(size: number, random: Random): Generator<Actions> {
    const order = random.shuffle(Uint32Array.from({ length: this.length }, (_, i) => i));
    const starts: number[] = [];
    for (let at = 0, p = 0; p < this.pages.length; at += this.pages[p++].used) starts.push(at);
    for (let begin = 0; begin < order.length; begin += size) {
      const rows = order.subarray(begin, begin + size);
      const batch = { features: new Float32Array(rows.length * this.width), tasks: new Int32Array(rows.length) };
      rows.forEach((row, i) => {
        const p = pageOf(starts, row);
        const at = row - starts[p];
        const { features, tasks } = this.pages[p];
        batch.features.set(features.subarray(at * this.width, (at + 1) * this.width), i * this.width);
        batch.tasks[i] = tasks[at];
      });
      yield batch;
    }
  }

  /** At most `limit` rows of features, evenly spaced over the buffer. */
  *sampleRows(limit: number): Generator<Float32Array> {
    const stride = Math.max(1, Math.ceil(this.length / limit));
    let next = 0;
    let start = 0;
    for (const { features, used } of this.pages) {
      for (; next < start + used; next += stride) {
        const at = (next - start) * this.width;
        yield features.subarray(at, at + this.width);
      }
      start += used;
    }
  }

  clear(): void {
    this.spare = this.pages.map((page) => ({ ...page, used: 0 }));
    this.pages = [];
  }

  capture(): Snapshot {
    const tensors = new Map<string, StoredTensor>();
    for (const [i, { features, tasks }] of this.chunks().entries()) {
      tensors.set(`${i}.features`, { dtype: 'F32', shape: [tasks.length, this.width], data: features });
      tensors.set(`${i}.tasks`, { dtype: 'I32', shape: [tasks.length], data: tasks });
    }
    return { tensors, state: { capacities: this.pages.map(({ capacity }) => capacity) } };
  }

  restore({ tensors, state }: Snapshot): void {
    const { capacities } = state as { capacities: number[] };
    this.clear();
    // The pages must be those of the uninterrupted run: sums are taken page by page, and their order shows in the bits.
    this.pages = capacities.map((capacity, i) => {
      const page = this.page(capacity);
      const tasks = tensors.get(`${i}.tasks`)!.data as Int32Array;
      page.features.set(tensors.get(`${i}.features`)!.data as Float32Array);
      page.tasks.set(tasks);
      page.used = tasks.length;
      return page;
    });
  }

  private page(capacity: number): Page {
    const found = this.spare.findIndex((page) => page.capacity === capacity);
    if (found >= 0) return this.spare.splice(found, 1)[0];
    const features = new Float32Array(capacity * this.width);
    return { capacity, used: 0, features, tasks: new Int32Array(capacity) };
  }
}

interface Page {
  readonly capacity: number;
  used: number;
  readonly features: Float32Array;
  readonly tasks: Int32Array;
}

/** Rows of a page, at least: enough that a product over a page is not dominated by its set-up. */
const PAGE_ROWS = 4096;

function part({ features, tasks }: Page, width: number, begin: number, end: number): Actions {
  return { features: features.subarray(begin * width, end * width), tasks: tasks.subarray(begin, end) };
}

/** The page in which a row lies, by bisection of the numbers of the pages' first rows. */
function pageOf(starts: readonly number[], row: number): number {
  let [low, high] = [0, starts.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle] <= row) low = middle;
    else high = middle - 1;
  }
  return low;
}
