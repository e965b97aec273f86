import type { Random } from '../../random.js';
import type { StrategyConfig } from '../config.js';
import type { Problem } from '../problem.js';
import type { Strategy } from '../strategy.js';
import { Aligned } from './aligned.js';
import { annealing } from './annealing.js';
import { Bandit } from './bandit.js';
import { BestFixed } from './best-fixed.js';
import { curriculum } from './curriculum.js';
import { fixed } from './fixed.js';
import { Influence } from './influence.js';
import { Learned, type LearnedOptions, PAPER, STABLE } from './learned.js';
import { mtl } from './mtl.js';
import { oracle } from './oracle.js';
import { selfPaced } from './self-paced.js';
import { staticMix } from './static.js';
import { Validated } from './validated.js';
import { window } from './window.js';

/**
 * The strategy of a configuration. Its random numbers come from a stream of `random`; a scheduler's network is
 * updated with so many threads.
 */
export async function createStrategy<Batch>(
  config: StrategyConfig,
  problem: Problem<Batch>,
  random: Random,
  threads = 1,
): Promise<Strategy<Batch>> {
  switch (config.name) {
    case 'learned':
      return Learned.create(problem, random, learnedOptions(config), threads);
    case 'fixed':
      return fixed(problem, random, config);
    case 'best-fixed':
      return new BestFixed(problem, config);
    case 'mtl':
      return mtl(problem, random);
    case 'oracle':
      return oracle(problem, random);
    case 'curriculum':
      return curriculum(problem, random, config);
    case 'annealing':
      return annealing(problem, random, config);
    case 'window':
      return window(problem, random, config);
    case 'self-paced':
      return selfPaced(problem, config);
    case 'greedy':
    case 'soft':
      return Validated.create(config.name, problem, random, config, threads);
    case 'aligned':
      return new Aligned(problem, random, config);
    case 'static':
      return staticMix(problem, random, config);
    case 'influence': {
      const { name: _, ...options } = config;
      return Influence.create(problem, random, options, threads);
    }
    case 'bandit': {
      const { reward: signal, skipFirst, baseline, normalise } = config;
      return new Bandit(problem, random, { ...config, reward: { signal, skipFirst, baseline, normalise } });
    }
  }
}

/** The preset with the keys that are given laid over it. */
export function learnedOptions(config: Extract<StrategyConfig, { name: 'learned' }>): LearnedOptions {
  const { name: _, preset, optimizer, momentum, reward: signal, skipFirst, baseline, normalise, ...given } = config;
  const defaults = preset === 'paper' ? PAPER : STABLE;
  const name = optimizer ?? defaults.optimizer.name;
  return {
    ...defaults,
    ...defined(given),
    optimizer: name === 'sgd' ? { name, momentum } : { name: 'adam' },
    reward: { ...defaults.reward, ...defined({ signal, skipFirst, baseline, normalise }) },
  };
}

/** Without the keys whose value is undefined. */
function defined<T extends object>(values: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> };
}
