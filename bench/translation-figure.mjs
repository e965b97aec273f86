// BLEU against latency of every policy, from the lines of docs/results/translation.csv.
import { mean } from '../dist/metrics/index.js';
import { legendOf, linesPanel } from '../dist/report/figures/curves.js';
import { draw } from '../dist/report/figures/figure.js';
import { readLines } from './translation-lines.mjs';

/** Curves by the runs and policies on them. The first is in both figures, to compare with. */
const WAIT_K = { label: 'wait-k, MTL', run: /^all-waits,/, policy: /^wait-k/ };
const FIGURES = {
  'policies-untrained': {
    title: 'Policies without training of their own',
    curves: [
      WAIT_K,
      { label: 'wait-k, a model each', run: /^wait,main=(\d+),/, policy: /^wait-k:(\d+)/, own: true },
      { label: 'adaptive, MTL', run: /^all-waits,/, policy: /^adaptive/ },
      { label: 'AlignAtt, MTL', run: /^all-waits,/, policy: /^alignatt/ },
      { label: 'EDAtt, MTL', run: /^all-waits,/, policy: /^edatt/ },
      { label: 'AlignAtt, whole sentences', run: /^sentences,/, policy: /^alignatt/ },
      { label: 'wait-if-worse, whole sentences', run: /^sentences,/, policy: /^wait-if-worse/ },
    ],
  },
  'policies-trained': {
    title: 'Trained policies, from MTL',
    curves: [
      WAIT_K,
      { label: 'wait-k, MTL trained further', run: /^all-waits-further,/, policy: /^wait-k/ },
      { label: 'MILk', run: /^monotonic,attention=milk,/, policy: /./ },
      { label: 'MMA-IL', run: /^monotonic,attention=mma-il,/, policy: /./ },
      { label: 'MMA-H', run: /^monotonic,attention=mma-h,/, policy: /./ },
      { label: 'ITST', run: /^itst,/, policy: /./ },
      { label: 'HMT', run: /^hmt,/, policy: /./ },
    ],
  },
};

/** Means over the seeds of sacreBLEU and of LAAL in words: SVG documents by name. */
export function policyFigures(file) {
  const lines = readLines(file);
  return Object.entries(FIGURES).map(([name, { title, curves }]) => {
    const drawn = curves
      .map((curve, style) => ({ label: curve.label, style, points: pointsOf(lines, curve) }))
      .filter(({ points }) => points.length > 0);
    const size = { width: 620, height: 380, x: 'LAAL, words', y: 'sacreBLEU', symbols: 'all' };
    return [name, draw(title, [[linesPanel(drawn, { title, ...size })]], { legend: legendOf(drawn) })];
  });
}

/** One point for each setting, by latency. */
function pointsOf(lines, { run, policy, own = false }) {
  const settings = new Map();
  for (const line of lines) {
    const [model, setting] = [run.exec(line.run), policy.exec(line.policy)];
    if (model === null || setting === null || (own && model[1] !== setting[1])) continue;
    const key = `${line.run.replace(/,seed=\d+$/, '')} ${line.policy}`;
    settings.set(key, [...(settings.get(key) ?? []), line]);
  }
  return [...settings.values()]
    .map((all) => ({ x: mean(all.map(({ LAAL }) => LAAL)), y: mean(all.map(({ sacreBLEU }) => sacreBLEU)) }))
    .sort((a, b) => a.x - b.x);
}
