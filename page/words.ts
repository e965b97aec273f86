/** The words of a text, as they arrive one by one. */
export function wordsOf(text: string): string[] {
  return text.split(/\s+/u).filter((word) => word !== '');
}

/** Those that are complete while the text is being typed: a word is when white space follows it. */
export function completeWords(text: string): string[] {
  const words = wordsOf(text);
  return /\s$/u.test(text) ? words : words.slice(0, -1);
}

/** Whether the words are the first of the others. */
export function isBeginning(words: readonly string[], others: readonly string[]): boolean {
  return words.every((word, i) => word === others[i]);
}
