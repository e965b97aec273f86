import { describe, expect, it } from 'vitest';
import { verbFinalText } from '../../src/translate/toy.js';

describe('the verb-final language pair', () => {
  const text = verbFinalText(7, { train: 2000, valid: 50, test: 50 });
  const all = [...text.train, ...text.valid, ...text.test].map(({ source, target }) => ({
    source: source.split(' '),
    target: target.split(' '),
  }));

  it('follows from its seed, and has no sentence twice', () => {
    expect(verbFinalText(7, { train: 20 }).train).toEqual(verbFinalText(7, { train: 20 }).train);
    expect(verbFinalText(8, { train: 20 }).train).not.toEqual(verbFinalText(7, { train: 20 }).train);
    expect(new Set(all.map(({ source }) => source.join(' '))).size).toBe(2100);
  });

  it('says the same in both languages, in another order', () => {
    for (const { source, target } of all) {
      expect(target.toSorted()).toEqual(source.toSorted());
      // The verb ends the source and follows the subject.
      const verb = target.indexOf(source.at(-1)!);
      expect(target.slice(0, verb)).toEqual(source.slice(0, verb));
    }
  });

  it('leaves the verb open for wait-1 nearly always, and for wait-5 often', () => {
    // Known in time iff k ≥ n − s, with s words before the verb in the target.
    const needs = all.map(({ source, target }) => source.length - target.indexOf(source.at(-1)!));
    const share = (k: number) => needs.filter((need) => need <= k).length / needs.length;
    expect(share(1)).toBeLessThan(0.1);
    expect(share(5)).toBeGreaterThan(0.4);
    expect(share(5)).toBeLessThan(0.8);
    expect(Math.max(...needs)).toBeLessThanOrEqual(9);
  });
});
