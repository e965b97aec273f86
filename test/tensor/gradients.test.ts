import fc from 'fast-check';
import { describe, it } from 'vitest';
import { Random } from '../../src/random.js';
import * as t from '../../src/tensor/index.js';
import { checkGradient, positive, randomValue } from './check-gradient.js';

const size = fc.integer({ min: 1, max: 4 });
const shape = fc.array(size, { minLength: 1, maxLength: 3 });
const seed = fc.integer({ min: 0, max: 2 ** 31 });

/** Runs a check over random shapes and values. */
function overShapes(
  name: string,
  check: (random: Random, shape: number[]) => Promise<void>,
  shapes: fc.Arbitrary<number[]> = shape,
): void {
  it(`${name}: gradient agrees with finite differences`, () =>
    fc.assert(
      fc.asyncProperty(seed, shapes, (start, dims) => check(new Random(start), dims)),
      { numRuns: process.env.TEST_DEVICE === undefined ? 6 : 2 },
    ));
}

const sizes = (count: number): fc.Arbitrary<number[]> => fc.array(size, { minLength: count, maxLength: count });

describe('elementwise', () => {
  const unary: [string, (x: t.Tensor) => t.Tensor, boolean?][] = [
    ['exp', t.exp],
    ['log', t.log, true],
    ['sqrt', t.sqrt, true],
    ['neg', t.neg],
    ['abs', t.abs],
    ['sin', t.sin],
    ['cos', t.cos],
    ['square', t.square],
    ['tanh', t.tanh],
    ['sigmoid', t.sigmoid],
    ['relu', t.relu],
    ['leaky relu', (x) => t.leakyRelu(x, 0.1)],
    ['erf', t.erf],
    ['gelu', (x) => t.gelu(x)],
    ['gelu, tanh form', (x) => t.gelu(x, 'tanh')],
    ['clip', (x) => t.clip(x, -0.7, 0.7)],
    ['pow with a number', (x) => t.pow(x, 2.5), true],
    ['softmax', (x) => t.softmax(x)],
    ['log-softmax', (x) => t.logSoftmax(x)],
    ['cumsum', (x) => t.cumsum(x)],
    ['cumsum, exclusive and reversed', (x) => t.cumsum(x, { exclusive: true, reverse: true })],
    ['where', (x) => t.where(t.greater(x, 0), t.exp(x), t.mul(x, 3))],
    ['masked softmax', (x) => t.softmax(x, t.greater(x, -0.5))],
    ['masked log-softmax', (x) => t.where(t.greater(x, 0), t.logSoftmax(x, t.greater(x, 0)), 0)],
  ];
  for (const [name, fn, needsPositive] of unary) {
    overShapes(name, (random, dims) => {
      const value = randomValue(random, dims);
      return checkGradient(fn, [needsPositive ? positive(value) : value]);
    });
  }

  const binary: [string, (a: t.Tensor, b: t.Tensor) => t.Tensor][] = [
    ['add', t.add],
    ['sub', t.sub],
    ['mul', t.mul],
    ['div', t.div],
    ['pow', t.pow],
    ['maximum', t.maximum],
    ['minimum', t.minimum],
  ];
  for (const [name, fn] of binary) {
    overShapes(`${name} with broadcasting`, (random, dims) => {
      const narrow = dims.map((n, axis) => (axis % 2 === 0 ? 1 : n)).slice(random.int(dims.length));
      const [a, b] = [positive(randomValue(random, dims)), positive(randomValue(random, narrow))];
      return random.uniform() < 0.5 ? checkGradient(fn, [a, b]) : checkGradient(fn, [b, a]);
    });
  }
});

describe('reductions', () => {
  for (const [name, fn] of Object.entries({ sum: t.sum, mean: t.mean, max: t.max })) {
    overShapes(`${name} over random axes`, (random, dims) => {
      const axes = dims.map((_, axis) => axis).filter(() => random.uniform() < 0.6);
      const keepDims = random.uniform() < 0.5;
      return checkGradient((x) => fn(x, { axes, keepDims }), [randomValue(random, dims)]);
    });
  }
});

