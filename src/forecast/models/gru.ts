import { z } from 'zod';
import { gru as gruStack } from '../../nn/index.js';
import type { Architecture, OptionsOf } from './architecture.js';
import { dropoutKey, hiddenKey, layersKey } from './keys.js';

export const gruSchema = z.strictObject({
  name: z.literal('gru').describe("The paper's model: stacked GRU layers, the last state."),
  hidden: hiddenKey,
  layers: layersKey,
  dropout: dropoutKey,
});

export const gru: Architecture<OptionsOf<typeof gruSchema>> = {
  layout: 'time-major',
  trunk: (p, { x }, { hidden, layers, dropout }, { training }) =>
    gruStack(p, x, { hidden, layers, dropout: training ? dropout : 0 }).last[layers - 1], // [B, H]
};
