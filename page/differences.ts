import { html } from './html.js';

/** A word with the space behind it, and whether the other text has it too, in the same order. */
interface Piece {
  readonly word: string;
  readonly space: string;
  readonly isShared: boolean;
}

/** A text whose words that the other text does not have are marked. */
export function Marked({ text, other }: { text: string; other: string | undefined }) {
  if (other === undefined) return text;
  return html`${pieces(text, other).map(({ word, space, isShared }) =>
    isShared ? word + space : html`<mark>${word}</mark>${space}`,
  )}`;
}

/** What of a text is not the beginning of another, word by word. */
export function takenBack(before: string, now: string): string {
  const [old, current] = [before.split(/(?<=\s)/u), now.split(/(?<=\s)/u)];
  let same = 0;
  while (same < old.length && same < current.length && old[same].trim() === current[same].trim()) same++;
  return old.slice(same).join('').trim();
}

/** Shared words are those of a longest common subsequence. */
function pieces(text: string, other: string): Piece[] {
  const own = [...text.matchAll(/(\S+)(\s*)/gu)].map(([, word, space]) => ({ word, space }));
  const theirs = other.split(/\s+/u).filter((word) => word !== '');
  // length[i][j]: of the words from i and from j on.
  const length = Array.from({ length: own.length + 1 }, () => new Array<number>(theirs.length + 1).fill(0));
  for (let i = own.length - 1; i >= 0; i--) {
    for (let j = theirs.length - 1; j >= 0; j--) {
      length[i][j] =
        own[i].word === theirs[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
    }
  }
  let j = 0;
  return own.map(({ word, space }, i) => {
    while (j < theirs.length && word !== theirs[j] && length[i][j + 1] === length[i][j]) j++;
    const isShared = j < theirs.length && word === theirs[j];
    if (isShared) j++;
    return { word, space, isShared };
  });
}
