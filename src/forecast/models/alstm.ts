import { z } from 'zod';
import { gru, linear } from '../../nn/index.js';
import { concat, mul, softmax, sum, tanh, transpose } from '../../tensor/index.js';
import { dropoutKey, hiddenKey, layersKey, networkModel } from './model.js';

/**
 * ALSTM (Qin et al. 2017) in qlib's form, whose recurrent layers are GRUs: with the states h_t over tanh(W x_t + b),
 *
 *     α = softmax over t of vᵀ tanh(U h_t + c),   representation [h_T; Σ_t α_t h_t]
 */
export const alstmModel = networkModel({
  schema: z.strictObject({
    name: z.literal('alstm').describe('Recurrent layers with attention over the days.'),
    hidden: hiddenKey,
    layers: layersKey,
    dropout: dropoutKey,
  }),
  title: 'ALSTM',
  layout: 'time-major',
  trunk(p, { x }, { hidden, layers, dropout }, { training }) {
    const embedded = tanh(linear(p.under('input'), x, hidden)); // [T, B, H]
    const { states, last } = gru(p.under('rnn'), embedded, { hidden, layers, dropout: training ? dropout : 0 });
    const hint = tanh(linear(p.under('attention'), states, Math.max(1, hidden >> 1))); // [T, B, H/2]
    const scores = linear(p.under('score'), hint, 1, { bias: false }); // [T, B, 1]
    const weights = transpose(softmax(transpose(scores, [1, 2, 0])), [2, 0, 1]); // [T, B, 1]
    return concat([last[layers - 1], sum(mul(states, weights), { axes: [0] })], 1); // [B, 2H]
  },
});
