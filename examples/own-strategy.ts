/**
 * A strategy of one's own: a task is as likely as its share of the progress that it brought, by keeping a score for each
 * task that follows the reward of the episodes in which it was chosen often. Compared with the built-in ones on the
 * problem whose answer is known. `node examples/dist/own-strategy.js`: some seconds.
 */
import { Random, type RandomState } from 'tcts';
import { mean } from 'tcts/metrics';
import {
  createStrategy,
  knownAnswer,
  type Problem,
  type Strategy,
  stateOnly,
  strategySchema,
  train,
  trainee,
  transientSession,
} from 'tcts/schedule';

function credit<Batch>(problem: Problem<Batch>, random: Random, rate = 0.5): Strategy<Batch> {
  const K = problem.tasks.length;
  let scores = new Array<number>(K).fill(0);
  let counts = new Array<number>(K).fill(0);
  let scale = 0; // a moving mean of the size of rewards
  const shares = () => {
    const powers = scores.map(Math.exp);
    const sum = powers.reduce((a, b) => a + b);
    return powers.map((power) => 0.05 / K + (0.95 * power) / sum);
  };
  return {
    name: 'credit',
    probabilities: async (batch) => Float32Array.from({ length: problem.sizeOf(batch) * K }, (_, i) => shares()[i % K]),
    async choose(batch) {
      const now = shares();
      const weights = new Float32Array(problem.sizeOf(batch)).fill(1);
      const tasks = Int32Array.from(weights, () => random.categorical(now));
      for (const task of tasks) counts[task]++;
      return { kind: 'sampled', tasks, weights, entropy: -now.reduce((sum, p) => sum + p * Math.log(p), 0) };
    },
    /** R_e − R_{e−1}, for each task by how much more often than expected it was chosen. */
    async endEpisode(performance, status) {
      const reward = performance - status.performance;
      scale = scale === 0 ? Math.abs(reward) : 0.9 * scale + 0.1 * Math.abs(reward);
      const [now, all] = [shares(), counts.reduce((a, b) => a + b)];
      scores = scores.map((score, k) => score + (rate * reward * (counts[k] / all - now[k])) / (now[k] * (scale || 1)));
      counts = counts.map(() => 0);
      return {};
    },
    // All that a resumed run needs to continue with the same bits.
    capture: () => stateOnly({ scores, counts, scale, random: random.state() }),
    restore({ state }) {
      const saved = state as { scores: number[]; counts: number[]; scale: number; random: RandomState };
      ({ scores, counts, scale } = saved);
      random = Random.restore(saved.random);
    },
  };
}

for (const name of ['fixed', 'mtl', 'learned', 'credit'] as const) {
  const losses: number[] = [];
  for (const seed of [1, 2, 3]) {
    const random = new Random(seed);
    const problem = knownAnswer(random.fork('problem'));
    const own = random.fork('strategy');
    const strategy =
      name === 'credit' ? credit(problem, own) : await createStrategy(strategySchema.parse({ name }), problem, own);
    const subject = trainee(problem, strategy);
    const session = transientSession(subject, { mode: 'max' });
    await train(subject, session, { episodes: 800, steps: 2 }); // Algorithm 1
    if (session.bestSnapshot !== undefined) subject.restore(session.bestSnapshot);
    losses.push((await problem.test()).loss);
    await strategy.close?.();
  }
  console.log(`${name.padEnd(8)} test loss ${mean(losses).toFixed(4)}`);
}
