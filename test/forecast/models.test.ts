import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { forecastModelSchema, type ModelConfig, modelNamed } from '../../src/forecast/models/index.js';
import type { TrunkMode } from '../../src/forecast/models/model.js';
import { createNetwork, inputValue, openForward } from '../../src/forecast/network.js';
import { Training } from '../../src/optim/index.js';
import { Random } from '../../src/random.js';
import type { Parameters, Tensor, Value } from '../../src/tensor/index.js';
import { expectTorch, type Stored } from '../nn/torch.js';

interface ModelCase {
  readonly params: Record<string, Stored>;
  readonly buffers?: Record<string, Stored>;
  readonly buffers_after?: Record<string, Stored>;
  readonly evaluated?: Stored;
  readonly x: Stored;
  readonly days?: readonly number[];
  readonly out: Stored;
  readonly loss_w: Stored;
  readonly grad_x: Stored;
  readonly grads: Record<string, Stored>;
}

const { cases } = JSON.parse(readFileSync(new URL('models.json', import.meta.url), 'utf8')) as {
  cases: Record<string, ModelCase>;
};

const network = (values: Record<string, unknown>): ModelConfig => forecastModelSchema().parse(values);

/** Every model, in the sizes of the reference values. */
const MODELS: Record<string, ModelConfig> = {
  gru: network({ name: 'gru', hidden: 4 }),
  lstm: network({ name: 'lstm', hidden: 4 }),
  alstm: network({ name: 'alstm', hidden: 4 }),
  sfm: network({ name: 'sfm', hidden: 4, frequencies: 3, output: 2 }),
  mlp: network({ name: 'mlp', hidden: [5, 4], dropout: 0 }),
  gat: network({ name: 'gat', hidden: 4 }),
  linear: network({ name: 'linear' }),
};

/** GAT's attention vector a is two vectors here: one for the stock that is seen, one for the stock that sees. */
function ourNames(parameters: Record<string, Stored>): Record<string, Stored> {
  const { a, ...rest } = parameters;
  if (a === undefined) return rest;
  const H = a.data.length / 2;
  const row = (data: readonly number[]): Stored => ({ shape: [1, H], data });
  return { ...rest, 'seen.weight': row(a.data.slice(0, H)), 'seeing.weight': row(a.data.slice(H)) };
}

function trunkOf(name: string, mode: TrunkMode) {
  return (p: Parameters, { x, day }: Record<string, Tensor>) => ({
    out: modelNamed(name).architecture!.trunk(p, { x, day }, MODELS[name], mode),
  });
}

describe.each(Object.keys(cases))('%s against PyTorch', (name) => {
  const { params, buffers = {}, x, days, out, loss_w, grad_x, grads } = cases[name];
  const integers = days && { day: { shape: [days.length], data: days } };
  const given = { inputs: { x }, integers, parameters: { ...ourNames(params), ...buffers }, weights: { out: loss_w } };

  it('has the same representation and gradients in training', async () => {
    const mode = { training: true, keep: () => {} };
    await expectTorch(trunkOf(name, mode), {
      ...given,
      outputs: { out },
      gradients: { x: grad_x, ...ourNames(grads) },
    });
  });

  it('has the same representation in evaluation', async () => {
    const mode = { training: false, keep: () => {} };
    const { buffers_after = {}, evaluated = out } = cases[name];
    const parameters = { ...given.parameters, ...buffers_after };
    await expectTorch(trunkOf(name, mode), { ...given, parameters, outputs: { out: evaluated }, gradients: {} });
  });
});

it('the MLP keeps the running statistics that PyTorch keeps', async () => {
  const { params, buffers, buffers_after, x, loss_w } = cases.mlp;
  const model = (p: Parameters, inputs: Record<string, Tensor>) => {
    const kept: Record<string, Tensor> = {};
    const keep = (parameter: string, value: Tensor) => {
      kept[`new ${parameter}`] = value;
    };
    return { ...trunkOf('mlp', { training: true, keep })(p, inputs), ...kept };
  };
  const reference = { inputs: { x }, parameters: { ...params, ...buffers }, weights: { out: loss_w }, gradients: {} };
  await expectTorch(model, {
    ...reference,
    outputs: Object.fromEntries(Object.entries(buffers_after!).map(([key, value]) => [`new ${key}`, value])),
  });
});

const SHARINGS = ['shared', 'heads', 'embedding'] as const;
const EVERY = Object.keys(MODELS).flatMap((name) => SHARINGS.map((sharing) => [name, sharing] as const));
const POSSIBLE = EVERY.filter(([name, sharing]) => name !== 'gat' || sharing !== 'embedding');

