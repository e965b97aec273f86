import { beforeAll, describe, expect, it } from 'vitest';
import { InputError } from '../../src/errors.js';
import { Arena } from '../../src/optim/arena.js';
import { inverseSqrtSchedule } from '../../src/optim/learning-rate.js';
import { clipByNorm, type OptimizerConfig, optimizer } from '../../src/optim/optimizer.js';
import { describeWithShared, readSharedJson } from '../shared.js';

const dtypes = ['f32', 'f64'] as const;

interface TorchRuns {
  readonly p0: { readonly data: readonly number[] };
  readonly grads: readonly (readonly number[])[];
  readonly runs: Readonly<
    Record<string, { params_after_step: number[][]; lr_used?: number[]; grad_norm_before_clip?: number[] }>
  >;
}

/** The five parameters of the reference runs, as two tensors, so that a gap lies between them. */
function fiveParameters(slots: number, dtype: 'f32' | 'f64') {
  const arena = new Arena(
    [
      { name: 'a', shape: [2] },
      { name: 'b', shape: [3, 1] },
    ],
    { slots, dtype },
  );
  const set = (region: 'value' | 'grad', data: readonly number[]) => {
    arena[region]('a').set(data.slice(0, 2));
    arena[region]('b').set(data.slice(2));
  };
  return { arena, set, values: () => [...arena.value('a'), ...arena.value('b')] };
}

describeWithShared('the optimisers of PyTorch', () => {
  let torch: TorchRuns;
  beforeAll(() => {
    torch = readSharedJson('vectors/torch/optim.json');
  });
  const transformer = { betas: [0.9, 0.98], eps: 1e-9 } as const;
  const runs: Record<string, { config: OptimizerConfig; rate: number | ((step: number) => number); clip?: number }> = {
    adam_default: { config: { name: 'adam' }, rate: 0.001 },
    adam_transformer: { config: { name: 'adam', ...transformer }, rate: 0.01 },
    'adam_l2_0.01': { config: { name: 'adam', ...transformer, weightDecay: 0.01 }, rate: 0.01 },
    'adam_l2_0.1_default_betas': { config: { name: 'adam', weightDecay: 0.1 }, rate: 0.01 },
    'adamw_0.01': { config: { name: 'adamw', ...transformer }, rate: 0.01 },
    'adamw_0.1_default_betas': { config: { name: 'adamw', weightDecay: 0.1 }, rate: 0.01 },
    // d^−½·min(s^−½, s·w^−1.5) with d = 512, w = 8 is inverse_sqrt with the peak (d·w)^−½.
    adam_noam_d512_w8: {
      config: { name: 'adam', ...transformer },
      rate: inverseSqrtSchedule({ peak: (512 * 8) ** -0.5, warmup: 8, warmupInit: 0 }),
    },
    adam_clipnorm1: { config: { name: 'adam', ...transformer }, rate: 0.01, clip: 1 },
    'sgd_momentum0.9_wd0.01': { config: { name: 'sgd', momentum: 0.9, weightDecay: 0.01 }, rate: 0.01 },
  };

  it('are covered, but for those that tcts does not have', () => {
    const without = ['adagrad', 'adam_amsgrad', 'rmsprop', 'sgd_nesterov'];
    expect([...Object.keys(runs), ...without].sort()).toEqual(Object.keys(torch.runs).sort());
  });

  describe.each(dtypes)('in %s', (dtype) => {
    const tolerance = dtype === 'f64' ? 1e-9 : 1e-5;
    it.each(Object.keys(runs))('%s: the same parameters after each of 20 steps', (name) => {
      const { config, rate, clip } = runs[name];
      const expected = torch.runs[name];
      const optim = optimizer(config);
      const { arena, set, values } = fiveParameters(optim.slots, dtype);
      set('value', torch.p0.data);
      torch.grads.forEach((grads, i) => {
        set('grad', grads);
        const learningRate = typeof rate === 'number' ? rate : rate(i + 1);
        if (expected.lr_used) expect(learningRate).toBeCloseTo(expected.lr_used[i], 14);
        if (clip !== undefined) closeTo(clipByNorm(arena, clip), expected.grad_norm_before_clip?.[i], tolerance);
        optim.step(arena, learningRate);
        values().forEach((value, j) => {
          closeTo(value, expected.params_after_step[i][j], tolerance);
        });
      });
      for (const region of [arena.values, ...Array.from({ length: optim.slots }, (_, i) => arena.slot(i))]) {
        expect(paddingOf(region, arena)).toEqual(new Set([0]));
      }
    });
  });
});

