/** GRU of 2 layers with 32 units over 60 steps of 5 numbers, batch 800, mean squared error of one output. */
import * as nn from '../../dist/nn/index.js';
import { Random } from '../../dist/random.js';
import * as t from '../../dist/tensor/index.js';
import { trainingSide } from './step.mjs';

const [STEPS, WIDTH, HIDDEN, LAYERS, BATCH] = [60, 5, 32, 2, 800];

function model(p, { x, y }) {
  const { last } = nn.gru(p.under('gru'), x, { hidden: HIDDEN, layers: LAYERS });
  const prediction = t.squeeze(nn.linear(p.under('out'), last.at(-1), 1), 1);
  return { loss: t.mul(t.sum(t.square(t.sub(prediction, y))), 1 / BATCH) };
}

export function setup(options) {
  const random = new Random(1);
  const normal = (...shape) => {
    const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
    random.fillNormal(data, 0, 1);
    return { data, shape };
  };
  const inputs = { x: t.f32(STEPS, 'B', WIDTH), y: t.f32('B') };
  return trainingSide({ model, inputs, batch: { x: normal(STEPS, BATCH, WIDTH), y: normal(BATCH) } }, options);
}
