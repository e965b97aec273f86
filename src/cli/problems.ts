import { z } from 'zod';
import { forecastSchema } from '../forecast/config.js';
import { commonKeys } from '../run/index.js';
import {
  contextual,
  knownAnswer,
  type Problem,
  type ProblemContext,
  strategySchema,
  trainingSchema,
} from '../schedule/index.js';
import { seriesSchema } from '../series/config.js';
import { translationSchema } from '../translate/config.js';
import { monotonicSchema } from '../translate/monotonic/config.js';

/** An application, as configurations know it: `problem.kind` names it, the other keys of `problem` are its own. */
export interface ProblemKind<S extends ProblemSchema = ProblemSchema> {
  readonly schema: S;
  create(config: z.output<S>, context: ProblemContext): Promise<Problem>;
}

type ProblemSchema = z.ZodObject<{ kind: z.ZodLiteral<string> }, z.core.$strict>;

/** All applications. What only `create` needs of one is best imported there, so that reading a configuration is quick. */
const KINDS = [
  problemKind(
    z.strictObject({
      kind: z.literal('known-answer').describe('Made-up regression in which one auxiliary task is known to help.'),
    }),
    async (_, { random }) => knownAnswer(random),
  ),
  problemKind(
    z.strictObject({
      kind: z.literal('contextual').describe('Made-up regression in which the helpful task depends on the sample.'),
    }),
    async (_, { random }) => contextual(random),
  ),
  problemKind(translationSchema, async (config, context) => {
    const { TranslationProblem } = await import('../translate/problem.js');
    return TranslationProblem.create(config, context);
  }),
  problemKind(monotonicSchema, async (config, context) => {
    const { MonotonicProblem } = await import('../translate/monotonic/problem.js');
    return MonotonicProblem.create(config, context);
  }),
  problemKind(forecastSchema, async (config, context) => {
    const { createForecast } = await import('../forecast/create.js');
    return createForecast(config, context);
  }),
  problemKind(seriesSchema, async (config, context) => {
    const { SeriesProblem } = await import('../series/problem.js');
    return SeriesProblem.create(config, context);
  }),
] as const;

type SchemasOf<T extends readonly { readonly schema: ProblemSchema }[]> = { readonly [I in keyof T]: T[I]['schema'] };

/** The configuration of a training run. */
export const trainConfigSchema = z.strictObject({
  ...commonKeys,
  problem: z
    .discriminatedUnion('kind', KINDS.map(({ schema }) => schema) as unknown as SchemasOf<typeof KINDS>)
    .describe('What is learned, from which data.'),
  strategy: strategySchema,
  training: trainingSchema,
});

export type TrainConfig = z.output<typeof trainConfigSchema>;

export function createProblem(config: TrainConfig['problem'], context: ProblemContext): Promise<Problem> {
  const kind = KINDS.find(({ schema }) => schema.shape.kind.value === config.kind)!;
  return (kind as ProblemKind).create(config, context);
}

function problemKind<S extends ProblemSchema>(schema: S, create: ProblemKind<S>['create']): ProblemKind<S> {
  return { schema, create };
}
