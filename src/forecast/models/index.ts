import { z } from 'zod';
import { InputError } from '../../errors.js';
import { alstmModel } from './alstm.js';
import { gatModel } from './gat.js';
import { gruModel } from './gru.js';
import { linearModel } from './linear.js';
import { lstmModel } from './lstm.js';
import { mlpModel } from './mlp.js';
import type { ForecastModel, ModelSchema } from './model.js';
import { sfmModel } from './sfm.js';
import { treesModel } from './trees.js';

/**
 * Every forecasting model, in the order shown to users. Add your own at its end, before the first
 * configuration is read.
 */
export const models: ForecastModel[] = [
  gruModel,
  lstmModel,
  alstmModel,
  sfmModel,
  mlpModel,
  gatModel,
  linearModel,
  treesModel,
];

/** The `model` of a configuration: its name, and the keys that its schema knows. */
export interface ModelConfig {
  readonly name: string;
  readonly [key: string]: unknown;
}

export function forecastModelSchema(): z.ZodType<ModelConfig> {
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
