/**
 * Requests that come in at about the same time are answered together: whatever has arrived when the event loop turns
 * makes one batch. Nothing waits for a batch to fill up.
 */
export class Together<Request, Answer> {
  private readonly waiting: Waiting<Request, Answer>[] = [];
  private busy = false;

  /**
   * @param answer one answer for each request, in their order
   * @param most requests in one batch
   */
  constructor(
    private readonly answer: (requests: readonly Request[]) => Promise<readonly Answer[]>,
    private readonly most: number,
  ) {}

  ask(request: Request): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ request, resolve, reject });
      if (!this.busy) void this.work();
    });
  }

  private async work(): Promise<void> {
    this.busy = true;
    while (this.waiting.length > 0) {
      await new Promise(setImmediate);
      await this.serve(this.waiting.splice(0, this.most));
    }
    this.busy = false;
  }

  private async serve(batch: readonly Waiting<Request, Answer>[]): Promise<void> {
    try {
      const answers = await this.answer(batch.map(({ request }) => request));
      batch.forEach(({ resolve }, i) => {
        resolve(answers[i]);
      });
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}

interface Waiting<Request, Answer> {
  readonly request: Request;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}
