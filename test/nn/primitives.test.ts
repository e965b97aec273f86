import { describe, it } from 'vitest';
import * as t from '../../src/tensor/index.js';
import { describeWithShared, readSharedJson } from '../shared.js';
import { expectTorch, readVectors, type Stored } from './torch.js';

interface UnaryCase {
  readonly x: Stored;
  readonly out: Stored;
  readonly loss_w: Stored;
  readonly grad_x: Stored;
}

function checkUnary(fn: (x: t.Tensor) => t.Tensor, c: UnaryCase): Promise<void> {
  return expectTorch((_, { x }) => ({ out: fn(x) }), {
    inputs: { x: c.x },
    outputs: { out: c.out },
    weights: { out: c.loss_w },
    gradients: { x: c.grad_x },
  });
}

describeWithShared('primitives agree with PyTorch', () => {
  const { ops } = readSharedJson<{ ops: Record<string, UnaryCase & Record<string, Stored>> }>(
    'vectors/torch/primitives.json',
  );
  const unary = {
    softmax: t.softmax,
    log_softmax: t.logSoftmax,
    relu: t.relu,
    gelu_erf: t.gelu,
    tanh: t.tanh,
    sigmoid: t.sigmoid,
  };
  it.each(Object.entries(unary))('%s', (name, fn) => checkUnary((x) => fn(x), ops[name]));

  it('layer_norm', () => {
    const c = ops.layer_norm;
    return expectTorch((_, { x, weight, bias }) => ({ out: t.layerNorm(x, weight, bias, 1e-5) }), {
      inputs: { x: c.x, weight: c.weight, bias: c.bias },
      outputs: { out: c.out },
      weights: { out: c.loss_w },
      gradients: { x: c.grad_x, weight: c.grad_weight, bias: c.grad_bias },
    });
  });

  it('embedding, whose padding row gets no gradient when the caller masks it', () => {
    const c = ops.embedding as unknown as Record<string, Stored> & { ids: number[][] };
    const ids = { shape: [2, 3], data: c.ids.flat() };
    return expectTorch(
      (_, { weight, ids: index }) => {
        const rows = t.gather(weight, index);
        // PyTorch's padding_idx 0 keeps the value and stops the gradient.
        return { out: t.where(t.expandDims(t.equal(index, 0), -1), t.stopGradient(rows), rows) };
      },
      {
        inputs: { weight: c.weight },
        integers: { ids },
        outputs: { out: c.out },
        weights: { out: c.loss_w },
        gradients: { weight: c.grad_weight },
      },
    );
  });
});

describe('activations and losses agree with PyTorch', () => {
  const { ops } = readVectors<{ ops: Record<string, UnaryCase & { target: Stored; weight: Stored; loss: number }> }>(
    'losses',
  );
  it('leaky relu', () => checkUnary((x) => t.leakyRelu(x, 0.1), ops['leaky_relu_0.1']));
  it('gelu', () => checkUnary((x) => t.gelu(x), ops.gelu_erf));
  it('gelu, tanh form', () => checkUnary((x) => t.gelu(x, 'tanh'), ops.gelu_tanh));
  it('mean squared error', () => {
    const c = ops.mse_mean;
    const one = { shape: [], data: [1] };
    return expectTorch((_, { x, target }) => ({ loss: t.meanSquaredError(x, target) }), {
      inputs: { x: c.x, target: c.target },
      outputs: {},
      weights: { loss: one },
      loss: c.loss,
      gradients: { x: c.grad_x },
    });
  });
});

interface SmoothingCase {
  readonly eps: number;
  readonly ignore_index: number | null;
  readonly reduction?: string;
  readonly logits: Stored;
  readonly target: number[];
  readonly loss?: number[];
  readonly loss_sum?: number;
  readonly grad_logits: Stored;
}

describeWithShared('label-smoothed cross-entropy', () => {
  const { torch, fairseq } = readSharedJson<{ torch: SmoothingCase[]; fairseq: SmoothingCase[] }>(
    'vectors/torch/label_smoothing.json',
  );
  const kept = (c: SmoothingCase): number[] => c.target.map((target) => (target === c.ignore_index ? 0 : 1));
  const check = (c: SmoothingCase, form: 'fairseq' | 'torch', weights: number[], loss: number): Promise<void> => {
    const rows = c.target.length;
    const targets = { shape: [rows], data: c.target.map((target) => Math.max(target, 0)) };
    return expectTorch(
      (_, { logits, target }) => ({ losses: t.crossEntropy(logits, target, { smoothing: c.eps, form }) }),
      {
        inputs: { logits: c.logits },
        integers: { target: targets },
        outputs: {},
        weights: { losses: { shape: [rows], data: weights } },
        loss,
        gradients: { logits: c.grad_logits },
      },
    );
  };
  it.each(torch.map((c, i) => [`eps ${c.eps}, ignore ${c.ignore_index}, ${c.reduction}, case ${i}`, c] as const))(
    'agrees with PyTorch: %s',
    (_, c) => {
      const count = kept(c).reduce((a, b) => a + b, 0);
      const weights = kept(c).map((weight) => (c.reduction === 'mean' ? weight / count : weight));
      return check(
        c,
        'torch',
        weights,
        c.loss!.reduce((a, b) => a + b, 0),
      );
    },
  );
  it.each(fairseq.map((c) => [`eps ${c.eps}, ignore ${c.ignore_index}`, c] as const))(
    'agrees with fairseq: %s',
    (_, c) => check(c, 'fairseq', kept(c), c.loss_sum!),
  );
});

interface BatchNormStep extends UnaryCase {
  readonly grads: Record<string, Stored>;
  readonly running_mean: Stored;
  readonly running_var: Stored;
}

describe('batch norm', () => {
  const { cases } = readVectors<{
    cases: Record<string, { params: Record<string, Stored>; train: BatchNormStep[]; eval: BatchNormStep }>;
  }>('batch_norm');
  const { params, train, eval: evaluation } = cases.two_dimensional;
  const start = { running_mean: { shape: [4], data: [0, 0, 0, 0] }, running_var: { shape: [4], data: [1, 1, 1, 1] } };
  const check = (
    step: BatchNormStep,
    before: Pick<BatchNormStep, 'running_mean' | 'running_var'>,
    training: boolean,
  ): Promise<void> =>
    expectTorch(
      (_, { x, weight, bias, center, spread }) => {
        const { out, mean, variance } = t.batchNorm(x, weight, bias, center, spread, { training });
        return { out, mean, variance };
      },
      {
        inputs: {
          x: step.x,
          weight: params.weight,
          bias: params.bias,
          center: before.running_mean,
          spread: before.running_var,
        },
        outputs: { out: step.out, mean: step.running_mean, variance: step.running_var },
        weights: { out: step.loss_w },
        gradients: { x: step.grad_x, ...step.grads },
      },
    );
  it.each([0, 1, 2])('agrees with PyTorch in training batch %i', (i) =>
    check(train[i], i === 0 ? start : train[i - 1], true),
  );
  it('agrees with PyTorch in evaluation', () => check(evaluation, train[2], false));
});
