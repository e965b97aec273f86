import { describe, expect, it } from 'vitest';
import { decodeBatch } from '../../src/translate/decode/batch.js';
import type { SearchOptions } from '../../src/translate/decode/search.js';
import type { TokenModel } from '../../src/translate/decode/token-model.js';
import { adaptive, alignAtt, edAtt, monotonic, waitIfDiff, waitIfWorse } from '../../src/translate/policies/index.js';
import type { Policy } from '../../src/translate/policies/policy.js';
import { special } from '../../src/translate/text/vocabulary.js';
import { type Opinion, stubModel } from './stub-model.js';

const END = special.eos;
const A = 10;
const B = 11;
const C = 12;

/** Tokens and delays for a source of `words` words. */
async function translated(
  policy: Policy,
  models: TokenModel | readonly TokenModel[],
  words: number,
  options: SearchOptions = { beam: 1 },
): Promise<[token: number, delay: number][]> {
  const source = [...Array.from({ length: words }, (_, i) => 4 + i), END];
  const [{ tokens, delays }] = await decodeBatch([models].flat(), [source], policy, options);
  return Array.from(tokens, (token, i) => [token, delays[i]]);
}

/** A model whose opinion on target i with r source tokens is `table[i][r − 1]`; later ones are as the last. */
function tableModel(table: readonly (readonly Opinion[])[]): TokenModel {
  return stubModel(({ source, prefix }) => {
    const row = table[prefix.length] ?? [[[END, 0.9]]];
    return row[Math.min(source.length, row.length) - 1];
  });
}

const one = (token: number, p = 0.5): Opinion => [[token, p]];

describe('wait-if-diff', () => {
  // Target 0 becomes B with the second source token and stays so; target 1 is C from the third token on.
  const model = tableModel([
    [one(A), one(B), one(B)],
    [one(A), one(B), one(C)],
  ]);

  it('writes what the last read has not changed', async () => {
    // r = 1, 2: A, B differ. r = 2, 3: B, B agree, B is written after 3. Target 1: r = 2, 3: B, C differ; r = 3, 4: C, C.
    expect(await translated(waitIfDiff({ initial: 1 }), model, 6)).toEqual([
      [B, 3],
      [C, 4],
    ]);
  });

  it('reads on where both would end the sentence', async () => {
    // Target 1: r = 1, 2, 3: the end, as after a short sentence; r = 4, 5: C.
    const hasty = tableModel([[one(B)], [one(END), one(END), one(END), one(C)]]);
    for (const policy of [waitIfDiff({ initial: 1 }), waitIfWorse({ initial: 1 })]) {
      expect(await translated(policy, hasty, 6)).toEqual([
        [B, 2],
        [C, 5],
      ]);
    }
  });

  it('first compares after the initial read and one step', async () => {
    // r = 4, 5: both targets are settled.
    expect(await translated(waitIfDiff({ initial: 4 }), model, 6)).toEqual([
      [B, 5],
      [C, 5],
    ]);
  });

  it('reads a step at a time', async () => {
    // r = 1, 3: A, B differ. r = 3, 5: B, B and C, C.
    expect(await translated(waitIfDiff({ initial: 1, step: 2 }), model, 6)).toEqual([
      [B, 5],
      [C, 5],
    ]);
  });

  it('writes all that is left when the source has ended', async () => {
    expect(await translated(waitIfDiff({ initial: 9 }), model, 4)).toEqual([
      [B, 4],
      [C, 4],
    ]);
  });

  it('ends early where two reads agree on the end, unless that is blocked', async () => {
    const ending = tableModel([
      [one(A)],
      [
        [
          [END, 0.6],
          [B, 0.4],
        ],
      ],
      [
        [
          [END, 0.6],
          [C, 0.4],
        ],
      ],
    ]);
    expect(await translated(waitIfDiff({ initial: 1 }), ending, 5)).toEqual([[A, 2]]);
    // Without the end the reads agree on B and C; then the model knows nothing but the end.
    const open = await translated(waitIfDiff({ initial: 1 }), ending, 5, { beam: 1, earlyEnd: 'block' });
    expect(open.slice(0, 3)).toEqual([
      [A, 2],
      [B, 2],
      [C, 2],
    ]);
  });

  it('decodes what is written anew with what has been read', async () => {
    const seen: boolean[] = [];
    const watching = stubModel(({ redecode }) => {
      seen.push(redecode === true);
      return one(A);
    });
    await translated(waitIfDiff({ initial: 1 }), watching, 3);
    expect(seen.every((anew) => anew)).toBe(true);
  });
});

