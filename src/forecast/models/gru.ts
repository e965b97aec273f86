import { z } from 'zod';
import { gru as gruStack } from '../../nn/index.js';
import { dropoutKey, hiddenKey, layersKey, networkModel } from './model.js';

export const gruModel = networkModel({
  schema: z.strictObject({
    name: z.literal('gru').describe("The paper's model: stacked GRU layers, the last state."),
    hidden: hiddenKey,
    layers: layersKey,
    dropout: dropoutKey,
  }),
  title: 'GRU',
  layout: 'time-major',
  trunk: (p, { x }, { hidden, layers, dropout }, { training }) =>
    gruStack(p, x, { hidden, layers, dropout: training ? dropout : 0 }).last[layers - 1], // [B, H]
});
