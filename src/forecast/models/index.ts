import { z } from 'zod';
import type { Parameters, Tensor } from '../../tensor/index.js';
import { alstm, alstmSchema } from './alstm.js';
import type { Architecture, TrunkInputs, TrunkMode } from './architecture.js';
import { gat, gatSchema } from './gat.js';
import { gru, gruSchema } from './gru.js';
import { linear, linearSchema } from './linear.js';
import { lstm, lstmSchema } from './lstm.js';
import { mlp, mlpSchema } from './mlp.js';
import { sfm, sfmSchema } from './sfm.js';
import { treesSchema } from './trees.js';

export type { Architecture, TrunkInputs, TrunkMode } from './architecture.js';

/** The `model` of a configuration. */
export const modelSchema = z
  .discriminatedUnion('name', [
    gruSchema,
    lstmSchema,
    alstmSchema,
    sfmSchema,
    mlpSchema,
    gatSchema,
    linearSchema,
    treesSchema,
  ])
  .prefault({ name: 'gru' })
  .describe('What makes the forecasts.');

export type ModelConfig = z.output<typeof modelSchema>;
export type TreesConfig = Extract<ModelConfig, { name: 'trees' }>;
/** A model that is trained by gradients. */
export type NetworkConfig = Exclude<ModelConfig, TreesConfig>;

/** The architecture of a configuration with its options filled in. */
export interface ChosenArchitecture extends Pick<Architecture, 'layout' | 'seesDays' | 'wholeBatch'> {
  trunk(p: Parameters, inputs: TrunkInputs, mode: TrunkMode): Tensor;
}

export function architectureOf(config: NetworkConfig): ChosenArchitecture {
  const { layout, seesDays, wholeBatch, trunk } = ARCHITECTURES[config.name] as Architecture<NetworkConfig>;
  return { layout, seesDays, wholeBatch, trunk: (p, inputs, mode) => trunk(p, inputs, config, mode) };
}

const ARCHITECTURES: Record<NetworkConfig['name'], unknown> = { gru, lstm, alstm, sfm, mlp, gat, linear };
