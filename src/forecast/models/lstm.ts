import { z } from 'zod';
import { lstm as lstmStack } from '../../nn/index.js';
import { dropoutKey, hiddenKey, layersKey, networkModel } from './model.js';

export const lstmModel = networkModel({
  schema: z.strictObject({
    name: z.literal('lstm').describe('Stacked LSTM layers, the last state.'),
    hidden: hiddenKey,
    layers: layersKey,
    dropout: dropoutKey,
  }),
  title: 'LSTM',
  layout: 'time-major',
  trunk: (p, { x }, { hidden, layers, dropout }, { training }) =>
    lstmStack(p, x, { hidden, layers, dropout: training ? dropout : 0 }).last[layers - 1], // [B, H]
});
