import { InputError } from '../../errors.js';

/** How often each token occurs, in the order the tokens were first seen. */
export type WordCounts = Map<string, number>;

/** Adds tokens to the counts, each `times` times. */
export function countWords(counts: WordCounts, tokens: readonly string[], times = 1): void {
  for (const token of tokens) if (token !== '') counts.set(token, (counts.get(token) ?? 0) + times);
}

export function sumCounts(parts: readonly WordCounts[]): WordCounts {
  const sum: WordCounts = new Map();
  for (const part of parts) for (const [word, count] of part) sum.set(word, (sum.get(word) ?? 0) + count);
  return sum;
}

/** `token count` a line, the most frequent first, ties in the order first seen: the vocabulary of subword-nmt. */
export function formatCounts(counts: WordCounts): string {
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([token, count]) => `${token} ${count}\n`)
    .join('');
}

export function parseCounts(text: string, file = 'vocabulary'): WordCounts {
  const counts: WordCounts = new Map();
  text.split('\n').forEach((line, i, all) => {
    if (line === '' && i === all.length - 1) return;
    const [, token, count] = /^(.+) ([0-9]+)\r?$/.exec(line) ?? [];
    if (token === undefined) {
      throw new InputError(`expected a token and its count, found ${JSON.stringify(line)}`, { file, line: i + 1 });
    }
    counts.set(token, Number(count));
  });
  return counts;
}
