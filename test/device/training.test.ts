import { expect, test } from 'vitest';
import { createNetwork, type Network } from '../../src/forecast/network.js';
import { type Feeds, type InputTypes, type Model, Training } from '../../src/optim/index.js';
import { residenceOf } from '../../src/optim/residence.js';
import { Random } from '../../src/random.js';
import {
  broadcastTo,
  dropoutMask,
  exp,
  f32,
  lower,
  mul,
  placement,
  Session,
  slice,
  trace,
  type Value,
} from '../../src/tensor/index.js';
import { lossFeeds, lossInputs, lossModel, translationModel } from '../../src/translate/index.js';
import { describeOnDevice } from './software.js';

interface Case {
  readonly model: Model<InputTypes>;
  readonly inputs: InputTypes;
  batch(random: Random): Feeds;
}

const VOCABULARY = 20;

function transformer(): Case {
  const sizes = { encoderLayers: 1, decoderLayers: 1, width: 8, embedding: 8, heads: 2, ffn: 8 };
  const keys = { preset: 'tiny', encoder: 'unidirectional', maxPositions: 16, ...sizes } as const;
  const model = translationModel(keys as never, { source: VOCABULARY, target: VOCABULARY, shared: true });
  const [size, sourceLength, targetLength] = [3, 4, 5];
  return {
    model: lossModel(model, { smoothing: 0.1 }) as Model<InputTypes>,
    inputs: lossInputs,
    batch: (random) => {
      const ids = (length: number) => Int32Array.from({ length: length * size }, () => 4 + random.int(VOCABULARY - 4));
      const lengths = (longest: number) => Int32Array.from({ length: size }, (_, i) => longest - (i % 2));
      const [source, target] = [ids(sourceLength), ids(targetLength)];
      const [sourceLengths, targetLengths] = [lengths(sourceLength), lengths(targetLength)];
      const batch = { size, source, target, sourceLength, targetLength, sourceLengths, targetLengths };
      const waits = Int32Array.from({ length: size }, (_, i) => 1 + i);
      return lossFeeds(batch as never, waits, new Float32Array(size).fill(1 / (size * targetLength)));
    },
  };
}

const [SAMPLES, WINDOW, TASKS] = [6, 3, 2];

function forecaster(name: 'gru' | 'lstm' | 'gat'): Case {
  const layers = name === 'gat' ? 1 : 2;
  const network: Network = createNetwork({
    model: { name, hidden: 4, layers, dropout: name === 'gat' ? 0 : 0.3 } as never,
    sharing: 'heads',
    tasks: TASKS,
    features: { kind: 'ohlcv', window: WINDOW, columns: [], rankColumns: [] } as never,
  });
  const sized = (shape: readonly unknown[]): number[] =>
    shape.map((size) => (typeof size === 'number' ? size : SAMPLES));
  return {
    model: network.training,
    inputs: network.trainingInputs,
    batch: (random) => {
      const normal = (shape: readonly number[]): Value => {
        const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
        random.fillNormal(data, 0, 1);
        return { data, shape };
      };
      const { x, labels } = network.trainingInputs;
      const weights = { data: new Float32Array(SAMPLES * TASKS).fill(1 / SAMPLES), shape: [SAMPLES, TASKS] };
      const day = { data: BigInt64Array.from([0, 0, 0, 1, 1, 1], BigInt), shape: [SAMPLES] };
      const feeds = { x: normal(sized(x.shape)), labels: normal(sized(labels.shape)), weights };
      return name === 'gat' ? { ...feeds, day } : feeds;
    },
  };
}

const start = (one: Case, device: 'cpu' | 'webgpu') =>
  Training.create({
    model: one.model,
    inputs: one.inputs,
    random: new Random('start'),
    optimizer: { name: 'adam', betas: [0.9, 0.98] },
    clip: { norm: 1, value: 0.5 },
    device,
    hash: 'portable',
  });

const UPDATES = 20;

