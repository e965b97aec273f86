import { describe, it } from 'vitest';
import { gru, lstm } from '../../src/nn/index.js';
import { at, stack, type Tensor, transpose } from '../../src/tensor/index.js';
import { describeWithShared, readSharedJson } from '../shared.js';
import { expectTorch, readVectors, type Stored, type TorchCase } from './torch.js';

interface RecurrentCase {
  readonly config: { hidden: number; layers: number; bidirectional: boolean; lengths: number[] | null };
  readonly params: Record<string, Stored>;
  readonly x: Stored;
  readonly h0?: Stored;
  readonly c0?: Stored;
  readonly out: Stored;
  readonly h_n: Stored;
  readonly c_n?: Stored;
  readonly loss_w_out: Stored;
  readonly loss_w_h: Stored;
  readonly loss_w_c?: Stored;
  readonly loss: number;
  readonly grads: Record<string, Stored>;
  readonly grad_x: Stored;
  readonly grad_h0?: Stored;
  readonly grad_c0?: Stored;
}

function toCase(c: RecurrentCase): TorchCase {
  const present = (entries: Record<string, Stored | undefined>): Record<string, Stored> =>
    Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined)) as Record<string, Stored>;
  return {
    inputs: present({ x: c.x, h0: c.h0, c0: c.c0 }),
    parameters: c.params,
    outputs: present({ out: c.out, h: c.h_n, c: c.c_n }),
    weights: present({ out: c.loss_w_out, h: c.loss_w_h, c: c.loss_w_c }),
    loss: c.loss,
    gradients: { ...c.grads, ...present({ x: c.grad_x, h0: c.grad_h0, c0: c.grad_c0 }) },
  };
}

/** The files also have stacks that read in both directions, and sequences of different lengths. */
const plain = (cases: Record<string, RecurrentCase>) =>
  Object.entries(cases).filter(([, { config }]) => !config.bidirectional && config.lengths === null);

/** The files are batch-first; layers are time-major. */
const swap = (x: Tensor): Tensor => transpose(x, [1, 0, 2]);
const rows = (x: Tensor | undefined, count: number): Tensor[] | undefined =>
  x && Array.from({ length: count }, (_, i) => at(x, 0, i));

describeWithShared('the GRU stack', () => {
  const { cases } = readSharedJson<{ cases: Record<string, RecurrentCase> }>('vectors/torch/gru.json');
  it.each(plain(cases))('agrees with PyTorch: %s', (_, c) =>
    expectTorch((p, { x, h0 }) => {
      const { hidden, layers } = c.config;
      const { states, last } = gru(p, swap(x), { hidden, layers, initial: rows(h0, layers) });
      return { out: swap(states), h: stack(last, 0) };
    }, toCase(c)),
  );
});

describe('the LSTM stack', () => {
  const { cases } = readVectors<{ cases: Record<string, RecurrentCase> }>('lstm');
  it.each(plain(cases))('agrees with PyTorch: %s', (_, c) =>
    expectTorch((p, { x, h0, c0 }) => {
      const { hidden, layers } = c.config;
      const [states0, cells0] = [rows(h0, layers), rows(c0, layers)];
      const initial = states0?.map((state, i) => ({ state, cell: cells0![i] }));
      const { states, last, cells } = lstm(p, swap(x), { hidden, layers, initial });
      return { out: swap(states), h: stack(last, 0), c: stack(cells, 0) };
    }, toCase(c)),
  );
});