const features = { kind: 'ohlcv', window: 4 } as const;
const K = 3;
const B = 24;

/** Samples whose label of task k is (k + 1)/3 of a column on the last day. */
function learnable(layout: 'time-major' | 'flat') {
  const random = new Random('samples');
  const x = new Float32Array(B * 20);
  random.fillNormal(x, 0, 1);
  const signal = (b: number) => (layout === 'flat' ? x[b * 20 + 3] : x[(3 * B + b) * 5]);
  return { x, labels: (k: number) => Float32Array.from({ length: B }, (_, b) => (signal(b) * (k + 1)) / 3) };
}

describe.each(POSSIBLE)('%s with the sharing %s', (name, sharing) => {
  const net = createNetwork({ model: MODELS[name], sharing, tasks: K, features });
  const { x, labels } = learnable(net.layout);
  const ids = (values: readonly number[]): Value => ({
    data: BigInt64Array.from(values, BigInt),
    shape: [values.length],
  });
  const tasks = Array.from({ length: B }, (_, b) => b % K);
  const inputs: Record<string, Value> = {
    x: inputValue(net, x, B),
    ...(net.seesDays ? { day: ids(tasks.map((_, b) => Math.floor(b / 6))) } : {}),
    ...(sharing === 'embedding' ? { task: ids(tasks) } : {}),
  };

  it('learns, and forecasts a column for each head', async () => {
    const columns = sharing === 'embedding' ? 1 : K;
    const label = (b: number, k: number) => labels(sharing === 'embedding' ? tasks[b] : k)[b];
    const table = Float32Array.from({ length: B * columns }, (_, at) => label(Math.floor(at / columns), at % columns));
    const feeds = {
      ...inputs,
      labels: { data: table, shape: [B, columns] },
      weights: { data: new Float32Array(B * columns).fill(1 / (B * columns)), shape: [B, columns] },
    };
    const training = await Training.create({
      model: net.training,
      inputs: net.trainingInputs,
      random: new Random(1),
      optimizer: { name: 'adam' },
    });
    const losses: number[] = [];
    for (let step = 0; step < 60; step++) losses.push((await training.step(feeds, 0.02)).loss);
    expect(losses.at(-1)!).toBeLessThan(0.8 * losses[0]);

    const inference = await openForward(net, training.arena, 1);
    const { forecasts } = await inference.run(inputs);
    expect(forecasts.shape).toEqual([B, sharing === 'heads' ? K : 1]);
    await inference.close();
    await training.close();
  });
});

it('stocks of a day cannot be on several tasks where they see each other', () => {
  const build = () => createNetwork({ model: MODELS.gat, sharing: 'embedding', tasks: K, features });
  expect(build).toThrow('problem.sharing: with gat the stocks of a day see each other');
});

it.each(Object.keys(MODELS))(
  'a forecast of %s does not depend on the samples of other days beside it',
  async (name) => {
    const net = createNetwork({ model: MODELS[name], sharing: 'heads', tasks: K, features });
    const { x } = learnable('flat');
    // Sample b of the flat features as [B, 20], or its days as [4, B, 5].
    const layOut = (samples: readonly number[]): Float32Array => {
      const out = new Float32Array(samples.length * 20);
      samples.forEach((b, row) => {
        for (let l = 0; l < 4; l++) {
          for (let f = 0; f < 5; f++) {
            const to = net.layout === 'flat' ? row * 20 + f * 4 + l : (l * samples.length + row) * 5 + f;
            out[to] = x[b * 20 + f * 4 + l];
          }
        }
      });
      return out;
    };
    const training = await Training.create({
      model: net.training,
      inputs: net.trainingInputs,
      random: new Random(1),
      optimizer: { name: 'adam' },
    });
    const inference = await openForward(net, training.arena, 1);
    const run = async (samples: readonly number[]) => {
      const day = { data: BigInt64Array.from(samples, (b) => BigInt(Math.floor(b / 6))), shape: [samples.length] };
      const feeds = { x: inputValue(net, layOut(samples), samples.length), ...(net.seesDays ? { day } : {}) };
      return (await inference.run(feeds)).forecasts.data as Float32Array;
    };
    const all = await run([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    const alone = await run([6, 7, 8, 9, 10, 11]);
    alone.forEach((value, i) => {
      expect(value).toBeCloseTo(all[6 * K + i], 5);
    });
    await inference.close();
    await training.close();
  },
);