describe('wait-if-worse', () => {
  it('also waits while the token becomes less likely', async () => {
    // B at r = 1 … 4 with p = .6, .5, .4, .7: it falls twice and is written after 4.
    const model = tableModel([[one(B, 0.6), one(B, 0.5), one(B, 0.4), one(B, 0.7)]]);
    expect(await translated(waitIfDiff({ initial: 1 }), model, 6)).toEqual([[B, 2]]);
    expect(await translated(waitIfWorse({ initial: 1 }), model, 6)).toEqual([[B, 4]]);
  });

  it('does not wait where the probability stays as it is', async () => {
    expect(await translated(waitIfWorse({ initial: 1 }), tableModel([[one(B)]]), 6)).toEqual([[B, 2]]);
  });

  it('waits where another token has taken the place, however likely', async () => {
    const model = tableModel([[one(A, 0.3), one(B, 0.9)]]);
    expect(await translated(waitIfWorse({ initial: 1 }), model, 6)).toEqual([[B, 3]]);
  });
});

describe('adaptive', () => {
  // ρ₁ … ρ₃ = .9, .5, .1.
  const policy = adaptive({ min: 1, max: 3, from: 0.9, to: 0.1 });

  it('writes with the first lag whose threshold is reached', async () => {
    // Lag 1: .6 < .9. Lag 2: .6 ≥ .5, A after 2. Lag 1 again: .95 ≥ .9, B after 2. Lag 0: READ. Lag 1: .2, lag 2: .2,
    // lag 3 = k_max: C after 5. Lag 2: the end at .6 ≥ .5.
    const model = tableModel([[one(A, 0.6)], [one(B, 0.95)], [one(C, 0.2)], [one(END, 0.6)]]);
    expect(await translated(policy, model, 8)).toEqual([
      [A, 2],
      [B, 2],
      [C, 5],
    ]);
  });

  it('reads at least k_min and at most k_max ahead', async () => {
    const sure = tableModel([[one(A, 1)], [one(B, 1)]]);
    expect(await translated(adaptive({ min: 3, max: 5 }), sure, 8)).toEqual([
      [A, 3],
      [B, 4],
    ]);
    const unsure = tableModel([[one(A, 0.01)], [one(B, 0.01)]]);
    expect(await translated(adaptive({ min: 3, max: 5, to: 0.5 }), unsure, 8)).toEqual([
      [A, 5],
      [B, 6],
    ]);
  });

  it('has the thresholds of the paper: ρ_i = ρ₁ − (i − 1)(ρ₁ − ρ₁₀)/9', () => {
    const { decide } = adaptive({ from: 1, to: 0.1 });
    // ρ₄ = 1 − 3 · .9 / 9 = .7.
    const at = (p: number) =>
      decide({ read: 9, written: 5, ended: false, proposals: [{ token: A, score: Math.log(p), wantsMore: false }] });
    expect([at(0.69), at(0.71)]).toEqual(['READ', 'WRITE']);
  });

  it('asks the model of the wait nearest to the lag, with that lag, and k_max after the end', async () => {
    const asked: [model: string, wait: number | undefined, read: number][] = [];
    const named = (name: string): TokenModel =>
      stubModel(({ source, wait, prefix }) => {
        asked.push([name, wait, source.length]);
        return one(prefix.length < 1 ? A : END, source.at(-1) === END ? 0.9 : 0.05);
      });
    const models = [named('wait-4'), named('wait-1')];
    // Lags 1 and 2 are nearer to 1, lags 3 and 4 to 4; nothing is sure enough before k_max = 4.
    await translated(adaptive({ max: 4, from: 0.9, to: 0.9 }, [4, 1]), models, 4);
    expect(asked).toEqual([
      ['wait-1', 1, 1],
      ['wait-1', 2, 2],
      ['wait-4', 3, 3],
      ['wait-4', 4, 4],
      // A is written: the lag is 3 again. Then the source ends.
      ['wait-4', 3, 4],
      ['wait-4', 4, 5],
    ]);
  });

  it('takes the smaller of two equally near waits', () => {
    const { look } = adaptive({ max: 5 }, [5, 1]);
    expect(look?.({ read: 3, written: 0, ended: false })).toEqual([{ model: 1, wait: 3 }]);
  });

  it('refuses settings that mean nothing', () => {
    expect(() => adaptive({ min: 4, max: 3 })).toThrow('min: expected at most max = 3, found 4');
    expect(() => adaptive({ from: 1.5 })).toThrow('from: expected a number from 0 to 1, found 1.5');
    expect(() => waitIfDiff({ step: 0 })).toThrow('step: expected a whole number of at least 1, found 0');
  });
});

