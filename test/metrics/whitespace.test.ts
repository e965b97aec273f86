import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { singleSpaced, splitWords, strip, stripEnd, withoutSpaces } from '../../src/metrics/tokenizers.js';

// The code points for which Python's str.isspace() holds (Unicode White_Space and U+001C–U+001F).
const PYTHON_SPACES =
  '\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a' +
  '\u2028\u2029\u202f\u205f\u3000';

describe("Python's white space", () => {
  it('is exactly its 29 code points', () => {
    const spaces: string[] = [];
    for (let code = 0; code < 0x10000; code++) {
      const character = String.fromCharCode(code);
      if (splitWords(character).length === 0) spaces.push(character);
    }
    expect(spaces.join('')).toBe(PYTHON_SPACES);
  });

  const text = fc.string({ unit: fc.constantFrom(...PYTHON_SPACES, 'a', 'b', '\ufeff', '\u200b') });

  it('is what a line is split at, stripped of and squeezed to', () => {
    fc.assert(
      fc.property(text, (line) => {
        const words = splitWords(line);
        expect(words.every((word) => /^[ab\ufeff\u200b]+$/.test(word))).toBe(true);
        expect(words.join('')).toBe(withoutSpaces(line));
        expect(words.join(' ')).toBe(singleSpaced(strip(line)));
        expect(line.startsWith(stripEnd(line))).toBe(true);
        expect(splitWords(line.slice(stripEnd(line).length))).toEqual([]);
        expect(stripEnd(strip(line))).toBe(strip(line));
      }),
    );
  });

  it('costs no more than linear time in a long run inside a line', () => {
    const line = `a${' '.repeat(300_000)}b`;
    expect(stripEnd(line)).toBe(line);
    expect(strip(line)).toBe(line);
  }, 5000);
});
