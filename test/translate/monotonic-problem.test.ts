import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { trainingRun } from '../../src/cli/training-run.js';
import { Training } from '../../src/optim/index.js';
import { type TrainConfig, trainConfigSchema } from '../../src/problems/index.js';
import { Random } from '../../src/random.js';
import { checkpointFolder, latestCheckpoint } from '../../src/run/index.js';
import { pairCount } from '../../src/translate/corpus/batches.js';
import { Translator } from '../../src/translate/decode/translator.js';
import { evaluateTranslation } from '../../src/translate/evaluate.js';
import { ATTENTIONS, latencyWeights, monotonicSchema } from '../../src/translate/monotonic/config.js';
import { monotonicFeeds, monotonicInputs, monotonicLossModel } from '../../src/translate/monotonic/loss.js';
import { MonotonicProblem } from '../../src/translate/monotonic/problem.js';
import { openTrained, trainedMonotonic } from '../../src/translate/trained.js';
import { temporaryFolder } from '../run/temporary.js';
import { tinyMonotonic } from './monotonic-models.js';

const tinyKeys = {
  data: { from: 'toy', pairs: 80 },
  model: { preset: 'tiny', width: 16, ffn: 16, heads: 2 },
  batch: { tokens: 200 },
  learning: { warmup: 5 },
};

function tinyProblem(keys: Record<string, unknown> = {}): Promise<MonotonicProblem> {
  const config = monotonicSchema.parse({ kind: 'monotonic', ...tinyKeys, ...keys });
  return MonotonicProblem.create(config, { random: new Random(1) });
}

async function updates(problem: MonotonicProblem, count: number): Promise<number[]> {
  const losses: number[] = [];
  for (let update = 0; update < count; update++) {
    const batch = problem.nextBatch();
    const assignment = { tasks: new Int32Array(pairCount(batch)), weights: new Float32Array(pairCount(batch)).fill(1) };
    losses.push(await problem.train(batch, assignment));
  }
  return losses;
}

function training(problem: Record<string, unknown>, steps: number, strategy = 'fixed'): TrainConfig {
  return trainConfigSchema.parse({
    threads: 1,
    problem: { ...tinyKeys, ...problem },
    strategy: { name: strategy },
    training: { episodes: 2, steps },
    logging: { tensorboard: false },
  });
}

/** Parameters that a training with next to no learning rate has left where they were. */
function expectUnmoved(before: ArrayLike<number>, after: ArrayLike<number>, name: string): void {
  const moved = Array.from(before, (value, i) => Math.abs(value - after[i]));
  expect(Math.max(...moved), name).toBeLessThan(1e-9);
}

describe.each(ATTENTIONS)('%s', (attention) => {
  it('has a finite loss and gradient on sentences of 200 tokens and of none, however large the energies', async () => {
    const model = { ...tinyMonotonic(attention), maxPositions: 256 };
    const options = { smoothing: 0.1, varianceWeight: 0.1 };
    const random = new Random(3);
    const started = await Training.create({
      model: monotonicLossModel(model, options),
      inputs: monotonicInputs,
      random,
      optimizer: { name: 'sgd' },
    });
    const [length, size] = [200, 3];
    const ids = Int32Array.from({ length: length * size }, () => 4 + random.int(13));
    const lengths = Int32Array.of(200, 1, 37);
    const batch = {
      source: ids,
      target: ids,
      sourceLengths: lengths,
      targetLengths: lengths.toReversed(),
      indices: Int32Array.of(0, 1, 2),
      size,
      sourceLength: length,
      targetLength: length,
      epoch: 0,
      split: 'train' as const,
    };
    const feeds = monotonicFeeds([batch], {
      weights: new Float32Array(size).fill(1 / 238),
      latencyWeights: new Float32Array(size).fill(0.1),
      threshold: 0.5,
    });
    for (const scale of [1, 100, 100]) {
      for (const name of started.arena.names) {
        if (!/(monotonic_|[qk]_proj)/.test(name)) continue;
        const values = started.arena.value(name) as Float32Array;
        for (let i = 0; i < values.length; i++) values[i] *= scale;
      }
      // An update throws if anything is not finite.
      const { loss, gradNorm } = await started.step(feeds, 0);
      expect(loss).toBeGreaterThan(0);
      expect(gradNorm).toBeGreaterThan(0);
    }
    await started.close();
  });
});

