import { z } from 'zod';
import { gru, linear } from '../../nn/index.js';
import { add, equal, expandDims, leakyRelu, matmul, softmax, transpose } from '../../tensor/index.js';
import { dropoutKey, hiddenKey, layersKey, networkModel } from './model.js';

/**
 * Graph attention (Veličković et al. 2018) in qlib's form: one head, every stock of a day linked to every other. With h
 * the last state of the GRU layers,
 *
 *     e_ij = LeakyReLU(aᵀ [W h_j; W h_i]),   A = softmax over j of e_ij,   h′ = A h + h,   LeakyReLU(V h′ + c)
 *
 * and aᵀ [u; v] = a₁ᵀu + a₂ᵀv, so that the scores of all pairs are a sum of a row and a column.
 */
export const gatModel = networkModel({
  schema: z.strictObject({
    name: z.literal('gat').describe('GRU layers, then attention among the stocks of the day.'),
    hidden: hiddenKey,
    layers: layersKey,
    dropout: dropoutKey,
  }),
  title: 'GAT',
  layout: 'time-major',
  seesDays: true,
  wholeBatch: true,
  trunk(p, { x, day }, { hidden, layers, dropout }, { training }) {
    const h = gru(p.under('rnn'), x, { hidden, layers, dropout: training ? dropout : 0 }).last[layers - 1]; // [B, H]
    const moved = linear(p.under('transformation'), h, hidden); // [B, H]
    const seen = linear(p.under('seen'), moved, 1, { bias: false }); // a₁ᵀ W h_j, [B, 1]
    const seeing = linear(p.under('seeing'), moved, 1, { bias: false }); // a₂ᵀ W h_i, [B, 1]
    const scores = leakyRelu(add(transpose(seen, [1, 0]), seeing)); // [B, B]
    const sameDay = equal(expandDims(day!, 1), expandDims(day!, 0)); // [B, B]
    const attended = matmul(softmax(scores, sameDay), h); // [B, H]
    return leakyRelu(linear(p.under('fc'), add(attended, h), hidden));
  },
});
