/** The cores of a machine, lent to jobs. */
export class CoreBudget {
  private readonly cores: number;
  private readonly jobs: number;
  private readonly lent = new Map<symbol, number>();
  private readonly waiting: (() => void)[] = [];

  /** `jobs` is the greatest number of jobs at a time. */
  constructor(cores: number, jobs: number) {
    this.cores = cores;
    this.jobs = jobs;
  }

  /** Whether a job of some size may begin. One that asks for more than there is may, as soon as it is alone. */
  fits(cores: number): boolean {
    return this.lent.size === 0 || (this.lent.size < this.jobs && cores <= this.free);
  }

  /** Lends cores until the returned function is called. */
  lend(cores: number): () => void {
    const key = Symbol();
    this.lent.set(key, cores);
    return () => {
      this.lent.delete(key);
      for (const wake of this.waiting.splice(0)) wake();
    };
  }

  /** Resolves when something is given back. */
  change(): Promise<void> {
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  private get free(): number {
    return this.cores - [...this.lent.values()].reduce((sum, cores) => sum + cores, 0);
  }
}
