import { describe, expect, it } from 'vitest';
import { IncrementalModel } from '../../src/translate/decode/incremental-model.js';
import { TokenStream } from '../../src/translate/decode/stream.js';
import { createStepModel } from '../../src/translate/decode/translator.js';
import { adaptive, alignAtt, edAtt, monotonic, waitIfDiff, waitIfWorse } from '../../src/translate/policies/index.js';
import { waitK } from '../../src/translate/policies/wait-k.js';
import { randomArena, tinyModel, VOCABULARY } from './decode-models.js';
import { type PolicySubject, policyCases } from './policy-suite.js';
import { hashedModel, STUB_VOCABULARY, stubModel } from './stub-model.js';

const stubs = (count: number) => (): PolicySubject => ({
  models: Array.from({ length: count }, (_, salt) => hashedModel(salt)),
  vocabulary: STUB_VOCABULARY,
});

policyCases('a model of known distributions', waitK(1), stubs(1), { runs: 40 });
policyCases('a model of known distributions', waitK('full'), stubs(1), { runs: 40 });
policyCases('a model of known distributions', waitIfDiff({ initial: 1 }), stubs(1), { runs: 40 });
policyCases('a model of known distributions', waitIfDiff({ initial: 2, step: 3 }), stubs(1), { runs: 40 });
policyCases('a model of known distributions', waitIfWorse({ initial: 1, step: 2 }), stubs(1), { runs: 40 });
policyCases('a model of known distributions', adaptive({ min: 1, max: 5, from: 0.9, to: 0.3 }), stubs(1), { runs: 40 });
policyCases('three models of known distributions', adaptive({ min: 2, max: 6, from: 0.8 }, [2, 4, 5]), stubs(3), {
  runs: 40,
});
policyCases('a model of known distributions', monotonic(), stubs(1), { runs: 40 });
policyCases('a model of known distributions', alignAtt({ f: 1 }), stubs(1), { runs: 40 });
policyCases('a model of known distributions', edAtt({ alpha: 0.5, lambda: 2, heads: '2' }), stubs(1), { runs: 40 });

const transformers =
  (encoder: 'unidirectional' | 'bidirectional', seeds: readonly number[]) => async (): Promise<PolicySubject> => {
    const shape = tinyModel({ encoder });
    const steps = await Promise.all(seeds.map((seed) => createStepModel(shape, randomArena(shape, seed))));
    return {
      models: steps.map((one) => new IncrementalModel(one)),
      vocabulary: VOCABULARY,
      close: async () => {
        for (const one of steps) await one.close();
      },
    };
  };

policyCases('a random Transformer', waitK(3), transformers('unidirectional', [3]), { runs: 4 });
policyCases('a random Transformer', waitIfWorse({ initial: 2 }), transformers('unidirectional', [8]), { runs: 4 });
policyCases(
  'a random bidirectional Transformer',
  waitIfDiff({ initial: 1, step: 2 }),
  transformers('bidirectional', [12]),
  {
    runs: 4,
  },
);
policyCases('a random Transformer', adaptive({ max: 5, from: 0.9 }), transformers('unidirectional', [5]), { runs: 4 });
policyCases('a random Transformer', alignAtt({ f: 1 }), transformers('unidirectional', [6]), { runs: 4 });
policyCases('a random bidirectional Transformer', edAtt({ layer: 1, heads: '2' }), transformers('bidirectional', [7]), {
  runs: 4,
});
policyCases(
  'two random Transformers',
  adaptive({ max: 4, from: 0.9, to: 0.2 }, [1, 3]),
  transformers('unidirectional', [3, 8]),
  { runs: 4 },
);

describe('a stream', () => {
  it('can change its policy on the way', async () => {
    // The model copies: target i is source i.
    const copying = stubModel(({ source, prefix }) => [[source[prefix.length] ?? 2, 0.9]]);
    const stream = new TokenStream([copying], waitK(3), { beam: 1 });
    expect(await stream.push([5, 6, 7])).toEqual([5]);
    stream.policy = waitK(1);
    expect(await stream.push([8])).toEqual([6, 7, 8]);
    expect(await stream.end()).toEqual([]);
    // Wait-1 is asked before 8 is read: 6 and 7 can be written with three tokens.
    expect([...stream.decoded.delays]).toEqual([3, 3, 3, 4]);
  });

  it('decides what was asked with the policy that asked, and asks the new one at once', async () => {
    const steady = stubModel(({ prefix }) => [[10 + prefix.length, 0.9]]);
    const stream = new TokenStream([steady], waitIfDiff({ initial: 1 }), {
      beam: 1,
      maxLength: { ratio: 1, extra: 0 },
    });
    expect(await stream.push([5])).toEqual([]);
    const pushed = stream.push([6]);
    stream.policy = waitK(2);
    // Wait-if-diff compares two answers and writes; wait-2 then wants a third token.
    expect(await pushed).toEqual([10]);
    stream.policy = waitK(1);
    expect(await stream.push([])).toEqual([11]);
    expect([...stream.decoded.delays]).toEqual([2, 2]);
  });

  it('says which policy writes too early', async () => {
    const eager = { name: 'eager', decide: () => 'WRITE' as const };
    const stream = new TokenStream([stubModel(() => [[5, 1]])], eager, { beam: 1 });
    await expect(stream.push([4])).rejects.toThrow('the policy eager writes before it has read anything');
  });
});
