import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Inference, Training } from '../../src/optim/index.js';
import { Random } from '../../src/random.js';
import { checkpointFolder, createRun, saveBest } from '../../src/run/index.js';
import { copySnapshot, joinSnapshots } from '../../src/schedule/index.js';
import { f64 } from '../../src/tensor/index.js';
import { translationSchema } from '../../src/translate/config.js';
import { openCorpus } from '../../src/translate/corpus/corpus.js';
import { readFairseq } from '../../src/translate/exchange/fairseq.js';
import { saveImported } from '../../src/translate/exchange/foreign.js';
import { LossEvaluation } from '../../src/translate/loss-evaluation.js';
import { evaluationMode, isAdapter } from '../../src/translate/model/config.js';
import { lossInputs, lossModel } from '../../src/translate/model/transformer.js';
import { ATTENTIONS, monotonicSchema } from '../../src/translate/monotonic/config.js';
import { MonotonicProblem } from '../../src/translate/monotonic/problem.js';
import { TranslationProblem } from '../../src/translate/problem.js';
import { openTrained, trainedMonotonic } from '../../src/translate/trained.js';
import { tinyModel } from './decode-models.js';
import { corpusLike, vectors } from './imported-runs.js';

describe('the gradients of adapters', () => {
  it('are those of finite differences in f64, and frozen parameters have none', async () => {
    const adapters = { rank: 2, alpha: 3, on: ['q', 'v', 'fc2'] as const };
    const model = evaluationMode(tinyModel({ encoderLayers: 1, decoderLayers: 1, width: 8, ffn: 6, adapters }));
    const inputs = { ...lossInputs, weights: f64('B') };
    const loss = lossModel(model, { smoothing: 0.1 });
    const training = await Training.create({
      model: loss,
      inputs,
      random: new Random(3),
      optimizer: { name: 'adam' },
      dtype: 'f64',
      frozen: (name) => !isAdapter(name),
    });
    const { arena } = training;
    // B starts at 0, where A has no gradient.
    for (const name of arena.names) new Random(5).fork(name).fillNormal(arena.value(name) as never, 0, 0.5);
    const ids = (rows: number[][]) => ({ data: Int32Array.from(rows.flat()), shape: [rows.length, rows[0].length] });
    const feeds = {
      source: ids([
        [5, 7],
        [6, 2],
        [2, 1],
      ]),
      sourceLengths: { data: Int32Array.of(3, 2), shape: [2] },
      previous: ids([
        [2, 2],
        [9, 4],
      ]),
      target: ids([
        [9, 4],
        [2, 2],
      ]),
      targetLengths: { data: Int32Array.of(2, 2), shape: [2] },
      waits: { data: Int32Array.of(1, 2), shape: [2] },
      weights: { data: Float64Array.of(1, 0.5), shape: [2] },
    };
    await training.gradient(feeds, new Float32Array(arena.length));
    const inference = await Inference.create({ model: loss, inputs, arena });
    const lossAt = async () => Number((await inference.run(feeds, { outputs: ['loss'] })).loss.data[0]);
    for (const name of arena.trained) {
      const [values, grads] = [arena.value(name), arena.grad(name)];
      for (const i of [0, values.length - 1]) {
        const [before, step] = [values[i], 1e-6];
        values[i] = before + step;
        const above = await lossAt();
        values[i] = before - step;
        const numeric = (above - (await lossAt())) / (2 * step);
        values[i] = before;
        expect(Math.abs(grads[i] - numeric)).toBeLessThan(1e-7 * (1 + Math.abs(numeric)));
      }
    }
    // Encoder and decoder: q and v of three attentions, fc2 of two layers, two matrices each.
    expect(arena.trained).toHaveLength(16);
    expect(arena.trained.every(isAdapter)).toBe(true);
    expect(() => arena.grad('encoder.layers.0.fc1.weight')).toThrow(/is frozen/);
    expect(Math.max(...arena.grads.map(Math.abs))).toBeGreaterThan(0.01);
    await inference.close();
    await training.close();
  });
});