describe.each(dtypes)('options without a reference file, in %s', (dtype) => {
  /** One parameter that starts at `start`, after each of the given gradients. */
  function trajectory(config: OptimizerConfig, start: number, grads: readonly number[], rate = 1): number[] {
    const optim = optimizer(config);
    const arena = new Arena([{ name: 'p', shape: [1] }], { slots: optim.slots, dtype });
    arena.value('p').set([start]);
    return grads.map((grad) => {
      arena.grad('p').set([grad]);
      optim.step(arena, rate);
      return arena.value('p')[0];
    });
  }

  it('SGD without momentum: θ − lr·(g + λθ)', () => {
    // 2 − 0.5·(1 + 0.5·2) = 1;  1 − 0.5·(3 + 0.5·1) = −0.75.
    expect(trajectory({ name: 'sgd', weightDecay: 0.5 }, 2, [1, 3], 0.5)).toEqual([1, -0.75]);
  });

  it('SGD with momentum begins with the first gradient', () => {
    // b = 1, θ = −1;  b = 0.5·1 + 2 = 2.5, θ = −3.5.
    expect(trajectory({ name: 'sgd', momentum: 0.5 }, 0, [1, 2])).toEqual([-1, -3.5]);
  });

  it('AdamW decays by 0.01 unless told otherwise, also without a gradient', () => {
    expect(trajectory({ name: 'adamw' }, 1, [0], 0.5)[0]).toBeCloseTo(1 - 0.5 * 0.01, dtype === 'f32' ? 7 : 15);
  });
});

describe('the state of an optimiser', () => {
  it.each(['sgd', 'adam', 'adamw'] as const)('continues %s exactly', (name) => {
    const config = name === 'sgd' ? { name, momentum: 0.9 } : { name };
    const arenas = [0, 1].map(() => new Arena([{ name: 'p', shape: [9] }], { slots: optimizer(config).slots }));
    const [whole, parted] = arenas;
    const update = (arena: Arena, optim: ReturnType<typeof optimizer>, from: number, to: number) => {
      for (let t = from; t < to; t++) {
        arena.grad('p').forEach((_, i, grad) => {
          grad[i] = Math.sin(1 + t * 9 + i);
        });
        optim.step(arena, 0.1);
      }
    };
    update(whole, optimizer(config), 0, 10);
    const before = optimizer(config);
    update(parted, before, 0, 4);
    const after = optimizer(config);
    after.load(JSON.parse(JSON.stringify(before.state())));
    update(parted, after, 4, 10);
    expect(after.state()).toEqual({ name, step: 10 });
    expect(parted.values).toEqual(whole.values);
  });

  it('is refused by another optimiser, and when it is damaged', () => {
    expect(() => optimizer({ name: 'adam' }).load({ name: 'sgd', step: 3 })).toThrow('belongs to sgd, not to adam');
    expect(() => optimizer({ name: 'adam' }).load({ name: 'adam', step: -1 })).toThrow(InputError);
  });
});

describe('a bad configuration', () => {
  it.each<[string, object]>([
    ['adam.betas[0]', { name: 'adam', betas: [1, 0.9] }],
    ['adamw.betas[1]', { name: 'adamw', betas: [0.9, -0.1] }],
    ['adam.eps', { name: 'adam', eps: 0 }],
    ['adamw.eps', { name: 'adamw', eps: 1e-60 }],
    ['adam.weightDecay', { name: 'adam', weightDecay: Number.NaN }],
    ['sgd.momentum', { name: 'sgd', momentum: -1 }],
    ['optimizer.name', { name: 'lion' }],
  ])('is refused, naming %s', (key, config) => {
    let caught: unknown;
    try {
      optimizer(config as OptimizerConfig);
    } catch (error) {
      caught = error;
    }
    expect(caught).toBeInstanceOf(InputError);
    expect((caught as InputError).where.key).toBe(key);
  });

  it('a learning rate that is no number, or an arena without slots, is refused at the step', () => {
    const arenaWith = (slots: number) => new Arena([{ name: 'p', shape: [1] }], { slots });
    expect(() => optimizer({ name: 'adam' }).step(arenaWith(2), Number.NaN)).toThrow(InputError);
    expect(() => optimizer({ name: 'adam' }).step(arenaWith(1), 0.1)).toThrow('needs an arena with 2 slots');
  });
});

function closeTo(actual: number, expected: number | undefined, relative: number): void {
  expect(expected).toBeDefined();
  expect(Math.abs(actual - expected!)).toBeLessThanOrEqual(relative * Math.abs(expected!));
}

function paddingOf(region: Float32Array | Float64Array, arena: Arena): Set<number> {
  const line = 64 / region.BYTES_PER_ELEMENT;
  return new Set([...region.subarray(arena.value('a').length, line), ...region.subarray(line + 3)]);
}