describe('a run', () => {
  it('goes on exactly where it was saved, noise and dropout included', async () => {
    const [first, second] = [await tinyProblem(), await tinyProblem()];
    await updates(first, 2);
    second.restore(first.capture());
    expect(await updates(second, 2)).toEqual(await updates(first, 2));
    expect(await second.validate()).toBe(await first.validate());
    await first.close();
    await second.close();
  });

  it('holds all that translating needs, and starts from a Transformer that was trained before', async () => {
    const folder = temporaryFolder();
    const [plain, warm] = [`${folder}/plain`, `${folder}/warm`];
    await trainingRun(training({ kind: 'translation', waits: 'full' }, 4), { folder: plain, quiet: true });
    const monotonic = { kind: 'monotonic', attention: 'mma-il', warmStart: plain };
    const config = training({ ...monotonic, learning: { warmup: 5, peak: 1e-12, warmupInit: 0 } }, 2);
    const { result } = await trainingRun(config, { folder: warm, quiet: true });
    expect(Object.keys(result!.test!)).toContain('expected lagging');

    const [before, after] = [openTrained(plain), trainedMonotonic(warm)];
    for (const name of before.arena.names) {
      expectUnmoved(before.arena.value(name), after.arena.value(name), name);
    }
    const added = after.arena.names.filter((name) => !before.arena.has(name));
    expect(added.every((name) => name.includes('.encoder_attn.monotonic_'))).toBe(true);
    // Two projections with weights and biases, and a bias of the energies, in two layers.
    expect(added).toHaveLength(10);

    const translator = await Translator.open(warm);
    expect(translator.policy().name).toBe('monotonic');
    const lines = ['kana mi', ''];
    expect(await translator.lines(lines, translator.policy())).toHaveLength(2);
    await translator.close();
  }, 60_000);

  it('starts information where the attention of a Transformer looks', async () => {
    const folder = temporaryFolder();
    const [plain, warm] = [`${folder}/plain`, `${folder}/warm`];
    await trainingRun(training({ kind: 'translation' }, 4), { folder: plain, quiet: true });
    const keys = { attention: 'itst', warmStart: plain, learning: { warmup: 5, peak: 1e-12, warmupInit: 0 } };
    await trainingRun(training({ kind: 'monotonic', ...keys }, 2), { folder: warm, quiet: true });

    const [before, after] = [openTrained(plain), trainedMonotonic(warm)];
    const projections = after.arena.names.filter((name) => /monotonic_[qk]_proj/.test(name));
    expect(projections).toHaveLength(8);
    for (const name of projections) {
      expectUnmoved(before.arena.value(name.replace('monotonic_', '')), after.arena.value(name), name);
    }
  }, 60_000);

  it('refuses a Transformer of other sizes', async () => {
    const folder = temporaryFolder();
    await trainingRun(training({ kind: 'translation' }, 2), { folder: `${folder}/plain`, quiet: true });
    const wider = { attention: 'milk', model: { ...tinyKeys.model, width: 32 }, warmStart: `${folder}/plain` };
    await expect(tinyProblem(wider)).rejects.toThrow(/the checkpoint holds \[\d+, 16\], the model needs \[\d+, 32\]/);
  }, 60_000);

  it('is later and better the less latency costs', async () => {
    const folder = temporaryFolder();
    const AL: number[] = [];
    const losses: number[] = [];
    for (const latencyWeight of [0.01, 1]) {
      const config = training(
        {
          kind: 'monotonic',
          attention: 'mma-il',
          latencyWeight,
          data: { from: 'toy', pairs: 1000 },
          model: { preset: 'tiny' },
          batch: { tokens: 512 },
          learning: { peak: 3e-3, warmup: 50 },
        },
        50,
      );
      const run = `${folder}/${latencyWeight}`;
      const { result } = await trainingRun(config, { folder: run, quiet: true });
      losses.push(result!.test!.loss);
      const [scores] = await evaluateTranslation(run, { beam: 1 });
      expect(scores.policy).toBe('monotonic');
      AL.push(scores.latency.stacl!.AL);
    }
    expect(AL[0]).toBeGreaterThan(AL[1] + 2);
    expect(losses[0]).toBeLessThan(losses[1] - 0.2);
  }, 180_000);
});

