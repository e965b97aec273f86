/**
 * Clipped n-gram matches of a hypothesis: for each order n, Σ over its n-grams of min(count in the hypothesis,
 * largest count in any one reference) (Papineni et al. 2002, section 2.1).
 *
 * @returns the matches of orders 1…`orders`
 */
export function matchNgrams<Symbol>(
  hypothesis: readonly Symbol[],
  references: readonly (readonly Symbol[])[],
  orders: number,
): number[] {
  // An n-gram is named by the id of its first n−1 symbols and its last symbol, so that no n-gram is ever built as a
  // string. Id 0 stands for "in no reference".
  const symbols = new Map<Symbol, number>();
  const coded = references.map((reference) => reference.map((symbol) => intern(symbols, symbol)));
  const base = symbols.size + 1;

  const last = hypothesis.map((symbol) => symbols.get(symbol) ?? 0);
  let prefixes = last.slice();
  let referencePrefixes = coded.map((reference) => reference.slice());
  let ids = symbols.size;

  const matches: number[] = [];
  for (let n = 1; n <= orders; n++) {
    if (n > 1) {
      const grams = new Map<number, number>();
      referencePrefixes = referencePrefixes.map((prefix, r) => {
        const longer: number[] = [];
        for (let i = 0; i + n <= coded[r].length; i++) {
          longer.push(intern(grams, prefix[i] * base + coded[r][i + n - 1]));
        }
        return longer;
      });
      const longer: number[] = [];
      for (let i = 0; i + n <= last.length; i++) {
        const known = prefixes[i] !== 0 && last[i + n - 1] !== 0;
        longer.push(known ? (grams.get(prefixes[i] * base + last[i + n - 1]) ?? 0) : 0);
      }
      prefixes = longer;
      ids = grams.size;
    }
    matches.push(clippedMatches(prefixes, referencePrefixes, ids));
  }
  return matches;
}

/** How many n-grams of order `n` a sequence of `length` symbols has. */
export function ngramCount(length: number, n: number): number {
  return Math.max(0, length - n + 1);
}

/** The number of a key, given out from 1 on in the order of first sight. */
export function intern<Key>(ids: Map<Key, number>, key: Key): number {
  let id = ids.get(key);
  if (id === undefined) {
    id = ids.size + 1;
    ids.set(key, id);
  }
  return id;
}

function clippedMatches(
  hypothesis: readonly number[],
  references: readonly (readonly number[])[],
  ids: number,
): number {
  const left = new Int32Array(ids + 1);
  if (references.length === 1) {
    for (const id of references[0]) left[id]++;
  } else {
    for (const reference of references) {
      const counts = new Int32Array(ids + 1);
      for (const id of reference) if (++counts[id] > left[id]) left[id] = counts[id];
    }
  }
  let matches = 0;
  for (const id of hypothesis) {
    if (left[id] > 0) {
      left[id]--;
      matches++;
    }
  }
  return matches;
}
