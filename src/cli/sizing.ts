import type { z } from 'zod';
import { InputError } from '../errors.js';
import { kindOf, type TrainConfig, trainConfigSchema, withModules } from '../problems/index.js';
import { isRecord } from '../run/config/key-schema.js';
import { formatDuration, isRun, loadConfig, loadValues, openRun, parseDuration } from '../run/index.js';

/**
 * A configuration from a file or from values. Where it gives a budget or `model: auto`, sizes that are left out are
 * `auto`, too.
 */
export async function loadTrainConfig(
  from: string | z.input<typeof trainConfigSchema>,
  set: readonly string[],
): Promise<TrainConfig> {
  const load = (under: readonly string[]) =>
    typeof from === 'string'
      ? loadConfig(trainConfigSchema, from, { set, under })
      : loadValues(trainConfigSchema, from, set, under);
  const config = await withModules(() => load([]));
  const { keys = [] } = kindOf(config.problem)?.sizing ?? {};
  if (keys.length === 0 || !(config.training.budget !== undefined || isAuto(config))) return config;
  return load([`problem.kind=${config.problem.kind}`, ...keys.map((key) => `problem.${key}=auto`)]);
}

export interface SizesOptions {
  /** Takes lines for the user. */
  readonly say: (line: string) => void;
  /** Seconds of the budget that have been used up. Default 0. */
  readonly used?: () => number;
}

/** The configuration with a number wherever it says `auto`, and with as many updates as its budget allows. */
export async function resolveSizes(config: TrainConfig, { say, used = () => 0 }: SizesOptions): Promise<TrainConfig> {
  const { budget: text } = config.training;
  const auto = isAuto(config);
  if (text === undefined && !auto) return config;
  const sizing = await kindOf(config.problem)?.sizing?.load();
  const budget = text === undefined ? undefined : secondsOf(text);
  const { timedTrial, updateSeconds } = await import('./probe-run.js');
  const trial = (problem: object): TrainConfig => ({
    ...config,
    problem: (sizing?.complete(problem, 5) ?? problem) as TrainConfig['problem'],
  });
  const choice = auto
    ? await sizing?.choose(config.problem, {
        budget: budget === undefined ? undefined : budget - used(),
        secondsOf: (problem) => updateSeconds(trial(problem)),
      })
    : undefined;
  for (const line of choice?.lines ?? []) say(line);
  const problem = choice?.problem ?? config.problem;
  let { training } = config;
  if (budget !== undefined) {
    const speed = await timedTrial(trial(problem));
    const most = choice?.mostUpdates ?? Number.POSITIVE_INFINITY;
    const extent = chooseExtent({ ...speed, budget: budget - used(), most });
    training = { ...training, episodes: extent.episodes, steps: extent.steps };
    const updates = extent.episodes * extent.steps;
    const epochs = choice === undefined ? '' : `, ${(updates / choice.updatesPerEpoch).toPrecision(2)} epochs`;
    const each = `${Number((speed.update + speed.strategy).toPrecision(2))} s each`;
    const rest = updates > most - extent.episodes ? '; more would not help, so part of the budget is left' : '';
    say(
      `training: ${extent.episodes} × ${extent.steps} updates${epochs}, ${each}: about ${formatDuration(extent.seconds)} of ${text}${rest}`,
    );
    if (extent.seconds > budget - used()) say(`this is the shortest training; ${text} is not enough for it`);
  }
  const updates = training.episodes * training.steps;
  const sized = (sizing?.complete(problem, updates) ?? problem) as TrainConfig['problem'];
  if ('learning' in sized && sized.learning !== undefined && typeof sized.learning.warmup === 'number') {
    const { warmup } = sized.learning;
    if (auto) say(`warm-up: ${warmup} updates`);
    if (warmup > updates / 2) say(`a warm-up of ${warmup} is long for ${updates} updates: problem.learning.warmup`);
  }
  return { ...config, problem: sized, training };
}

/** Rejects a configuration with sizes to be chosen: they would depend on the machine's current speed. */
export function requireFixedSizes(config: TrainConfig, verb: string): void {
  const { budget } = config.training;
  if (budget === undefined && !isAuto(config)) return;
  const [key, found] = budget === undefined ? ['problem.model.preset', 'auto'] : ['training.budget', budget];
  const sentence = `found ${JSON.stringify(found)}, but ${verb} needs sizes that do not change: tcts init writes them`;
  throw new InputError(sentence, { key });
}

/** On resume, the sizes are those the run was started with; other differences are checked elsewhere. */
export function sizesOf(folder: string, config: TrainConfig): TrainConfig {
  if (!isRun(folder)) return config;
  const { problem, training } = config;
  const saved = openRun(folder).config as unknown as TrainConfig;
  const { episodes, steps } = saved.training;
  return {
    ...config,
    problem: isAuto(config) ? (filled(problem, saved.problem) as TrainConfig['problem']) : problem,
    training: training.budget === undefined ? training : { ...training, episodes, steps },
  };
}

/** The saved values for `auto`; with an automatic preset also for omitted keys. */
function filled(value: unknown, saved: unknown): unknown {
  if (value === 'auto') return saved;
  if (!isRecord(value) || !isRecord(saved)) return value;
  const keys = value.preset === 'auto' ? { ...saved, ...given(value) } : value;
  return Object.fromEntries(Object.entries(keys).map(([key, inner]) => [key, filled(inner, saved[key])]));
}

function given(keys: object): object {
  return Object.fromEntries(Object.entries(keys).filter(([, value]) => value !== undefined));
}

export interface Speeds {
  /** Seconds of an update, of what the strategy adds to it, of a validation, and of making the problem. */
  readonly update: number;
  readonly strategy: number;
  readonly validation: number;
  readonly create: number;
  /** Models that the strategy trains one after the other. */
  readonly passes: number;
}

/**
 * As many updates as the time allows: 40 episodes, as a scheduler needs some tens of rewards, or fewer where validation
 * would take more than a tenth of the time, but 4 at least. Three validations are before and after the training.
 */
export function chooseExtent({
  update,
  strategy,
  validation,
  create,
  passes,
  budget,
  most,
}: Speeds & { readonly budget: number; readonly most: number }): { episodes: number; steps: number; seconds: number } {
  const each = (budget - create - 3 * validation) / passes;
  const episodes = Math.min(40, Math.max(4, Math.floor(each / 10 / validation)));
  const possible = Math.floor((each / episodes - validation) / (update + strategy));
  const steps = Math.max(1, Math.min(possible, Math.ceil(most / episodes)));
  const seconds = create + 3 * validation + passes * episodes * (steps * (update + strategy) + validation);
  return { episodes, steps, seconds };
}

function secondsOf(budget: string): number {
  const seconds = parseDuration(budget);
  if (seconds !== undefined) return seconds;
  throw new InputError(`expected a length of time such as 90s, 30m or 1h30m, found ${JSON.stringify(budget)}`, {
    key: 'training.budget',
  });
}

function isAuto({ problem }: TrainConfig): boolean {
  const at = (key: string) =>
    key.split('.').reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], problem);
  return kindOf(problem)?.sizing?.keys.some((key) => at(key) === 'auto') ?? false;
}
