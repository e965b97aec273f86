// Python's idea of white space (`str.isspace`), which the reference scorers inherit. It differs from JavaScript's `\s`:
// it has U+001C–U+001F and U+0085, and lacks U+FEFF.
const SPACE = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';

const RUN = new RegExp(`[${SPACE}]+`);
const RUNS = new RegExp(`[${SPACE}]+`, 'g');
const LEADING = new RegExp(`^[${SPACE}]+`);
const ONE = new RegExp(`[${SPACE}]`);

/** Python's `text.split()`: the words between runs of white space, never an empty one. */
export function splitWords(text: string): string[] {
  const words = text.split(RUN);
  if (words[words.length - 1] === '') words.pop();
  if (words[0] === '') words.shift();
  return words;
}

/** Python's `text.rstrip()`. */
export function stripEnd(text: string): string {
  // Not /\s+$/: a backtracking engine spends quadratic time on a long run of spaces inside the line.
  let end = text.length;
  while (end > 0 && ONE.test(text[end - 1])) end--;
  return end === text.length ? text : text.slice(0, end);
}

/** Python's `text.strip()`. */
export function strip(text: string): string {
  return stripEnd(text.replace(LEADING, ''));
}

/** Python's `re.sub(r'\s+', ' ', text)`. */
export function singleSpaced(text: string): string {
  return text.replace(RUNS, ' ');
}

/** Python's `''.join(text.split())`. */
export function withoutSpaces(text: string): string {
  return text.replace(RUNS, '');
}
