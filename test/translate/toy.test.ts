import { describe, expect, it } from 'vitest';
import { toyLanguagePair, toyText } from '../../src/translate/toy.js';

describe('the toy language pair', () => {
  const text = toyText(7, { train: 2000, valid: 50, test: 50 });
  const { lexicon } = toyLanguagePair(7);
  const all = [...text.train, ...text.valid, ...text.test];

  it('is the same for the same seed and another for another', () => {
    expect(toyText(7, { train: 20 }).train).toEqual(toyText(7, { train: 20 }).train);
    expect(toyText(8, { train: 20 }).train).not.toEqual(toyText(7, { train: 20 }).train);
  });

  it('has a lexicon of a few hundred words, each with one translation', () => {
    expect(lexicon.size).toBe(120 + 60 + 40 + 20 + 8 + 3);
    expect(new Set(lexicon.values()).size).toBe(lexicon.size);
  });

  it('has sentences of 4 to 16 words, translated word for word in another order', () => {
    const lengths = all.map((pair) => pair.source.split(' ').length);
    expect(Math.min(...lengths)).toBe(4);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(16);
    expect(Math.max(...lengths)).toBeGreaterThanOrEqual(14);
    for (const { source, target } of all) {
      const translated = source.split(' ').map((word) => lexicon.get(word));
      expect(translated.sort()).toEqual(target.split(' ').sort());
    }
  });

  it('shares no sentence between training, validation and test', () => {
    expect(new Set(all.map((pair) => pair.source)).size).toBe(all.length);
  });

  it('needs a longer wait for more of its words: fewer are known in time under wait-1 than under wait-9', () => {
    // Target position i is settled under wait-k when the source word it translates is among the first i + k.
    const known = (k: number): number => {
      let words = 0;
      let settled = 0;
      for (const { source, target } of all) {
        const places = new Map(source.split(' ').map((word, j) => [lexicon.get(word), j]));
        target.split(' ').forEach((word, i) => {
          words++;
          if (places.get(word)! <= i + k - 1) settled++;
        });
      }
      return settled / words;
    };
    const rates = [1, 3, 5, 9].map(known);
    expect(rates[0]).toBeLessThan(0.75);
    expect(rates[1]).toBeGreaterThan(rates[0] + 0.05);
    expect(rates[2]).toBeGreaterThan(rates[1]);
    expect(rates[3]).toBeGreaterThan(0.95);
  });
});
