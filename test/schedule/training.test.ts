import { expect, test } from 'vitest';
import { Random } from '../../src/random.js';
import type { Problem } from '../../src/schedule/index.js';
import { Learned, STABLE, train, transientSession } from '../../src/schedule/index.js';
import { start, strategyConfig } from './trainings.js';

test('a training without a folder records its episodes and keeps the best model', async () => {
  const subject = await start(strategyConfig({ name: 'mtl' }), 1);
  const session = transientSession(subject, { mode: 'max' });
  await train(subject, session, { episodes: 8, steps: 10, logEvery: 25 });

  const episodes = session.records.filter(({ episode }) => episode !== undefined);
  expect(episodes.map(({ step }) => step)).toEqual([10, 20, 30, 40, 50, 60, 70, 80]);
  expect(session.records.filter(({ episode }) => episode === undefined).map(({ step }) => step)).toEqual([
    1, 2, 5, 10, 20, 25, 50, 75,
  ]);
  const best = Math.max(...episodes.map(({ performance }) => performance as number));
  expect(session.bestSoFar?.score).toBe(best);
  subject.restore(session.bestSnapshot!);
  expect(await subject.problem.validate()).toBe(best);
});

test('a training ends when it no longer improves', async () => {
  const subject = await start(strategyConfig({ name: 'fixed' }), 2);
  const session = transientSession(subject, { mode: 'max', patience: 4 });
  await train(subject, session, { episodes: 10_000, steps: 10 });
  expect(session.step).toBe(session.bestSoFar!.step + 4 * 10);
});

// 10 validations, at updates 10, 20 …, of which only the first is an improvement. Patience 1 ends the training at the
// second that counts: those after the last change of the plan do. A curriculum over 5 tasks enters its last stage after
// 4 ∕ 5 of the updates, annealing and self-paced learning change until the end.
test.each([
  [{ name: 'fixed' }, 20],
  [{ name: 'mtl' }, 20],
  [{ name: 'static' }, 20],
  [{ name: 'static', until: 0.45 }, 50],
  [{ name: 'curriculum', easiest: 'last', until: 'hardest' }, 90],
  [{ name: 'annealing' }, 100],
  [{ name: 'self-paced' }, 100],
  [{ name: 'self-paced', from: 20, to: 20 }, 20],
])('a plan in time is not cut short by early stopping: %j ends after %i updates', async (given, updates) => {
  const subject = await start(strategyConfig(given), 2);
  let performance = 0;
  subject.problem.validate = async () => performance--;
  const session = transientSession(subject, { mode: 'max', patience: 1 });
  await train(subject, session, { episodes: 10, steps: 10 });
  expect(session.step).toBe(updates);
  expect(session.bestSoFar).toEqual({ step: 10, score: -1 });
});

test('an episode of a million decisions can be learned from', { timeout: 60_000 }, async () => {
  const given = new Float32Array(8000 * 7);
  new Random(1).fillNormal(given, 0, 1);
  const problem = {
    tasks: Array.from({ length: 13 }, (_, i) => ({ name: `wait-${i + 1}`, number: i + 1 })),
    main: 2,
    features: [{ name: 'all', width: 7 }],
    sizeOf: () => 8000,
    writeFeatures: (_batch: unknown, _status: unknown, _groups: unknown, out: Float32Array) => out.set(given),
  } as unknown as Problem;
  const strategy = await Learned.create(problem, new Random(2), {
    ...STABLE,
    hidden: [16],
    skipFirst: false,
    baseline: null,
  });
  const status = { update: 1, updates: 125, performance: 0, meanPerformance: 0 };
  for (let s = 0; s < 125; s++) await strategy.choose(null, status);
  const { gradNorm } = await strategy.endEpisode(1, status);
  expect(gradNorm).toBeGreaterThan(0);
  await strategy.close();
});
