import { z } from 'zod';
import { InputError } from '../../errors.js';
import { alstm } from './alstm.js';
import { gat } from './gat.js';
import { gru } from './gru.js';
import { linear } from './linear.js';
import { lstm } from './lstm.js';
import { mlp } from './mlp.js';
import type { ForecastModel, ModelSchema } from './model.js';
import { sfm } from './sfm.js';
import { trees } from './trees.js';

/**
 * Every forecasting model, in the order in which people see them. One of one's own is added at its end, before the first
 * configuration is read.
 */
export const models: ForecastModel[] = [gru, lstm, alstm, sfm, mlp, gat, linear, trees];

/** The `model` of a configuration: its name, and the keys that its schema knows. */
export interface ModelConfig {
  readonly name: string;
  readonly [key: string]: unknown;
}

export function modelSchema(): z.ZodType<ModelConfig> {
  const schemas = models.map(({ schema }) => schema) as [ModelSchema, ...ModelSchema[]];
  return z
    .discriminatedUnion('name', schemas)
    .prefault({ name: schemas[0].shape.name.value })
    .describe('The forecasting model.');
}

export function modelNamed(name: string): ForecastModel {
  const model = models.find(({ schema }) => schema.shape.name.value === name);
  if (model !== undefined) return model;
  const known = models.map(({ schema }) => schema.shape.name.value).join(', ');
  throw new InputError(`expected one of ${known}, found ${JSON.stringify(name)}`, { key: 'problem.model.name' });
}