describe('shape', () => {
  const abc = sizes(3);
  overShapes(
    'reshape',
    (random, [a, b, c]) => checkGradient((x) => t.square(t.reshape(x, [c, -1])), [randomValue(random, [a, b, c])]),
    abc,
  );
  overShapes(
    'transpose',
    (random, [a, b, c]) => checkGradient((x) => t.square(t.transpose(x, [2, 0, 1])), [randomValue(random, [a, b, c])]),
    abc,
  );
  overShapes(
    'broadcast',
    (random, [a, b, c]) => checkGradient((x) => t.square(t.broadcastTo(x, [a, b, c])), [randomValue(random, [b, 1])]),
    abc,
  );
  overShapes(
    'slice',
    (random, [a, b, c]) => checkGradient((x) => t.square(t.slice(x, 1, 1, b)), [randomValue(random, [a, b + 2, c])]),
    abc,
  );
  overShapes(
    'split, one of whose parts is not used',
    (random, [a, b, c]) =>
      checkGradient(
        (x) => {
          const [first, , third] = t.split(x, 1, [b, 2, c]);
          return t.mul(t.sum(t.square(first)), t.sum(third));
        },
        [randomValue(random, [a, b + 2 + c, 2])],
      ),
    abc,
  );
  overShapes(
    'unstack',
    (random, [a, b, c]) => checkGradient((x) => t.unstack(x, 1).reduce(t.mul), [randomValue(random, [a, b, c])]),
    abc,
  );
  overShapes(
    'concat',
    (random, [a, b, c]) =>
      checkGradient(
        (x, y) => t.square(t.concat([x, y, x], 1)),
        [randomValue(random, [a, b]), randomValue(random, [a, c])],
      ),
    abc,
  );
  overShapes(
    'stack',
    (random, [a, b]) =>
      checkGradient((x, y) => t.square(t.stack([x, y], 1)), [randomValue(random, [a, b]), randomValue(random, [a, b])]),
    abc,
  );
});

describe('products', () => {
  for (const transA of [false, true]) {
    for (const transB of [false, true]) {
      overShapes(
        `batched matmul, transA ${transA}, transB ${transB}`,
        (random, [b, m, k, n]) =>
          checkGradient(
            (x, y) => t.matmul(x, y, { transA, transB }),
            [randomValue(random, transA ? [b, k, m] : [b, m, k]), randomValue(random, transB ? [b, n, k] : [b, k, n])],
          ),
        sizes(4),
      );
    }
  }
  overShapes(
    'matmul of many rows with one matrix',
    (random, [b, m, k, n]) =>
      checkGradient((x, y) => t.matmul(x, y), [randomValue(random, [b, m, k]), randomValue(random, [k, n])]),
    sizes(4),
  );
  overShapes(
    'matmul with broadcast batch axes',
    (random, [b, m, k, n]) =>
      checkGradient((x, y) => t.matmul(x, y), [randomValue(random, [b, 1, m, k]), randomValue(random, [2, k, n])]),
    sizes(4),
  );
  overShapes(
    'linear',
    (random, [b, i, o]) =>
      checkGradient(
        (x, w, c) => t.linear(x, w, c),
        [randomValue(random, [b, 2, i]), randomValue(random, [o, i]), randomValue(random, [o])],
      ),
    sizes(3),
  );
});

describe('indices', () => {
  const indices = (random: Random, count: number, below: number): t.Tensor =>
    t.constant(
      Array.from({ length: count }, () => random.int(below)),
      'i64',
    );
  overShapes(
    'gather with repeated rows',
    (random, [rows, width, count]) => {
      const at = indices(random, count + 2, rows);
      return checkGradient((x) => t.square(t.gather(x, at)), [randomValue(random, [rows, width])]);
    },
    sizes(3),
  );
  overShapes(
    'scatter-add',
    (random, [rows, width, count]) => {
      const at = indices(random, count + 2, rows);
      return checkGradient(
        (x, y) => t.square(t.scatterAdd(x, at, y)),
        [randomValue(random, [rows, width]), randomValue(random, [count + 2, width])],
      );
    },
    sizes(3),
  );
  overShapes(
    'pick',
    (random, [rows, width]) => {
      const at = indices(random, rows, width);
      return checkGradient((x) => t.square(t.pick(x, at)), [randomValue(random, [rows, width])]);
    },
    sizes(2),
  );
  overShapes(
    'take along an axis, repeatedly',
    (random, [rows, width, count]) => {
      const at = t.constant(
        Array.from({ length: count * width }, () => random.int(rows)),
        'i64',
        [count, width],
      );
      return checkGradient((x) => t.square(t.takeAlong(x, at, 0)), [randomValue(random, [rows, width])]);
    },
    sizes(3),
  );
});

