import { describe, expect, it } from 'vitest';
import { InputError } from '../../src/errors.js';
import { type LearningRateConfig, learningRate } from '../../src/optim/learning-rate.js';

describe('inverse_sqrt', () => {
  const rate = learningRate({ name: 'inverse_sqrt', peak: 5e-4, warmup: 4000 });

  it('rises linearly from 1e-7 to the peak', () => {
    expect(rate.at(0)).toBe(1e-7);
    // Halfway: (1e-7 + 5e-4)/2.
    expect(rate.at(2000)).toBeCloseTo(2.5005e-4, 15);
    expect(rate.at(4000)).toBe(5e-4);
  });

  it('falls with the root of the update number', () => {
    expect(rate.at(16_000)).toBeCloseTo(2.5e-4, 15);
    expect(rate.at(400_000)).toBeCloseTo(5e-5, 15);
  });

  it('warms up over 4000 updates unless told otherwise', () => {
    expect(learningRate({ name: 'inverse_sqrt', peak: 1 }).at(16_000)).toBe(0.5);
  });
});

describe('constant', () => {
  it('is the peak from the first update', () => {
    const rate = learningRate({ name: 'constant', peak: 0.01 });
    expect([rate.at(0), rate.at(1), rate.at(1e6)]).toEqual([0.01, 0.01, 0.01]);
  });

  it('can warm up', () => {
    const rate = learningRate({ name: 'constant', peak: 1, warmup: 4, warmupInit: 0 });
    expect([0, 1, 2, 3, 4, 5].map(rate.at)).toEqual([0, 0.25, 0.5, 0.75, 1, 1]);
  });
});

describe('cosine', () => {
  it('goes from the peak to the minimum along half a cosine and stays there', () => {
    const rate = learningRate({ name: 'cosine', peak: 1, minimum: 0.2, updates: 100 });
    expect(rate.at(0)).toBe(1);
    // cos 60° = ½ a third of the way, cos 90° = 0 halfway, cos 120° = −½.
    expect(rate.at(100 / 3)).toBeCloseTo(0.2 + 0.8 * 0.75, 14);
    expect(rate.at(50)).toBeCloseTo(0.6, 14);
    expect(rate.at(200 / 3)).toBeCloseTo(0.2 + 0.8 * 0.25, 14);
    expect(rate.at(100)).toBeCloseTo(0.2, 14);
    expect(rate.at(1000)).toBeCloseTo(0.2, 14);
  });

  it('starts its descent after the warm-up', () => {
    const rate = learningRate({ name: 'cosine', peak: 1, updates: 110, warmup: 10, warmupInit: 0 });
    expect(rate.at(5)).toBe(0.5);
    expect(rate.at(10)).toBe(1);
    expect(rate.at(60)).toBeCloseTo(0.5, 14);
    expect(rate.at(110)).toBeCloseTo(0, 14);
  });
});

describe('reduce_on_plateau', () => {
  const ratesAfter = (config: Omit<LearningRateConfig & { name: 'reduce_on_plateau' }, 'name'>, results: number[]) => {
    const rate = learningRate({ name: 'reduce_on_plateau', ...config });
    return results.map((result) => {
      rate.observe(result);
      return rate.at(0);
    });
  };

  it('reduces at the first bad validation beyond its patience, and counts anew', () => {
    // The first result is the best; bad ones number 1, 2 | 3 reduces; 1, 2 | 3 reduces.
    const rates = ratesAfter({ peak: 1, factor: 0.5, patience: 2 }, [1, 1, 1, 1, 1, 1, 1]);
    expect(rates).toEqual([1, 1, 1, 0.5, 0.5, 0.5, 0.25]);
  });

  it('an improvement must exceed the smallest change that counts', () => {
    // As in PyTorch with mode max and threshold_mode abs: 10.05 is not above 10 + 0.1, 10.2 is.
    expect(ratesAfter({ peak: 1, factor: 0.5, patience: 0, minDelta: 0.1 }, [10, 10.05, 10.2])).toEqual([1, 0.5, 0.5]);
    expect(ratesAfter({ peak: 1, factor: 0.5, patience: 0 }, [-2, -2, -1.999])).toEqual([1, 0.5, 0.5]);
  });

  it('stops at the minimum, and never rises to it', () => {
    const config = { peak: 1, factor: 0.1, patience: 0 };
    expect(ratesAfter({ ...config, minimum: 0.05 }, [1, 1, 1, 1])).toEqual([1, 0.1, 0.05, 0.05]);
    expect(ratesAfter({ ...config, minimum: 2 }, [1, 1])).toEqual([1, 1]);
  });

  it('takes NaN as no improvement', () => {
    expect(ratesAfter({ peak: 1, factor: 0.5, patience: 0 }, [Number.NaN, 1, Number.NaN])).toEqual([0.5, 0.5, 0.25]);
  });

  it('warms up first', () => {
    const rate = learningRate({ name: 'reduce_on_plateau', peak: 1, warmup: 2, warmupInit: 0 });
    expect([0, 1, 2, 3].map(rate.at)).toEqual([0, 0.5, 1, 1]);
  });

  it('continues from its saved state', () => {
    const config = { name: 'reduce_on_plateau', peak: 1, factor: 0.5, patience: 2 } as const;
    const results = [1, 2, 2, 2, 2, 2, 2.5, 2, 2, 2, 2, 2, 2];
    for (let cut = 0; cut <= results.length; cut++) {
      const whole = learningRate(config);
      const before = learningRate(config);
      const after = learningRate(config);
      results.forEach((result) => {
        whole.observe(result);
      });
      results.slice(0, cut).forEach((result) => {
        before.observe(result);
      });
      after.load(JSON.parse(JSON.stringify(before.state())));
      results.slice(cut).forEach((result) => {
        after.observe(result);
      });
      expect(after.state()).toEqual(whole.state());
    }
  });
});

describe('a bad schedule', () => {
  it.each<[string, object]>([
    ['learningRate.peak', { name: 'constant', peak: -1 }],
    ['learningRate.warmup', { name: 'inverse_sqrt', peak: 1, warmup: 0 }],
    ['learningRate.updates', { name: 'cosine', peak: 1, updates: 10, warmup: 10 }],
    ['learningRate.factor', { name: 'reduce_on_plateau', peak: 1, factor: 1 }],
    ['learningRate.peak', { name: 'reduce_on_plateau', peak: Number.NaN }],
    ['learningRate.name', { name: 'linear', peak: 1 }],
  ])('is refused, naming %s', (key, config) => {
    let caught: unknown;
    try {
      learningRate(config as LearningRateConfig);
    } catch (error) {
      caught = error;
    }
    expect(caught).toBeInstanceOf(InputError);
    expect((caught as InputError).where.key).toBe(key);
  });

  it('does not take the state of another', () => {
    const plateau = learningRate({ name: 'reduce_on_plateau', peak: 1 });
    const constant = learningRate({ name: 'constant', peak: 1 });
    expect(() => constant.load(plateau.state())).toThrow(InputError);
    expect(() => plateau.load(constant.state())).toThrow(InputError);
  });
});
