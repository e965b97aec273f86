/** Plays words one by one at a pace that may change on the way. */
export class Player {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private at = 0;

  constructor(
    private readonly words: readonly string[],
    private readonly on: { word(word: string): void; end(): void },
    /** Words a second, asked for before each word. */
    private readonly pace: () => number,
  ) {}

  start(): void {
    this.next();
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private next(): void {
    if (this.at < this.words.length) {
      this.on.word(this.words[this.at++]);
      this.timer = setTimeout(() => this.next(), 1000 / this.pace());
    } else this.on.end();
  }
}
