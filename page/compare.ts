/*
 * What two texts share, piece by piece. A piece is a word, or a character of a script that is written without spaces,
 * with the white space after it.
 */

const UNSPACED = String.raw`\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}`;
const PIECE = new RegExp(String.raw`([${UNSPACED}]\p{M}*|[^\s${UNSPACED}]+)(\s*)`, 'gu');

interface Piece {
  readonly word: string;
  readonly space: string;
}

/** A piece, and whether the other text also has it, in the same order. */
export interface ComparedPiece extends Piece {
  readonly isShared: boolean;
}

function piecesOf(text: string): Piece[] {
  return [...text.matchAll(PIECE)].map(([, word, space]) => ({ word, space }));
}

/** The rest of a text after its common prefix with another, in whole pieces. */
export function takenBack(before: string, now: string): string {
  const [old, current] = [piecesOf(before), piecesOf(now)];
  let same = 0;
  while (same < old.length && old[same].word === current[same]?.word) same++;
  const rest = old.slice(same).map(({ word, space }) => word + space);
  return rest.join('').trim();
}

/** The pieces of a text; the shared ones are those of a longest common subsequence. */
export function compared(text: string, other: string): ComparedPiece[] {
  const own = piecesOf(text);
  const theirs = piecesOf(other).map(({ word }) => word);
  // length[i][j]: of the pieces from i and from j on.
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
