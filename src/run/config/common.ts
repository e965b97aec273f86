import { basename, extname, join } from 'node:path';
import { z } from 'zod';

/** A part of a configuration: a strict map that, when left out, is read as if it were there and empty. */
export function section<Shape extends z.ZodRawShape>(shape: Shape) {
  const map = z.strictObject(shape);
  return map.prefault({} as z.input<typeof map> & Record<string, unknown>);
}

/**
 * The keys that every run has. An application spreads them into its own schema:
 * `z.strictObject({ ...commonKeys, data: section({ … }) })`.
 */
export const commonKeys = {
  seed: z.int().min(0).max(0xffffffff).default(1).describe('Seed of every random number of the run.'),
  out: z.string().min(1).default('runs').describe('Folder in which the run folder is made.'),
  name: z
    .string()
    .regex(/^\w[\w.=,+-]*$/)
    .optional()
    .describe('Name of the run folder. When left out, the name of the configuration file.'),
  threads: z
    .int()
    .min(1)
    .max(1024)
    .default(2)
    .describe(
      'Cores that a process keeps busy. Another number may change the results, as another number of workers does.',
    ),
  workers: z
    .union([z.literal('auto'), z.int().min(1).max(1024)])
    .default('auto')
    .describe(
      'Threads that share each batch, each with a copy of the model and dropout masks of its own: another number ' +
        'changes the last bits of the results, and with dropout all of them. auto: as many as threads, which is faster ' +
        'than several threads in each operation. 1: one model, which needs less memory.',
    ),
  saving: section({
    everySteps: z
      .int()
      .min(1)
      .nullable()
      .default(null)
      .describe('Save a checkpoint after this many steps; null: by time only.'),
    everySeconds: z
      .number()
      .positive()
      .nullable()
      .default(300)
      .describe('Save a checkpoint after this many seconds; null: by steps only. It never changes the results.'),
    keep: z.int().min(2).max(1000).default(2).describe('Checkpoints kept, besides the best one.'),
  }).describe('When the state of the run is saved, so that it can be resumed. It is always saved at the end.'),
  earlyStopping: section({
    patience: z
      .int()
      .min(1)
      .nullable()
      .default(null)
      .describe('Validations without improvement after which the run ends; null: never.'),
    minDelta: z.number().min(0).default(0).describe('Smallest change that counts as an improvement.'),
  }).describe('Ending a run that no longer improves on the main task.'),
  logging: section({
    everySteps: z.int().min(1).default(100).describe('Steps between two lines of training figures in metrics.jsonl.'),
    tensorboard: z.boolean().default(true).describe('Write TensorBoard event files besides metrics.jsonl.'),
    progressSeconds: z
      .number()
      .positive()
      .default(10)
      .describe('Seconds between lines of progress where the output is not a terminal.'),
  }).describe('What is recorded and shown while the run goes on.'),
};

/** Keys that do not change results and may therefore differ when a run is resumed. */
export const freeOnResume: readonly string[] = [
  'out',
  'name',
  'saving',
  'logging.tensorboard',
  'logging.progressSeconds',
];

/** How a configuration divides the work of a process. */
export interface Division {
  readonly threads: number;
  readonly workers: number | 'auto';
}

/** The number of workers; it never depends on the machine, or else the results would. */
export function workersOf({ threads, workers }: Division): number {
  return workers === 'auto' ? threads : workers;
}

/** Cores that a run keeps busy. */
export function coresOf({ threads, workers }: Division): number {
  return workers === 'auto' ? threads : threads * workers;
}

/** The run folder that a configuration read from `file` asks for. */
export function runPath(config: { out: string; name?: string }, file: string): string {
  return join(config.out, config.name ?? basename(file, extname(file)));
}
