/**
 * How often a probe finds what is there and what is not: the figures of docs/probe.md.
 *
 *     npm run build && node docs/figures/probe-power.mjs
 */
import { Random } from '../../dist/index.js';
import { knownAnswer, LinearProblem, planProbe, probeEffects, probeSeed, recommend } from '../../dist/schedule/index.js';

async function probe(make, budget, seed) {
  const plan = planProbe(make(new Random(seed)), { budget, seed });
  const branches = [];
  for (const own of plan.seeds) {
    const random = new Random(own);
    const steps = probeSeed(make(random.fork('problem')), plan, own, random.fork('probe'));
    for await (const { branch } of steps) if (branch !== undefined) branches.push(branch);
  }
  const effects = probeEffects(branches, plan);
  return { effects, strategy: recommend(effects, plan).strategy.name };
}

console.log('known-answer, a training of 1600 updates: strategies that 30 probes advised');
for (const budget of [160, 320, 480, 800]) {
  const advised = {};
  for (let i = 0; i < 30; i++) {
    const { strategy } = await probe(knownAnswer, budget, 1 + 100 * i);
    advised[strategy] = (advised[strategy] ?? 0) + 1;
  }
  console.log(`${budget} updates:`, JSON.stringify(advised));
}

console.log('five tasks with the same labels but for noise: probes of 200 in which some p was below .05');
for (const [noise, budget] of [[2, 800], [2, 160], [4, 1600], [0.5, 400]]) {
  const teachers = ['main', 'b', 'c', 'd', 'e'].map((name) => ({ name, slopes: [[1.5, 0, 0, 0]], noise }));
  const make = (random) => new LinearProblem({ random, main: 'main', teachers });
  let alarms = 0;
  for (let i = 0; i < 200; i++) {
    const { effects } = await probe(make, budget, 1 + 50 * i);
    if (effects.some(({ p }) => p < 0.05)) alarms++;
  }
  console.log(`noise ${noise}, ${budget} updates: ${alarms}`);
}
