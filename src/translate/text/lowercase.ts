/**
 * Lower case, letter by letter: unlike `toLowerCase` on a whole string, a Greek sigma at the end of a word becomes σ,
 * as in Perl and Python's older tools, so that a word has one form wherever it is cut.
 */
export function lowercase(text: string): string {
  const lowered = text.toLowerCase();
  return text.includes('Σ') ? Array.from(text, (letter) => letter.toLowerCase()).join('') : lowered;
}