describe('a run that trains adapters of an imported model', () => {
  let scratch: string;
  let start: string;
  let corpus: string;
  beforeAll(async () => {
    scratch = mkdtempSync(join(tmpdir(), 'tcts-adapters-'));
    const foreign = readFairseq(join(vectors, 'fairseq'));
    start = join(scratch, 'imported');
    saveImported(start, foreign, { from: 'fairseq' });
    corpus = await corpusLike(foreign.languages, scratch);
  });
  afterAll(() => rmSync(scratch, { recursive: true }));

  const configOf = (keys: object = {}) => {
    const { vocabulary, ...model } = openTrained(start).model;
    return translationSchema.parse({
      kind: 'translation',
      data: { from: 'corpus', folder: corpus },
      waits: 3,
      main: 2,
      model: { ...model, adapters: { rank: 2, alpha: 4, on: ['q', 'v', 'fc1'] } },
      learning: { peak: 0.05, warmup: 1 },
      warmStart: start,
      ...keys,
    });
  };
  const created = () => TranslationProblem.create(configOf(), { random: new Random(1) });
  const update = async (problem: TranslationProblem) => {
    const batch = problem.nextBatch();
    const size = problem.sizeOf(batch);
    await problem.train(batch, { tasks: new Int32Array(size).fill(1), weights: new Float32Array(size).fill(1) });
  };

  it('begins as that model, leaves it as it is, goes on bit for bit, and merges without a change', async () => {
    const imported = openTrained(start);
    const problem = await created();
    const plain = await LossEvaluation.create(imported.model, imported.arena, { smoothing: 0.1 });
    const valid = openCorpus(corpus).open('valid');
    const before = await plain.corpus(valid, 2, 1000);
    expect((await problem.validationLosses([2]))[0]).toBeCloseTo(before.plain, 6);

    await update(problem);
    await update(problem);
    const snapshot = copySnapshot(problem.capture());
    await update(problem);
    const third = copySnapshot(problem.capture());
    const other = await created();
    other.restore(snapshot);
    await update(other);
    const resumed = copySnapshot(other.capture());
    expect([...resumed.tensors.keys()]).toEqual([...third.tensors.keys()]);
    for (const [name, { data }] of third.tensors) expect(resumed.tensors.get(name)?.data).toEqual(data);

    // The model is as it was imported; only the adapters have optimiser state.
    for (const name of imported.arena.names) {
      expect(third.tensors.get(`model/${name}`)?.data).toEqual(imported.arena.value(name));
    }
    const slots = [...third.tensors.keys()].filter((name) => name.startsWith('model/slot.'));
    expect(slots.length).toBeGreaterThan(0);
    expect(slots.every(isAdapter)).toBe(true);
    // q and v of four attentions, [2, 8] and [8, 2] each, three times fc1, [2, 8] and [12, 2], which fills two lines.
    expect(problem.gradients.size).toBe(4 * 2 * (16 + 16) + 3 * (16 + 32));

    // Saved as a run, opened, merged: the loss is that of the adapters apart, and not that of the model before.
    const folder = join(scratch, 'adapted');
    const run = createRun(folder, { config: { problem: configOf() }, seed: 1, command: ['tcts'] });
    problem.saveFiles(folder);
    const { tensors, state } = joinSnapshots({ problem: third });
    saveBest(checkpointFolder(folder), { step: 3, tensors, state: { subject: state } });
    run.lock.release();
    const trained = openTrained(folder);
    expect(trained.model.adapters).toBeUndefined();
    expect(trained.arena.names).toEqual(imported.arena.names);
    const merged = await LossEvaluation.create(trained.model, trained.arena, { smoothing: 0.1 });
    const after = await merged.corpus(valid, 2, 1000);
    const [apart] = await problem.validationLosses([2]);
    expect(Math.abs(after.plain - apart)).toBeLessThan(1e-5);
    expect(Math.abs(after.plain - before.plain)).toBeGreaterThan(0.01);

    // A run that starts from it starts from the merged model.
    const next = await TranslationProblem.create(configOf({ warmStart: folder }), { random: new Random(1) });
    expect((await next.validationLosses([2]))[0]).toBeCloseTo(after.plain, 5);
    for (const resource of [problem, other, next, plain, merged, valid]) await resource.close();
  });

  it('refuses a model whose parameters mean something else', async () => {
    const config = configOf();
    for (const [key, other] of Object.entries({ heads: 4, positions: 'marian' })) {
      const creating = TranslationProblem.create(
        { ...config, model: { ...config.model, [key]: other } },
        { random: new Random(1) },
      );
      await expect(creating).rejects.toThrow(
        new RegExp(`problem\\.model\\.${key}.*it is ${other}, but .*expected the same`),
      );
    }
  });

  it('needs a model to start from', async () => {
    const config = configOf({ warmStart: null });
    const creating = TranslationProblem.create(config, { random: new Random(1) });
    await expect(creating).rejects.toThrow(/problem\.model\.adapters.*expected problem\.warmStart to name its run/);
  });

  it.each(ATTENTIONS)('with %s trains the attention’s own parameters besides, and merges', async (attention) => {
    const imported = openTrained(start);
    const { vocabulary, ...sizes } = imported.model;
    const keys = {
      kind: 'monotonic',
      attention,
      data: { from: 'corpus', folder: corpus },
      model: { ...sizes, encoder: 'unidirectional', adapters: { rank: 2, alpha: 4, on: ['q', 'v', 'fc1'] } },
      learning: { peak: 0.05, warmup: 1 },
      threshold: { after: 0 },
      warmStart: start,
    };
    const create = (more: object = {}) =>
      MonotonicProblem.create(monotonicSchema.parse({ ...keys, ...more }), { random: new Random(1) });
    const problem = await create();
    const began = copySnapshot(problem.capture()).tensors;
    for (let i = 0; i < 2; i++) {
      const batch = problem.nextBatch();
      const size = problem.sizeOf(batch);
      await problem.train(batch, { tasks: new Int32Array(size), weights: new Float32Array(size).fill(1) });
    }
    const snapshot = copySnapshot(problem.capture());
    const counts = { kept: 0, own: 0, adapters: 0 };
    for (const [name, { data }] of snapshot.tensors) {
      if (!name.startsWith('model/') || name.startsWith('model/slot.')) continue;
      const parameter = name.slice('model/'.length);
      if (imported.arena.has(parameter)) {
        expect(data).toEqual(imported.arena.value(parameter));
        counts.kept++;
      } else if (isAdapter(parameter)) {
        counts.adapters++;
        expect(data).not.toEqual(began.get(name)?.data);
      } else if (data.some((value, i) => value !== began.get(name)?.data[i])) counts.own++;
    }
    expect(counts.kept).toBeGreaterThan(20);
    expect(counts.adapters).toBeGreaterThan(10);
    expect(counts.own).toBeGreaterThan(0);

    const folder = join(scratch, `adapted-${attention}`);
    const run = createRun(folder, { config: { problem: keys }, seed: 1, command: ['tcts'] });
    problem.saveFiles(folder);
    const { tensors, state } = joinSnapshots({ problem: snapshot });
    saveBest(checkpointFolder(folder), { step: 2, tensors, state: { subject: state } });
    run.lock.release();
    const trained = trainedMonotonic(folder);
    expect(trained.model.adapters).toBeUndefined();
    expect(trained.arena.names.some(isAdapter)).toBe(false);
    // The merged model has the loss of the adapters apart; a run that starts from it begins there.
    const apart = await problem.validate();
    const next = await create({ warmStart: folder });
    expect(await next.validate()).toBeCloseTo(apart, 4);
    const fresh = await create();
    expect(Math.abs((await fresh.validate()) - apart)).toBeGreaterThan(0.01);
    for (const resource of [problem, next, fresh]) await resource.close();
    await expect(create({ warmStart: null })).rejects.toThrow(/expected problem\.warmStart to name its run/);
  });
});