describeOnDevice('a training on a device', () => {
  test.each([
    ['transformer', transformer],
    ['gru', () => forecaster('gru')],
    ['lstm', () => forecaster('lstm')],
    ['gat', () => forecaster('gat')],
  ])('%s: twenty updates are those of the CPU', { timeout: 240_000 }, async (_name, make) => {
    const one = make();
    const found = [];
    for (const device of ['cpu', 'webgpu'] as const) {
      const training = await start(one, device);
      const random = new Random('batches');
      const losses: number[] = [];
      for (let update = 1; update <= UPDATES; update++) {
        const batch = one.batch(random);
        // Every seventh update has two batches.
        const { loss, gradNorm } = await training.step(update % 7 === 0 ? [batch, one.batch(random)] : batch, 3e-3);
        losses.push(loss, gradNorm);
      }
      expect(residenceOf(training.arena)?.isAhead).toBe(device === 'cpu' ? undefined : true);
      await training.settle();
      const { arena } = training;
      // Where the gradient is nothing but rounding, Adam's step is as long as elsewhere.
      const moved = arena.trained.flatMap((name) => [...arena.value(name)]);
      const squares = arena.trained.flatMap((name) => [...arena.slot(1, name)]);
      found.push({ losses, moved, squares });
      await training.close();
    }
    const [cpu, device] = found;
    for (const [i, loss] of cpu.losses.entries()) {
      expect(Math.abs(device.losses[i] - loss), `figure ${i}`).toBeLessThan(1e-4 * Math.max(1, Math.abs(loss)));
    }
    const meaningful = cpu.moved.map((_, i) => i).filter((i) => cpu.squares[i] > 1e-9);
    expect(meaningful.length).toBeGreaterThan(cpu.moved.length / 2);
    for (const i of meaningful) expect(Math.abs(device.moved[i] - cpu.moved[i]), `parameter ${i}`).toBeLessThan(1e-4);
  });

  test('a training that was begun on the CPU keeps its dropout masks', { timeout: 120_000 }, async () => {
    const one = forecaster('gru');
    const create = (device: 'cpu' | 'webgpu') =>
      Training.create({
        model: one.model,
        inputs: one.inputs,
        random: new Random('start'),
        optimizer: { name: 'adam' },
        device,
      });
    const [cpu, device] = [await create('cpu'), await create('webgpu')];
    const random = new Random('batches');
    await cpu.step(one.batch(random), 3e-3);
    for (const name of cpu.arena.names) device.arena.value(name).set(cpu.arena.value(name) as never);
    for (const slot of [0, 1]) device.arena.slot(slot).set(cpu.arena.slot(slot) as never);
    const state = JSON.parse(JSON.stringify(cpu.state()));
    expect(state.hash).toBeUndefined();
    device.load(state);
    for (let update = 0; update < 3; update++) {
      const batch = one.batch(random);
      const [here, there] = [await cpu.step(batch, 3e-3), await device.step(batch, 3e-3)];
      expect(there.loss).toBeCloseTo(here.loss, 5);
      expect(there.gradNorm).toBeCloseTo(here.gradNorm, 5);
    }
    expect(device.state()).toEqual(cpu.state());
    // What is put into the arena is not overwritten by what the device had before.
    const [name] = device.arena.names;
    device.arena.value(name).fill(7);
    device.load(state);
    await device.settle();
    expect(device.arena.value(name)[0]).toBe(7);
    await cpu.close();
    await device.close();
  });

  test('no operation on tensors is left to the CPU', { timeout: 120_000 }, async () => {
    const { model, inputs, batch } = transformer();
    const training = await Training.create({
      model,
      inputs,
      random: new Random('start'),
      optimizer: { name: 'adam' },
      device: 'webgpu',
    });
    for (const { executable, feeds } of await training.programs(batch(new Random('batch')))) {
      const { onDevice, fallback } = await placement(executable, feeds, { dropoutKey: [1, 2, 'portable'] });
      expect(fallback).toEqual([]);
      expect(onDevice).toBeGreaterThan(10);
    }
    await training.close();
  });

  test('a tensor that is too large is one sentence, and the device goes on', async () => {
    const sized = (elements: number) =>
      trace({ x: f32(1) }, ({ x }) => ({ out: slice(exp(broadcastTo(x, [elements])), 0, 0, 1) }));
    const run = async (elements: number) => {
      const session = await Session.create(lower(sized(elements), { device: 'webgpu' }));
      try {
        return await session.run({ x: { data: Float32Array.of(0), shape: [1] } });
      } finally {
        await session.close();
      }
    };
    // 4 GiB, above the limit of 1 GiB.
    await expect(run(2 ** 30 - 4)).rejects.toThrow(
      /^the device webgpu has no room for this program.*: what was saved is intact, go on from it with --device cpu/,
    );
    expect((await run(1000)).out.data[0]).toBe(1);
  });

  test('makes the dropout masks of the CPU, bit by bit', async () => {
    const program = trace({ x: f32('B', 3) }, ({ x }) => ({
      a: mul(x, dropoutMask(x.shape, 0.3)),
      b: dropoutMask([5, 7], 0.1),
    }));
    const feeds = { x: { data: new Float32Array(300).fill(1), shape: [100, 3] } };
    const run = async (device: 'cpu' | 'webgpu') => {
      const session = await Session.create(lower(program, { device }));
      const masks = await session.run(feeds, { dropoutKey: [123, 456, 'portable'] });
      await session.close();
      return masks;
    };
    const [cpu, device] = [await run('cpu'), await run('webgpu')];
    expect(device).toEqual(cpu);
    expect(new Set(cpu.a.data as Float32Array)).toEqual(new Set([0, Math.fround(1 / 0.7)]));
  });
});
