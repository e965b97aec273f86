import { z } from 'zod';
import { lstm as lstmStack } from '../../nn/index.js';
import type { Architecture, OptionsOf } from './architecture.js';
import { dropoutKey, hiddenKey, layersKey } from './keys.js';

export const lstmSchema = z.strictObject({
  name: z.literal('lstm').describe('Stacked LSTM layers, the last state.'),
  hidden: hiddenKey,
  layers: layersKey,
  dropout: dropoutKey,
});

export const lstm: Architecture<OptionsOf<typeof lstmSchema>> = {
  layout: 'time-major',
  trunk: (p, { x }, { hidden, layers, dropout }, { training }) =>
    lstmStack(p, x, { hidden, layers, dropout: training ? dropout : 0 }).last[layers - 1], // [B, H]
};
