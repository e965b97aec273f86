import { expect, test } from 'vitest';
import { algorithm1, Course, type Problem, type Status, type Strategy } from '../../src/schedule/index.js';

const nothing = { capture: () => ({ tensors: new Map(), state: null }), restore: () => {} };

/** A problem and a strategy that write down what is asked of them. */
function recorded(performances: number[]) {
  const calls: string[] = [];
  let batch = 0;
  const problem: Problem<string> = {
    ...nothing,
    tasks: [1, 2].map((number) => ({ name: `T${number}`, number })),
    main: 0,
    features: [],
    nextBatch: () => `batch ${++batch}`,
    sizeOf: () => 3,
    writeFeatures: () => {},
    train: async (on, { tasks, weights }) => {
      calls.push(`train ${on} on ${tasks} with ${weights}`);
      return batch;
    },
    validate: async () => {
      calls.push('validate');
      return performances.shift()!;
    },
  };
  const strategy: Strategy<string> = {
    ...nothing,
    name: 'recorded',
    probabilities: async () => new Float32Array(6),
    beginEpisode: async ({ update }) => void calls.push(`begin before ${update}`),
    choose: async (on, { update, updates, performance, meanPerformance }: Status) => {
      calls.push(`choose for ${on} at ${update}/${updates}, ${performance}, ${meanPerformance}`);
      return { kind: 'sampled', tasks: Int32Array.of(0, 1, 1), weights: Float32Array.of(1, 1, 2), entropy: 0.5 };
    },
    endEpisode: async (performance, { update, performance: previous }) => {
      calls.push(`end at ${update} with ${performance} after ${previous}`);
      return { gradNorm: 7 };
    },
  };
  return { calls, problem, strategy };
}

test('the lines of the listing come in its order', async () => {
  const { calls, problem, strategy } = recorded([-8, -6, -7]);
  const updates = [];
  for await (const update of algorithm1(problem, strategy, { episodes: 2, steps: 2 }, new Course(2)))
    updates.push(update);
  expect(calls).toEqual([
    'validate',
    'begin before 1',
    'choose for batch 1 at 1/4, -8, -8',
    'train batch 1 on 0,1,1 with 1,1,2',
    'choose for batch 2 at 2/4, -8, -8',
    'train batch 2 on 0,1,1 with 1,1,2',
    'validate',
    'end at 2 with -6 after -8',
    'begin before 3',
    'choose for batch 3 at 3/4, -6, -7',
    'train batch 3 on 0,1,1 with 1,1,2',
    'choose for batch 4 at 4/4, -6, -7',
    'train batch 4 on 0,1,1 with 1,1,2',
    'validate',
    'end at 4 with -7 after -6',
  ]);
  const same = { distribution: [0.25, 0.75], entropy: 0.5, gradNorm: 7 };
  expect(updates).toEqual([
    { update: 1, loss: 1 },
    { update: 2, loss: 2, episode: { episode: 1, performance: -6, reward: 2, loss: 1.5, ...same } },
    { update: 3, loss: 3 },
    { update: 4, loss: 4, episode: { episode: 2, performance: -7, reward: -1, loss: 3.5, ...same } },
  ]);
});

test('the shares of a blend are those of its weights', async () => {
  const { problem, strategy } = recorded([0, 1]);
  problem.trainBlend = async (_, weights) => weights[0];
  strategy.choose = async () => ({ kind: 'blended', weights: Float32Array.of(1, 0, 0.5, 0.5, 0, 1), entropy: 0 });
  for await (const { episode, loss } of algorithm1(problem, strategy, { episodes: 1, steps: 1 }, new Course(2))) {
    expect(loss).toBe(1);
    expect(episode?.distribution).toEqual([0.5, 0.5]);
  }
});

test('a training that diverges ends with a sentence', async () => {
  const { problem, strategy } = recorded([-1, Number.NaN]);
  const all = async () => {
    for await (const _ of algorithm1(problem, strategy, { episodes: 3, steps: 4 }, new Course(2)));
  };
  await expect(all()).rejects.toThrow('the validation performance after update 4 is NaN: training has diverged');
});
