import { InputError } from '../../errors.js';
import { readLines } from './lines.js';

/** Corresponding lines of two files. */
export interface PairBlock {
  /** 1-based number of the first line. */
  readonly line: number;
  readonly source: readonly string[];
  readonly target: readonly string[];
}

/** Two files side by side, in blocks; files of different length are refused with both counts. */
export async function* readPairs(sourceFile: string, targetFile: string): AsyncGenerator<PairBlock> {
  const sides = [new Side(sourceFile), new Side(targetFile)];
  try {
    for (let line = 1; ; ) {
      const [sources, targets] = await Promise.all(sides.map((side) => side.available()));
      const count = Math.min(sources, targets);
      if (count === 0) break;
      const [source, target] = sides.map((side) => side.take(count));
      yield { line, source, target };
      line += count;
    }
    const [n, m] = [await sides[0].total(), await sides[1].total()];
    if (n !== m) {
      const longer = n > m ? sourceFile : targetFile;
      const sentence = `parallel files must have as many lines: ${sourceFile} has ${n}, ${targetFile} has ${m}`;
      throw new InputError(sentence, { file: longer, line: Math.min(n, m) + 1 });
    }
  } finally {
    await Promise.all(sides.map((side) => side.close()));
  }
}

/** One file, read ahead by at most one block. */
class Side {
  private readonly blocks: AsyncGenerator<string[]>;
  private block: string[] = [];
  private position = 0;
  private taken = 0;

  constructor(path: string) {
    this.blocks = readLines(path);
  }

  async available(): Promise<number> {
    while (this.position >= this.block.length) {
      const { done, value } = await this.blocks.next();
      if (done) return 0;
      this.block = value;
      this.position = 0;
    }
    return this.block.length - this.position;
  }

  take(count: number): string[] {
    const lines = this.block.slice(this.position, this.position + count);
    this.position += count;
    this.taken += count;
    return lines;
  }

  /** Lines of the whole file. */
  async total(): Promise<number> {
    for (let rest = await this.available(); rest > 0; rest = await this.available()) this.take(rest);
    return this.taken;
  }

  async close(): Promise<void> {
    await this.blocks.return(undefined);
  }
}