describe('layers as operations', () => {
  overShapes(
    'layer norm',
    (random, [a, b, d]) =>
      checkGradient(
        (x, w, c) => t.layerNorm(x, w, c),
        [randomValue(random, [a, b, d + 1]), randomValue(random, [d + 1]), randomValue(random, [d + 1])],
        { tolerance: 1e-4 },
      ),
    sizes(3),
  );
  overShapes(
    'batch norm in training',
    (random, [rows, width]) =>
      checkGradient(
        (x, w, c) => t.batchNorm(x, w, c, t.zerosLike(w), t.onesLike(w), { training: true }).out,
        [randomValue(random, [rows + 2, width]), randomValue(random, [width]), randomValue(random, [width])],
        { tolerance: 1e-4 },
      ),
    sizes(2),
  );
  for (const smoothing of [0, 0.1]) {
    for (const form of ['fairseq', 'torch'] as const) {
      overShapes(
        `cross-entropy, ${form} smoothing ${smoothing}`,
        (random, [rows, classes]) => {
          const targets = t.constant(
            Array.from({ length: rows }, () => random.int(classes + 1)),
            'i64',
          );
          return checkGradient(
            (x) => t.crossEntropy(x, targets, { smoothing, form }),
            [randomValue(random, [rows, classes + 1])],
          );
        },
        sizes(2),
      );
    }
  }
  for (const form of ['fairseq', 'torch'] as const) {
    overShapes(
      `linear cross-entropy, ${form}`,
      (random, [rows, classes, width]) => {
        const targets = t.constant(
          Array.from({ length: rows }, () => random.int(classes + 1)),
          'i64',
        );
        return checkGradient(
          (x, w) => t.linearCrossEntropy(x, w, targets, { smoothing: 0.1, form }),
          [randomValue(random, [rows, width]), randomValue(random, [classes + 1, width])],
        );
      },
      sizes(3),
    );
    overShapes(
      `linear cross-entropy with a bias, ${form}`,
      (random, [rows, classes, width]) => {
        const targets = t.constant(
          Array.from({ length: rows }, () => random.int(classes + 1)),
          'i64',
        );
        return checkGradient(
          (x, w, bias) => t.linearCrossEntropy(x, w, targets, { smoothing: 0.1, form, bias }),
          [
            randomValue(random, [rows, width]),
            randomValue(random, [classes + 1, width]),
            randomValue(random, [classes + 1]),
          ],
        );
      },
      sizes(3),
    );
  }
  overShapes('mean squared error', (random, dims) =>
    checkGradient(t.meanSquaredError, [randomValue(random, dims), randomValue(random, dims)]),
  );

  const recurrent = (random: Random, gates: number, [steps, batch, width, hidden]: number[]): t.Value[] => [
    randomValue(random, [steps, batch, width]),
    randomValue(random, [gates * hidden, width]),
    randomValue(random, [gates * hidden, hidden]),
    randomValue(random, [gates * hidden]),
    randomValue(random, [gates * hidden]),
  ];
  const weightsOf = ([input, hidden, inputBias, hiddenBias]: t.Tensor[]): t.RecurrentWeights => ({
    input,
    hidden,
    inputBias,
    hiddenBias,
  });
  overShapes(
    'gru, all states',
    (random, dims) => checkGradient((x, ...w) => t.gru(x, weightsOf(w)).states, recurrent(random, 3, dims)),
    sizes(4),
  );
  overShapes(
    'gru, last state from an initial one',
    (random, dims) =>
      checkGradient(
        (x, a, b, c, d, h) => t.gru(x, weightsOf([a, b, c, d]), h).last,
        [...recurrent(random, 3, dims), randomValue(random, [dims[1], dims[3]])],
        { named: [['', 'B', '']].concat([[], [], [], [], ['B', '']]) },
      ),
    sizes(4),
  );
  overShapes(
    'lstm, all states',
    (random, dims) => checkGradient((x, ...w) => t.lstm(x, weightsOf(w)).states, recurrent(random, 4, dims)),
    sizes(4),
  );
  overShapes(
    'lstm, last state and cell from initial ones',
    (random, dims) =>
      checkGradient(
        (x, a, b, c, d, h, e) => {
          const { last, cell, states } = t.lstm(x, weightsOf([a, b, c, d]), { state: h, cell: e });
          return t.concat([last, cell, t.at(states, 0, 0)], 1);
        },
        [
          ...recurrent(random, 4, dims),
          randomValue(random, [dims[1], dims[3]]),
          randomValue(random, [dims[1], dims[3]]),
        ],
      ),
    sizes(4),
  );
  overShapes(
    'lstm, last cell only',
    (random, dims) => checkGradient((x, ...w) => t.lstm(x, weightsOf(w)).cell, recurrent(random, 4, dims)),
    sizes(4),
  );

  overShapes(
    'attention with causal, padding and per-sample limits',
    (random, [queries, keys, batch, half]) => {
      const lengths = t.constant(
        Array.from({ length: batch }, () => 1 + random.int(keys)),
        'i64',
      );
      const limit = t.constant(
        Array.from({ length: batch }, () => random.int(3)),
        'i64',
      );
      const causal = random.uniform() < 0.3;
      return checkGradient(
        (q, k, v) =>
          t.attention(q, k, v, { heads: 2, bias: t.attentionBias(queries, keys, { causal, limit, lengths }, q.dtype) }),
        [
          randomValue(random, [queries, batch, 2 * half]),
          randomValue(random, [keys, batch, 2 * half]),
          randomValue(random, [keys, batch, 2 * half]),
        ],
      );
    },
    sizes(4),
  );
  overShapes(
    'attention with a mask on the probabilities',
    (random, [queries, keys, batch, half]) => {
      const shape3 = [batch * 2, queries, keys];
      const mask = t.constant(
        Array.from({ length: batch * 2 * queries * keys }, () => (random.uniform() < 0.5 ? 0 : 2)),
        'f64',
        shape3,
      );
      return checkGradient(
        (q, k, v) => t.attention(q, k, v, { heads: 2, mask: t.cast(mask, q.dtype) }),
        [
          randomValue(random, [queries, batch, 2 * half]),
          randomValue(random, [keys, batch, 2 * half]),
          randomValue(random, [keys, batch, 2 * half]),
        ],
      );
    },
    sizes(4),
  );
});
