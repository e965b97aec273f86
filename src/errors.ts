/** Where in the user's input a problem was found. */
export interface Where {
  readonly file?: string;
  /** 1-based line of `file`. */
  readonly line?: number;
  /** Dotted path of a configuration key, a column name, a parameter name. */
  readonly key?: string;
}

/**
 * The input is at fault, not the program. `message` is one sentence that says what was found and what was
 * expected, preceded by the place; the command line prints it alone and exits with code 1.
 */
export class InputError extends Error {
  override readonly name: string = 'InputError';
  readonly where: Where;

  constructor(sentence: string, where: Where = {}) {
    const place = where.file === undefined ? '' : where.line === undefined ? where.file : `${where.file}:${where.line}`;
    super([place, where.key, sentence].filter((part) => part !== undefined && part !== '').join(': '));
    this.where = where;
  }
}
