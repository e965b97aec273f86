import { z } from 'zod';
import { lastSize, linear, ones, zeros } from '../../nn/index.js';
import { batchNorm, dropout, leakyRelu, type Parameters, type Tensor } from '../../tensor/index.js';
import { networkModel, type TrunkMode } from './model.js';

/** qlib's MLP: in each layer dropout, linear, batch norm, LeakyReLU(0.1). */
export const mlpModel = networkModel({
  schema: z.strictObject({
    name: z.literal('mlp').describe('Feed-forward layers with batch normalisation and leaky ReLU.'),
    hidden: z.array(z.int().min(1)).min(1).default([256]).describe('Widths of the hidden layers.'),
    dropout: z.number().min(0).lt(1).default(0.05).describe('Probability of dropout before each layer.'),
  }),
  title: 'MLP',
  layout: 'flat',
  wholeBatch: true,
  trunk(p, { x }, { hidden, dropout: rate }, mode) {
    return hidden.reduce((h, width, i) => {
      const thinned = mode.training ? dropout(h, rate) : h;
      return leakyRelu(normalise(p.under(i), linear(p.under(i), thinned, width), `${i}.`, mode), 0.1);
    }, x); // [B, width of the last]
  },
});

function normalise(p: Parameters, x: Tensor, prefix: string, { training, keep }: TrunkMode): Tensor {
  const shape = [lastSize(x)];
  const norm = p.under('norm');
  const { out, mean, variance } = batchNorm(
    x,
    norm.get('weight', shape, ones),
    norm.get('bias', shape, zeros),
    norm.get('running_mean', shape, zeros),
    norm.get('running_var', shape, ones),
    { training },
  );
  if (training) {
    keep(`${prefix}norm.running_mean`, mean);
    keep(`${prefix}norm.running_var`, variance);
  }
  return out;
}
