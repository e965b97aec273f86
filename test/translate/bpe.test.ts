import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InputError } from '../../src/errors.js';
import {
  type BpeCodes,
  type BpeSegmenter,
  bpeSegmenter,
  formatBpeCodes,
  joinUnits,
  parseBpeCodes,
} from '../../src/translate/text/bpe.js';
import { learnBpe } from '../../src/translate/text/bpe-learning.js';
import { compareCodePoints, countWords, formatCounts, parseCounts } from '../../src/translate/text/vocabulary.js';
import { describeWithShared, readShared } from '../shared.js';

/** Segments a line of words; spaces at its ends are kept, runs of spaces between words become one. */
function segmentLine(line: string, segment: BpeSegmenter): string {
  const inner = line.replace(/^[\r ]+|[\r ]+$/g, '');
  if (inner === '') return line;
  const start = line.indexOf(inner);
  const units: string[] = [];
  for (const word of inner.split(' ')) if (word !== '') units.push(...segment(word));
  return line.slice(0, start) + units.join(' ') + line.slice(start + inner.length);
}

const vector = (name: string): string => readShared(`vectors/bpe/${name}`);
const lines = (text: string): string[] => text.replace(/\n$/, '').split('\n');

function countsOf(...texts: string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) for (const line of lines(text)) countWords(counts, line.split(' '));
  return counts;
}

describeWithShared('learning as subword-nmt', () => {
  const learned = (counts: Map<string, number>, options: Parameters<typeof learnBpe>[1]): string =>
    formatBpeCodes(learnBpe(counts, options));

  it.each(['en', 'de', 'mixed'])('finds the same 1,000 merges in %s', (language) => {
    const counts = countsOf(vector(`train.${language}`));
    expect(learned(counts, { symbols: 1000 })).toBe(vector(`codes.${language}.1000`));
  });

  it.each(['en', 'de', 'mixed'])('counts the same units in %s', (language) => {
    const segment = bpeSegmenter(parseBpeCodes(vector(`codes.${language}.1000`)));
    const units = new Map<string, number>();
    for (const [word, n] of countsOf(vector(`train.${language}`))) countWords(units, segment(word), n);
    expect(formatCounts(units)).toBe(vector(`vocab.${language}`));
  });

  it('subtracts the characters with totalSymbols', () => {
    const counts = countsOf(vector('train.en'));
    expect(learned(counts, { symbols: 1000, totalSymbols: true })).toBe(vector('codes.en.total1000'));
  });

  it('stops at the minimum frequency', () => {
    const counts = countsOf(vector('train.en'));
    expect(learned(counts, { symbols: 1000, minFrequency: 40 })).toBe(vector('codes.en.minfreq40'));
  });

  it('learns jointly from the summed counts and counts the units of each side', () => {
    const codes = learnBpe(countsOf(vector('train.en'), vector('train.de')), { symbols: 1000 });
    expect(formatBpeCodes(codes)).toBe(vector('codes.joint.1000'));
    const segment = bpeSegmenter(codes);
    for (const language of ['en', 'de']) {
      const units = new Map<string, number>();
      for (const [word, n] of countsOf(vector(`train.${language}`))) countWords(units, segment(word), n);
      expect(formatCounts(units)).toBe(vector(`vocab.joint.${language}`));
    }
  });
});

describeWithShared('applying as subword-nmt', () => {
  const codes = (name: string): BpeCodes => parseBpeCodes(vector(`codes.${name}`));
  const above = (name: string, threshold: number): ReadonlySet<string> =>
    new Set([...parseCounts(vector(name))].filter(([, n]) => n >= threshold).map(([unit]) => unit));
  const cases: [string, string, () => ReturnType<typeof bpeSegmenter>][] = [];
  for (const l of ['en', 'de', 'mixed']) {
    cases.push([`test.${l}`, `test.${l}.bpe`, () => bpeSegmenter(codes(`${l}.1000`))]);
    const vocabulary = (): ReadonlySet<string> => above(`vocab.${l}`, 20);
    cases.push([
      `test.${l}`,
      `test.${l}.bpe.vt20`,
      () => bpeSegmenter(codes(`${l}.1000`), { vocabulary: vocabulary() }),
    ]);
  }
  for (const l of ['en', 'de']) {
    cases.push([`test.${l}`, `test.${l}.joint.bpe`, () => bpeSegmenter(codes('joint.1000'))]);
    const vocabulary = (): ReadonlySet<string> => above(`vocab.joint.${l}`, 50);
    cases.push([
      `test.${l}`,
      `test.${l}.joint.bpe.vt50`,
      () => bpeSegmenter(codes('joint.1000'), { vocabulary: vocabulary() }),
    ]);
  }
  cases.push(['test.en', 'test.en.bpe.merges300', () => bpeSegmenter(codes('en.1000'), { merges: 300 })]);
  const glossaries = ['man', 'wom', 'st[ar]'];
  cases.push(['test.en', 'test.en.bpe.gloss', () => bpeSegmenter(codes('en.1000'), { glossaries })]);

  it.each(cases)('turns %s into %s', (input, output, segmenter) => {
    const segment = segmenter();
    const segmented = vector(input)
      .split('\n')
      .map((line) => segmentLine(line, segment))
      .join('\n');
    expect(segmented).toBe(vector(output));
  });
});