describe('monotonic', () => {
  it('reads while the model asks for more, and no longer than there is something', async () => {
    // Target 2 is never settled: with five words and the end nothing more can be read, and C is written.
    const model = tableModel([
      ['more', 'more', one(A)],
      ['more', 'more', one(B)],
      ['more', 'more', 'more', 'more', 'more', one(C)],
    ]);
    expect(await translated(monotonic(), model, 5)).toEqual([
      [A, 3],
      [B, 3],
      [C, 5],
    ]);
  });
});

describe('policies that look at the attention', () => {
  const words = [A, B, C];
  /** Writes A, B, C; target i is aligned with source i: weight .7 there, the rest evenly over the others. */
  const diagonal = (alignment: readonly number[]) =>
    stubModel(({ prefix }) => one(words[prefix.length] ?? END), {
      attention: ({ source, prefix }) => {
        const at = Math.min(alignment[prefix.length] ?? 0, source.length - 1);
        return source.map((_, j) => (j === at ? 0.7 : 0.3 / Math.max(1, source.length - 1)));
      },
    });

  it('alignatt writes once the aligned token is not among the last f', async () => {
    // Aligned with tokens 0, 1 and 3 (from 0): written with 0 + f + 1, 1 + f + 1 and 3 + f + 1 read.
    for (const f of [1, 2]) {
      expect(await translated(alignAtt({ f }), diagonal([0, 1, 3]), 8)).toEqual([
        [A, f + 1],
        [B, f + 2],
        [C, f + 4],
      ]);
    }
    // A sentence of 4 words has no fifth: C is written at its end.
    expect(await translated(alignAtt({ f: 1 }), diagonal([0, 1, 3]), 4)).toEqual([
      [A, 2],
      [B, 3],
      [C, 4],
    ]);
  });

  it('edatt writes once the last λ tokens have less attention than α', async () => {
    // λ = 1. With n read, the last token has .7 if it is the aligned one, else .3/(n − 1): less than .2 from n = 3 on.
    expect(await translated(edAtt({ alpha: 0.2, lambda: 1 }), diagonal([0, 1, 3]), 8)).toEqual([
      [A, 3],
      [B, 3],
      [C, 5],
    ]);
    // λ = 2, α = .2: .6/(n − 1) < .2 from n = 5 on where the aligned token is not among the last two.
    expect(await translated(edAtt({ alpha: 0.2, lambda: 2 }), diagonal([0, 1, 3]), 8)).toEqual([
      [A, 5],
      [B, 5],
      [C, 6],
    ]);
    // All attention is on the last λ tokens as long as there are no others, which is never below 1.
    expect(await translated(edAtt({ alpha: 1, lambda: 3 }), diagonal([0, 0, 0]), 8)).toEqual([
      [A, 4],
      [B, 4],
      [C, 4],
    ]);
  });

  it('read on where the model would end the sentence', async () => {
    const hasty = stubModel(({ source, prefix }) => one(source.length < 4 ? END : (words[prefix.length] ?? END)), {
      attention: ({ source }) => source.map((_, j) => (j === 0 ? 1 : 0)),
    });
    for (const policy of [alignAtt({ f: 1 }), edAtt({ lambda: 1 })]) {
      expect(await translated(policy, hasty, 6)).toEqual([
        [A, 4],
        [B, 4],
        [C, 4],
      ]);
    }
  });

  it('do not repeat themselves for ever at one place of the source', async () => {
    // The model always writes A and looks at the first token: with n read, A is written while there are fewer than 2n + 10.
    const stuck = stubModel(() => one(A), { attention: ({ source }) => source.map((_, j) => (j === 0 ? 1 : 0)) });
    const written = await translated(alignAtt({ f: 1 }), stuck, 5);
    expect([2, 3, 4].map((read) => written.filter(([, delay]) => delay <= read).length)).toEqual([14, 16, 18]);
  });

  it('are refused over a model without such attention, and with settings that mean nothing', async () => {
    const silent = stubModel(() => one(A));
    await expect(translated(alignAtt(), silent, 3)).rejects.toThrow('policy: alignatt:f=2 needs the attention');
    await expect(translated(alignAtt({ layer: 3 }), diagonal([0]), 3)).rejects.toThrow(
      'policy: alignatt:f=2,layer=3: the decoder has 2 layers, found layer 3',
    );
    await expect(translated(edAtt({ heads: '1+5' }), diagonal([0]), 3)).rejects.toThrow('has 2 heads, found head 5');
    expect(() => edAtt({ alpha: 2 })).toThrow('alpha: expected a number from 0 to 1, found 2');
    expect(() => alignAtt({ layer: 0 })).toThrow('layer: expected a whole number of at least 1, found 0');
  });
});
