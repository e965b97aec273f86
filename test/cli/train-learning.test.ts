import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { trainingRun } from '../../src/cli/training-run.js';
import { trainConfigSchema } from '../../src/problems/index.js';
import { checkpointFolder, latestCheckpoint, loadConfig, readMetrics } from '../../src/run/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { startTcts, tcts } from './train-process.js';

const CONFIGS = {
  series: `problem:
  kind: series
  data: {format: synthetic, rows: 400}
  tasks: [1, 2]
  main: 2
  window: 8
  model: {hidden: 8}
  batch: 32
  learningRate: 0.01
`,
  forecast: `problem:
  kind: forecast
  data: {format: synthetic, stocks: 10, days: 220}
  split: {train: ['2015-02-02', '2015-05-29'], validation: ['2015-06-01', '2015-07-31'], test: ['2015-08-03', '2015-10-30']}
  features: {window: 5}
  model: {name: gru, hidden: 4, layers: 1}
  batch: {size: 64}
  learningRate: 0.01
`,
  translation: `problem:
  kind: translation
  data: {from: toy, pairs: 80}
  waits: 5
  model: {preset: tiny, width: 16, ffn: 16, dropout: 0}
  batch: {tokens: 200}
  learning: {schedule: constant, peak: 0.01, warmup: 1, warmupInit: 0.01}
`,
};

const REST = `strategy: {name: mtl}
training: {episodes: 2, steps: 4}
workers: 1
logging: {tensorboard: false, progressSeconds: 0.05}
saving: {everySteps: 3}
`;

function folderWith(problem: keyof typeof CONFIGS): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'small.yaml'), CONFIGS[problem] + REST);
  return folder;
}

async function trained(folder: string, name: string, ...set: string[]): Promise<string> {
  const run = join(folder, 'runs', name);
  const config = loadConfig(trainConfigSchema, join(folder, 'small.yaml'), { set });
  await trainingRun(config, { folder: run, quiet: true });
  return run;
}

const performances = (run: string) =>
  readMetrics(join(run, 'metrics.jsonl')).flatMap(({ performance }) => performance ?? []);

function lastCheckpoint(run: string) {
  const found = latestCheckpoint(checkpointFolder(run), (sentence) => expect.fail(sentence));
  const { subject } = found!.state as { subject: { problem: { model: { learningRate?: { rate: number } } } } };
  const parameters = [...found!.tensors].filter(([name]) => /^problem\/model\/(?!slot)/.test(name));
  return { rate: subject.problem.model.learningRate?.rate, values: parameters.flatMap(([, { data }]) => [...data]) };
}

describe.each(['series', 'forecast', 'translation'] as const)('%s', (problem) => {
  test('cosine brings the learning rate down to nothing, after which the model stays as it is', async () => {
    const folder = folderWith(problem);
    const [before, after] = performances(await trained(folder, 'constant'));
    expect(after).not.toBe(before);
    // ½(1 + cos π) = 0 at update 4 of 8.
    const set = ['problem.learning.schedule=cosine', 'problem.learning.updates=4'];
    const [fallen, still] = performances(await trained(folder, 'cosine', ...set));
    expect(fallen).not.toBe(before);
    expect(still).toBe(fallen);
  });

  test('adamw shrinks the parameters apart from the step of Adam', async () => {
    const folder = folderWith(problem);
    const decay = ['problem.learning.optimizer=adamw', 'problem.learning.weightDecay=10'];
    const one = ['training={episodes: 1, steps: 1}', 'strategy.name=fixed'];
    const plain = lastCheckpoint(await trained(folder, 'adam', ...one)).values as number[];
    const decayed = lastCheckpoint(await trained(folder, 'adamw', ...one, ...decay)).values as number[];
    // θ₁ = θ₀(1 − ηλ) − η·m̂/√v̂ with ηλ = 0.1. Without the decay the first step of Adam is ±η wherever there is a gradient.
    const steps = plain.map((value, i) => Math.abs(value - (value - decayed[i]) / 0.1) / 0.01);
    expect(Math.max(...steps)).toBeLessThan(1.001);
    expect(steps.filter((step) => step > 0.99).length).toBeGreaterThan(plain.length / 4);
    expect(decayed).not.toEqual(plain);
  });
});

test('cosine reaches its minimum with the last update of the training, unless told otherwise', async () => {
  const folder = folderWith('series');
  const learning = 'problem.learning={schedule: cosine, minimum: 0.001, warmup: 2';
  const implied = performances(await trained(folder, 'implied', `${learning}}`));
  expect(performances(await trained(folder, 'said', `${learning}, updates: 8}`))).toEqual(implied);
  expect(performances(await trained(folder, 'longer', `${learning}, updates: 9}`))).not.toEqual(implied);
});

test('reduce_on_plateau goes on exactly where it was killed', { timeout: 120_000 }, async () => {
  const folder = folderWith('series');
  // No validation but the first is an improvement of 10⁹: bad ones number 1 | 2 reduces.
  const plateau = 'problem.learning={schedule: reduce_on_plateau, factor: 0.5, patience: 1, minDelta: 1e9}';
  const set = [plateau, 'training={episodes: 41, steps: 5}'];
  const whole = await trained(folder, 'whole', ...set);
  expect(lastCheckpoint(whole).rate).toBe(0.01 * 0.5 ** 20);

  const keys = ['name=parts', ...set].flatMap((assignment) => ['--set', assignment]);
  const { child, ended } = startTcts(folder, 'train', 'small.yaml', ...keys);
  child.stderr.on('data', (text: Buffer) => {
    if (/step [2-9]\d\//.test(String(text))) child.kill('SIGKILL');
  });
  expect((await ended).signal).toBe('SIGKILL');
  expect((await tcts(folder, 'train', '--resume', 'runs/parts', '--quiet')).code).toBe(0);
  const parts = join(folder, 'runs/parts');
  expect(readFileSync(join(parts, 'metrics.jsonl'), 'utf8')).toBe(readFileSync(join(whole, 'metrics.jsonl'), 'utf8'));
  expect(lastCheckpoint(parts)).toEqual(lastCheckpoint(whole));
});

test.each([
  ['{schedule: inverse_sqrt}', /problem\.learning\.warmup: inverse_sqrt needs a warm-up/],
  [
    '{schedule: cosine, warmup: 8}',
    /problem\.learning\.updates: cosine needs more updates than the 8 of the warm-up, found 8/,
  ],
  ['{schedule: linear}', /problem\.learning\.schedule: expected "constant", "inverse_sqrt", "cosine"/],
  ['{factor: 1}', /problem\.learning\.factor: expected a number above 0 and below 1/],
])('learning %s is refused with one sentence', async (learning, sentence) => {
  const set = ['--set', `problem.learning=${learning}`];
  const { code, stderr } = await tcts(folderWith('series'), 'train', 'small.yaml', '--quiet', ...set);
  expect(code).toBe(1);
  expect(stderr).toMatch(sentence);
});
