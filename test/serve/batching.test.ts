import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { rateLimit } from '../../src/serve/limits.js';
import { Batcher, BatchingModel } from '../../src/serve/live-model.js';
import { TokenStream } from '../../src/translate/decode/stream.js';
import type { Question, TokenModel } from '../../src/translate/decode/token-model.js';
import { waitK } from '../../src/translate/policies/wait-k.js';
import { special } from '../../src/translate/text/vocabulary.js';

/** Copies the source: what comes after i tokens is the i-th source token; `</s>` ends it. Notes what it was asked. */
class CopyModel implements TokenModel {
  readonly beam = 1;
  readonly maxPositions = 100;
  readonly asked: number[] = [];
  readonly states: WeakRef<object>[] = [];

  begin(): object {
    const state = { cache: new Float32Array(1000) };
    this.states.push(new WeakRef(state));
    return state;
  }

  async propose(questions: readonly Question[]) {
    this.asked.push(questions.length);
    const next = questions.map(({ source, prefix }) => source[prefix.length] ?? special.eos);
    return {
      width: 3,
      tokens: Int32Array.from(next.flatMap((token) => [token, 98, 99])),
      scores: Float32Array.from(next.flatMap(() => [-0.1, -3, -4])),
    };
  }
}

describe('streams over a batching model', () => {
  it('are asked about together, and each gets its own answers', async () => {
    const model = new CopyModel();
    const gathered = new BatchingModel(model);
    const sources = Array.from({ length: 20 }, (_, i) => [10 + i, 40 + i, 70 + i]);
    const streams = sources.map(() => new TokenStream([gathered], waitK(1), { beam: 1 }));
    for (let t = 0; t < 3; t++) {
      const written = await Promise.all(streams.map((stream, i) => stream.push([sources[i][t]])));
      expect(written).toEqual(sources.map((source) => [source[t]]));
    }
    expect(await Promise.all(streams.map((stream) => stream.end()))).toEqual(sources.map(() => []));
    // Three tokens and the end, each one call for all twenty.
    expect(model.asked).toEqual([20, 20, 20, 20]);
  });

  it('are taken at most so many at a time', async () => {
    const model = new CopyModel();
    const gathered = new BatchingModel(model, 8);
    const streams = Array.from({ length: 20 }, () => new TokenStream([gathered], waitK(1), { beam: 1 }));
    await Promise.all(streams.map((stream) => stream.push([7])));
    expect(model.asked).toEqual([8, 8, 4]);
  });

  it('leave nothing behind when they are dropped', async () => {
    const model = new CopyModel();
    const gathered = new BatchingModel(model);
    await (async () => {
      const stream = new TokenStream([gathered], waitK(1), { beam: 1 });
      await stream.push([7, 8]);
      expect(model.states.length).toBe(1);
    })();
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    for (let i = 0; i < 5; i++) {
      await new Promise(setImmediate);
      collect();
    }
    expect(model.states[0].deref()).toBeUndefined();
  });
});

describe('a batcher', () => {
  it('tells everyone in a batch that failed, and goes on', async () => {
    let fails = true;
    const doubled = new Batcher(async (numbers: readonly number[]) => {
      if (fails) throw new Error('broken');
      return numbers.map((n) => 2 * n);
    }, 10);
    const results = await Promise.allSettled([1, 2].map((n) => doubled.ask(n)));
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    fails = false;
    expect(await Promise.all([1, 2].map((n) => doubled.ask(n)))).toEqual([2, 4]);
  });
});

describe('a rate limit', () => {
  it('allows a burst, then so many a second', () => {
    let now = 0;
    const within = rateLimit(2, 3, () => now);
    expect([within(), within(), within(), within()]).toEqual([true, true, true, false]);
    now = 499;
    expect(within()).toBe(false);
    now = 1001;
    expect([within(), within(), within()]).toEqual([true, true, false]);
    now = 60_000;
    expect([within(), within(), within(), within()]).toEqual([true, true, true, false]);
  });
});
