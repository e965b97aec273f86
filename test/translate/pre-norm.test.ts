import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { trainingRun } from '../../src/cli/training-run.js';
import { Inference, traceModel } from '../../src/optim/index.js';
import { trainConfigSchema } from '../../src/problems/index.js';
import { loadConfig } from '../../src/run/index.js';
import { f32, i64, type Tensor } from '../../src/tensor/index.js';
import type { TranslationModel } from '../../src/translate/model/config.js';
import { encode, layerOptions } from '../../src/translate/model/transformer.js';
import { openTrained } from '../../src/translate/trained.js';
import { temporaryFolder } from '../run/temporary.js';
import { randomArena, tinyModel } from './decode-models.js';

const toy = fileURLToPath(new URL('../../configs/toy.yaml', import.meta.url));

/** Rows [S, D] of the encoder's output for one sentence. */
async function encoded(model: TranslationModel): Promise<number[][]> {
  const arena = randomArena(model, 5);
  const inference = await Inference.create({
    model: (p, { ids, lengths }: Record<'ids' | 'lengths', Tensor>) => ({ out: encode(p, model, { ids, lengths }) }),
    inputs: { ids: i64('S', 'B'), lengths: i64('B') },
    arena,
  });
  const ids = { data: BigInt64Array.of(5n, 9n, 4n, 2n), shape: [4, 1] };
  const { out } = await inference.run({ ids, lengths: { data: BigInt64Array.of(4n), shape: [1] } });
  await inference.close();
  const data = out.data as Float32Array;
  return [0, 1, 2, 3].map((row) => [...data.subarray(row * model.width, (row + 1) * model.width)]);
}

test('the sum of pre-norm blocks is normalised at the end, as fairseq does', async () => {
  const model = tinyModel({ norm: 'pre', dropout: 0 });
  const { parameters } = traceModel(
    (p, { ids, lengths }: Record<'ids' | 'lengths', Tensor>) => ({
      out: encode(p, model, { ids, lengths }),
    }),
    { ids: i64('S', 'B'), lengths: i64('B') },
  );
  expect(parameters.map(({ name }) => name)).toContain('encoder.layer_norm.weight');
  for (const row of await encoded(model)) {
    // The bias of the last norm is random: mean and variance are those of the norm (0 and 1) moved by a bias of 0.1.
    const mean = row.reduce((a, b) => a + b, 0) / row.length;
    const variance = row.reduce((sum, x) => sum + (x - mean) ** 2, 0) / row.length;
    expect(Math.abs(mean)).toBeLessThan(0.1);
    expect(Math.abs(variance - 1)).toBeLessThan(0.2);
  }
});

test('the activation is that of the model', async () => {
  const x = { data: Float32Array.of(-1, 0, 1), shape: [3] };
  const at = async (activation?: 'relu' | 'gelu') => {
    const options = layerOptions(tinyModel({ activation }));
    const inference = await Inference.create({
      model: (_, { x: input }: Record<'x', Tensor>) => ({ out: options.activation!(input) }),
      inputs: { x: f32(3) },
      arena: randomArena(tinyModel(), 1),
    });
    const { out } = await inference.run({ x });
    await inference.close();
    return [...(out.data as Float32Array)];
  };
  expect(await at()).toEqual([0, 0, 1]);
  // x·Φ(x) with Φ(1) = 0.841344746.
  const [below, middle, above] = await at('gelu');
  expect([below, middle, above].map((value) => Number(value.toFixed(6)))).toEqual([-0.158655, 0, 0.841345]);
});

test('a pre-norm model with GELU is trained as the configuration says, and comes back from its run folder', async () => {
  const small = [
    'threads=1',
    'problem.data.pairs=80',
    'problem.model.width=16',
    'problem.model.ffn=16',
    'problem.learning.warmup=5',
    'problem.batch.tokens=200',
    'training.episodes=1',
    'training.steps=2',
    'logging.tensorboard=false',
  ];
  const performanceWith = async (name: string, ...set: string[]) => {
    const folder = join(temporaryFolder(), name);
    const config = loadConfig(trainConfigSchema, toy, { set: [...small, ...set] });
    const { result } = await trainingRun(config, { folder, quiet: true });
    return { folder, performance: result!.best!.performance };
  };
  const plain = await performanceWith('plain');
  const other = await performanceWith('other', 'problem.model.norm=pre', 'problem.model.activation=gelu');
  expect(other.performance).not.toBe(plain.performance);
  expect(openTrained(plain.folder).arena.names).not.toContain('decoder.layer_norm.bias');
  const { model, arena } = openTrained(other.folder);
  expect(model).toMatchObject({ norm: 'pre', activation: 'gelu' });
  expect(arena.names).toContain('decoder.layer_norm.bias');
});