describe.each(['mma-il', 'itst', 'hmt'] as const)('weights of the latency as tasks, %s', (attention) => {
  const threshold = { after: 0, decay: 2 };
  const model = { ...tinyKeys.model, dropout: 0, encoderLayers: 1, decoderLayers: 1 };
  const still = { model, attention, threshold };
  const several = { ...still, latencyWeights: [0, 0.1, 0.5], main: 0.1 };
  const on = (batch: Parameters<MonotonicProblem['train']>[0], task: number) => ({
    tasks: new Int32Array(pairCount(batch)).fill(task),
    weights: new Float32Array(pairCount(batch)).fill(1),
  });

  it('train what the weight alone would, bit for bit', async () => {
    const [many, one, listed] = [
      await tinyProblem(several),
      await tinyProblem({ ...still, latencyWeight: 0.5 }),
      await tinyProblem({ ...still, latencyWeights: [0.5], main: 0.5 }),
    ];
    expect(many.tasks.map(({ name }) => name)).toEqual(['latency-0', 'latency-0.1', 'latency-0.5']);
    expect([many.main, one.main, listed.main]).toEqual([1, 0, 0]);
    for (let update = 0; update < 2; update++) {
      const batch = many.nextBatch();
      const loss = await many.train(batch, on(batch, 2));
      expect(await one.train(one.nextBatch(), on(batch, 0))).toBe(loss);
      expect(await listed.train(listed.nextBatch(), on(batch, 0))).toBe(loss);
    }
    expect(await listed.validate()).toBe(await one.validate());
    // The main task of the first costs less.
    expect(await many.validate()).toBeGreaterThan(await one.validate());
    for (const problem of [many, one, listed]) await problem.close();
  }, 30_000);

  it('have gradients and losses that are linear in the weight', async () => {
    const problem = await tinyProblem(several);
    const batch = problem.nextBatch();
    const gradients = [0, 1, 2].map(() => new Float32Array(problem.gradients.size));
    for (const task of [0, 1, 2]) await problem.gradients.ofTask(batch, task, gradients[task]);
    const [none, some, much] = gradients;
    const largest = much.reduce((most, value, i) => Math.max(most, Math.abs(value - none[i])), 0);
    expect(largest).toBeGreaterThan(0);
    // Differences of f32: the last digits are those of the whole gradient.
    const precision = none.reduce((most, value) => Math.max(most, Math.abs(value)), 0) * 1e-5;
    none.forEach((base, i) => {
      expect(Math.abs(much[i] - base - 5 * (some[i] - base))).toBeLessThan(largest * 2e-3 + precision);
    });
    // Half of the weight 0 and half of 0.5 is the weight 0.25; only λ = 0.1 is known of the losses.
    const K = 3;
    const blend = Float32Array.from({ length: pairCount(batch) * K }, (_, at) => (at % K === 1 ? 0 : 0.5));
    const copy = await tinyProblem({ ...still, latencyWeight: 0.25 });
    const expected = await copy.train(copy.nextBatch(), on(batch, 0));
    expect(await problem.trainBlend(batch, blend)).toBeCloseTo(expected, 5);
    await copy.close();
    await problem.close();
  }, 30_000);
});

describe('a scheduler over latency weights', () => {
  it.each([
    ['mma-il', 'mtl'],
    ['itst', 'influence'],
    ['hmt', 'learned'],
  ] as const)(
    'of %s under %s goes on bit for bit where it was stopped',
    async (attention, strategy) => {
      const keys = {
        ...{ kind: 'monotonic', attention, latencyWeights: [0, 0.2, 1], main: 0.2, threshold: { after: 2, decay: 3 } },
        ...(strategy === 'influence' && { validation: { reward: 0.5 } }),
      };
      const config = training(
        { ...keys, model: { ...tinyKeys.model, encoderLayers: 1, decoderLayers: 1 } },
        3,
        strategy,
      );
      const folder = temporaryFolder();
      const [whole, stopped] = ['whole', 'stopped'].map((name) => join(folder, name));
      await trainingRun(config, { folder: whole, quiet: true });
      // In the middle of the second episode.
      await trainingRun(config, { folder: stopped, quiet: true, until: 4 });
      expect(latestCheckpoint(checkpointFolder(stopped), () => {})?.step).toBe(4);
      await trainingRun(config, { folder: stopped, quiet: true, resume: true });
      for (const name of ['best.safetensors', 'step-000000006.safetensors']) {
        const [expected, found] = [whole, stopped].map((run) => readFileSync(join(checkpointFolder(run), name)));
        expect(found.equals(expected), name).toBe(true);
      }
      const episodes = readFileSync(join(stopped, 'metrics.jsonl'), 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      const { distribution } = episodes.findLast((line) => line.distribution !== undefined);
      expect(Object.keys(distribution)).toEqual(['latency-0', 'latency-0.2', 'latency-1']);
    },
    30_000,
  );
});

describe('the configuration', () => {
  it('says which weight is the main task', async () => {
    await expect(tinyProblem({ latencyWeights: [0, 0.2] })).rejects.toThrow(/problem\.main: there is no task 0\.1/);
    await expect(tinyProblem({ latencyWeights: [0.2, 0.1] })).rejects.toThrow(/expected weights in ascending order/);
    await expect(tinyProblem({ main: 0.2 })).rejects.toThrow(/problem\.main: there are no latencyWeights/);
    const both = { latencyWeights: [0.1], latencyWeight: 0.1 };
    await expect(tinyProblem(both)).rejects.toThrow(/problem\.latencyWeight: latencyWeights lists all/);
    await expect(tinyProblem({ attention: 'hmt', varianceWeight: 1 })).rejects.toThrow(/hmt has no moving heads/);
  });

  it('has the latency weights of Ma et al. where it gives none', () => {
    const weights = (attention: string) =>
      latencyWeights(monotonicSchema.parse({ kind: 'monotonic', data: { from: 'toy' }, attention }));
    expect(weights('milk')).toEqual({ latencyWeight: 0.1, varianceWeight: 0 });
    expect(weights('mma-il')).toEqual({ latencyWeight: 0.1, varianceWeight: 0 });
    expect(weights('mma-h')).toEqual({ latencyWeight: 0, varianceWeight: 0.1 });
  });

  it('refuses an encoder that changes what was read', async () => {
    const model = { ...tinyKeys.model, encoder: 'bidirectional' };
    await expect(tinyProblem({ model })).rejects.toThrow(/problem\.model\.encoder.*expected "unidirectional"/);
  });
});
