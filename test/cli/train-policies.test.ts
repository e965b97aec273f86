import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { trainingRun } from '../../src/cli/training-run.js';
import { trainConfigSchema } from '../../src/problems/index.js';
import { loadConfig } from '../../src/run/index.js';
import { temporaryFolder } from '../run/temporary.js';
import { tcts } from './train-process.js';

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const toy = fileURLToPath(new URL('../../configs/toy.yaml', import.meta.url));
const monotonic = fileURLToPath(new URL('../../configs/monotonic.yaml', import.meta.url));

const SMALL = [
  'threads=1',
  'problem.model.preset=tiny',
  'problem.model.width=16',
  'problem.model.ffn=16',
  'problem.model.encoderLayers=1',
  'problem.model.decoderLayers=2',
  'problem.model.maxPositions=24',
  'problem.learning.warmup=5',
  'problem.batch.tokens=200',
  'training.episodes=1',
  'training.steps=4',
  'logging.tensorboard=false',
];
const TOY = ['problem.data={from: toy, pairs: 80}'];

it.each([
  ['itst', ['problem.threshold.after=2'], 'itst:delta=.2,.9', ['itst:delta=0.2', 'itst:delta=0.9']],
  ['hmt', ['problem.candidates={first: 1, states: 3}'], 'hmt', ['hmt:p=0.5']],
])(
  'trains %s from a wait-k run, evaluates and streams it',
  async (attention, keys, policy, names) => {
    const folder = temporaryFolder();
    const waitK = loadConfig(trainConfigSchema, toy, { set: [...SMALL, 'problem.data.pairs=80'] });
    await trainingRun(waitK, { folder: join(folder, 'runs', 'wait-k'), quiet: true });
    const set = [
      ...SMALL,
      ...TOY,
      ...keys,
      `problem.attention=${attention}`,
      'name=own',
      'problem.warmStart=runs/wait-k',
    ];
    const trained = await tcts(folder, 'train', monotonic, '--quiet', ...set.flatMap((key) => ['--set', key]));
    expect(trained.stderr).toBe('');
    expect(trained.code).toBe(0);

    const evaluated = await tcts(folder, 'evaluate', 'runs/own', '--policy', policy, '--beam', '1', '--json');
    expect(evaluated.stderr).toBe('');
    const { results } = JSON.parse(evaluated.stdout) as {
      results: { policy: string; folder: string; latency: object }[];
    };
    expect(results.map((one) => one.policy)).toEqual(names);

    // Word by word, the same as in the evaluation.
    const instances = readFileSync(join(folder, results[0].folder, 'instances.log'), 'utf8')
      .trim()
      .split('\n');
    const some = instances.slice(0, 8).map((line) => JSON.parse(line) as { source: string; prediction: string });
    const streamed = spawnSync(process.execPath, [main, 'translate', 'runs/own', '--policy', names[0], '--beam', '1'], {
      cwd: folder,
      input: some.map(({ source }) => `${source}\n`).join(''),
      encoding: 'utf8',
    });
    expect(streamed.stdout.trimEnd().split('\n')).toEqual(some.map(({ prediction }) => prediction));

    const refused = await tcts(folder, 'evaluate', 'runs/own', '--policy', 'wait-k:3');
    expect(refused).toMatchObject({
      code: 1,
      stderr: `tcts: policy: wait-k is not for this model: it decides itself (${attention})\n`,
    });
  },
  60_000,
);
