import { z } from 'zod';
import { InputError } from '../../errors.js';
import type { Random } from '../../random.js';
import type { Problem } from '../problem.js';
import { type Strategy, type StrategyDescription, strategyKeys } from '../strategy.js';
import { aligned } from './aligned.js';
import { annealing } from './annealing.js';
import { bandit } from './bandit.js';
import { bestFixed } from './best-fixed.js';
import { curriculum } from './curriculum.js';
import { fixed } from './fixed.js';
import { influence } from './influence.js';
import { learned } from './learned.js';
import { mtl } from './mtl.js';
import { oracle } from './oracle.js';
import { greedy, soft } from './qlib.js';
import { selfPaced } from './self-paced.js';
import { staticMix } from './static.js';
import { window } from './window.js';

/** Every strategy, in the order of the paper's tables and then alphabetically. */
const all: StrategyDescription[] = [
  learned,
  fixed,
  bestFixed,
  selfPaced,
  curriculum,
  mtl,
  annealing,
  window,
  aligned,
  bandit,
  greedy,
  influence,
  oracle,
  soft,
  staticMix,
];

/** All strategies that a configuration may name, registered ones included. */
export const strategies: readonly StrategyDescription[] = all;

/** Adds a strategy, so that configurations, reports and sweeps treat it like a built-in one. */
export function registerStrategy(description: StrategyDescription): void {
  const { name, options } = description;
  if (strategyNamed(name) !== undefined) throw new InputError(`there is already a strategy ${name}`, { key: 'name' });
  if ('name' in options.shape) throw new InputError(`${name} has an option "name", expected another word`);
  all.push(description);
}

/** The description of a strategy; undefined if there is none of this name. */
export function strategyNamed(name: string): StrategyDescription | undefined {
  return all.find((strategy) => strategy.name === name);
}

/** The `strategy` of a configuration, all options filled in. */
export type StrategyConfig = { readonly name: string } & Readonly<Record<string, unknown>>;

/** The schema of `strategy` in a configuration: one member for each strategy. */
export const strategySchema: z.ZodType<StrategyConfig> = z
  .lazy(memberSchemas)
  .describe('How the task of each sample is chosen; docs/strategies.md has the formulas.');

// zod caches what a lazy schema first resolved to; strategies can be registered later.
Object.defineProperty(strategySchema._zod, 'innerType', { get: memberSchemas });

let members: z.ZodType<StrategyConfig> | undefined;
let counted = 0;

function memberSchemas(): z.ZodType<StrategyConfig> {
  if (members === undefined || counted !== all.length) {
    const [first, ...others] = all.map(strategyKeys);
    members = z.discriminatedUnion('name', [first, ...others]);
    counted = all.length;
  }
  return members;
}

/**
 * The strategy of a configuration. Its random numbers come from a stream of `random`; a scheduler's network is updated
 * with `threads` threads.
 */
export async function createStrategy<Batch>(
  { name, ...options }: StrategyConfig,
  problem: Problem<Batch>,
  random: Random,
  threads = 1,
): Promise<Strategy<Batch>> {
  const description = strategyNamed(name);
  if (description === undefined) throw new InputError(`there is no strategy ${name}`, { key: 'strategy.name' });
  return description.create(options, problem, { random, threads });
}