describe('byte pair encoding', () => {
  const word = fc.stringMatching(/^[abc𠮷]{1,12}$/u);
  const text = fc.array(word, { minLength: 1, maxLength: 30 });

  it('is undone by joining the units', () => {
    fc.assert(
      fc.property(text, text, fc.nat(20), (train, test, symbols) => {
        const counts = new Map<string, number>();
        countWords(counts, train);
        const segment = bpeSegmenter(learnBpe(counts, { symbols, minFrequency: 1 }));
        const units = test.flatMap((w) => [...segment(w)]);
        expect(units.join(' ').replaceAll('@@ ', '')).toBe(test.join(' '));
        expect(joinUnits(units)).toEqual(test);
      }),
    );
  });

  it('merges as the plain definition does: lowest rank first, all its occurrences from left to right', () => {
    const plain = (w: string, merges: readonly (readonly [string, string])[]): string[] => {
      let symbols = Array.from(w);
      symbols[symbols.length - 1] += '</w>';
      for (;;) {
        const best = merges.find(([l, r]) => symbols.some((s, i) => s === l && symbols[i + 1] === r));
        if (!best) break;
        const next: string[] = [];
        for (let i = 0; i < symbols.length; i++) {
          if (symbols[i] === best[0] && symbols[i + 1] === best[1]) next.push(symbols[i] + symbols[++i]);
          else next.push(symbols[i]);
        }
        symbols = next;
      }
      return symbols.map((s) => s.replace('</w>', ''));
    };
    const symbol = fc.constantFrom('a', 'b', 'aa', 'ab', 'ba', 'aab', 'a</w>', 'b</w>', 'ab</w>', 'aa</w>');
    fc.assert(
      fc.property(
        fc.array(fc.tuple(symbol, symbol), { maxLength: 12 }),
        fc.stringMatching(/^[ab]{2,14}$/),
        (merges, w) => {
          const clean = merges.filter(([left]) => !left.includes('</w>'));
          const units = bpeSegmenter({ version: '0.2', merges: clean })(w).map((u) => u.replace(/@@$/, ''));
          expect(units).toEqual(plain(w, clean));
        },
      ),
      { numRuns: 500 },
    );
  });

  it('orders tied pairs by code points, not by UTF-16 units', () => {
    // U+FF41 < U+1F600 as code points; as UTF-16 units U+FF41 > U+D83D.
    expect(compareCodePoints('\uff41', '😀')).toBeLessThan(0);
    const codes = learnBpe(
      new Map([
        ['x\uff41y', 5],
        ['x😀y', 5],
      ]),
      { symbols: 1 },
    );
    expect(codes.merges).toEqual([['😀', 'y</w>']]);
  });

  it('segments a word of 200,000 characters without quadratic cost', () => {
    const codes: BpeCodes = {
      version: '0.2',
      merges: [
        ['a', 'b'],
        ['ab', 'ab'],
        ['abab', 'ab'],
        ['b', 'a'],
      ],
    };
    const start = performance.now();
    const units = bpeSegmenter(codes)('ab'.repeat(100_000));
    expect(joinUnits(units)).toEqual(['ab'.repeat(100_000)]);
    // A quadratic search would take 2·10¹⁰ steps, a minute at the very least.
    expect(performance.now() - start).toBeLessThan(10_000);
  });

  it('understands codes of version 0.1, in which the end of a word is a symbol', () => {
    const segment = bpeSegmenter(parseBpeCodes('a b\nab </w>\n'));
    expect(segment('cab')).toEqual(['c@@', 'ab']);
  });

  it('learns nothing from words of one character', () => {
    expect(learnBpe(new Map([['a', 9]]), { symbols: 10 }).merges).toEqual([]);
  });

  it('names the line of a malformed file', () => {
    expect(() => parseBpeCodes('#version: 0.2\na b\nabc\n', 'codes')).toThrow(/^codes:3: expected two subword units/);
    expect(() => parseBpeCodes('#version: 7\n', 'codes')).toThrow(InputError);
    expect(() => bpeSegmenter({ version: '0.2', merges: [] }, { glossaries: ['('] })).toThrow(InputError);
  });
});
