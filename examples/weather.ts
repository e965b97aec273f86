/**
 * A problem of one's own: how much warmer will it be in six hours? That horizon is the main task, shorter and longer
 * ones are its siblings, and a GRU that reads the last day of a weather station has an output for each of them.
 * docs/your-own-problem.md walks through this file; `tcts train examples/weather.yaml` trains it.
 */
import { Random, type RandomState } from 'tcts';
import { mean } from 'tcts/metrics';
import { gru, linear } from 'tcts/nn';
import { Gradients, Inference, Training } from 'tcts/optim';
import * as schedule from 'tcts/schedule';
import { f32, mul, type Parameters, square, sub, sum, type Tensor } from 'tcts/tensor';
import { HOUR, readWeather, type Samples, samplesAt, type Weather, WINDOW } from './weather-data.js';

/** The horizons; a task each. */
export const HOURS = [1, 3, 6, 12, 24];
const K = HOURS.length;
const MAIN = HOURS.indexOf(6);

const { z } = schedule;

/** The keys of `problem` in a configuration. */
const schema = z.strictObject({
  kind: z.literal('weather').describe('How much warmer will it be in six hours?'),
  data: z.string().min(1).describe('weather.csv of the long-horizon benchmarks.'),
  batch: z.int().min(1).default(128).describe('B: windows of an update.'),
  learningRate: z.number().positive().default(1e-3).describe('Of Adam.'),
});

/** What the command line needs to know: the keys, and how to make the problem. */
export default schedule.problemKind({
  schema,
  create: (config, { random }) => weatherProblem(readWeather(config.data, HOURS), random, config),
});

/** The forecasts of all tasks; x is [T, B, D]. */
function forecast(p: Parameters, { x }: { x: Tensor }) {
  const { last } = gru(p.under('gru'), x, { hidden: 32, layers: 1 }); // [B, 32]
  return { forecast: linear(p.under('heads'), last[0], K) }; // [B, K]
}

/** Σᵢ Σ_T w_{iT} (ŷ_{iT} − y_{iT})²: whether a sample has one task or a blend of them is a matter of the weights. */
function weightedLoss(p: Parameters, { x, labels, weights }: Record<'x' | 'labels' | 'weights', Tensor>) {
  return { loss: sum(mul(weights, square(sub(forecast(p, { x }).forecast, labels)))) };
}

export async function weatherProblem(
  data: Weather,
  random: Random,
  { batch: size = 128, learningRate = 1e-3 } = {},
): Promise<schedule.Problem<Samples>> {
  const { splits, scales } = data;
  const D = data.rows[0].length;
  const x = f32(WINDOW, 'B', D);
  const inputs = { x, labels: f32('B', K), weights: f32('B', K) };
  const training = await Training.create({ model: weightedLoss, inputs, random, optimizer: { name: 'adam' } });
  const inference = await Inference.create({ model: forecast, inputs: { x }, arena: training.arena });
  const gradients = await Gradients.create({ model: weightedLoss, inputs, arena: training.arena });
  const test = samplesAt(data, splits.test);
  // The first days of the validation part teach `influence` and `aligned`; what chooses the model stays unseen by them.
  const border = Math.floor(splits.validation.length / 4);
  const reward = samplesAt(data, splits.validation.subarray(0, border - HOURS[K - 1] * HOUR));
  const validation = samplesAt(data, splits.validation.subarray(border));
  let sampling = random.fork('sampling');

  const feeds = ({ x, labels, size }: Samples, weights: Float32Array) => ({
    x,
    labels,
    weights: { data: weights, shape: [size, K] },
  });
  const update = async (batch: Samples, weights: Float32Array) =>
    (await training.step(feeds(batch, weights), learningRate)).loss;
  const forecasts = async (batch: Samples) => (await inference.run({ x: batch.x })).forecast.data as Float32Array;
  const mainLosses = async (batch: Samples) => {
    const [y, labels] = [await forecasts(batch), batch.labels.data];
    return Float32Array.from({ length: batch.size }, (_, i) => (y[i * K + MAIN] - labels[i * K + MAIN]) ** 2);
  };
  const writeGradient = async (batch: Samples, task: number, out: Float32Array) => {
    const weights = Float32Array.from({ length: batch.size * K }, (_, i) => (i % K === task ? 1 / batch.size : 0));
    await gradients.write(feeds(batch, weights), out);
  };

  return {
    tasks: HOURS.map((hours) => ({ name: `hour-${hours}`, number: hours })),
    main: MAIN,
    curriculum: { easiest: 'first', until: 'main' },
    features: [
      { name: 'progress', width: 1 },
      { name: 'weather', width: D },
      { name: 'labels', width: K, outcome: true },
      { name: 'forecasts', width: K, costly: true },
    ],
    nextBatch() {
      const ends = Int32Array.from({ length: size }, () => splits.train[sampling.int(splits.train.length)]);
      return samplesAt(data, ends);
    },
    sizeOf: ({ size }) => size,
    async writeFeatures(batch, status, groups, out) {
      const y = groups.includes('forecasts') ? await forecasts(batch) : undefined;
      const now = batch.x.data.subarray(-batch.size * D); // the last step of the windows, [B, D]
      const columns: Record<string, (i: number) => ArrayLike<number>> = {
        progress: () => [status.update / status.updates],
        weather: (i) => now.subarray(i * D, (i + 1) * D),
        labels: (i) => batch.labels.data.subarray(i * K, (i + 1) * K),
        forecasts: (i) => y!.subarray(i * K, (i + 1) * K),
      };
      let at = 0;
      for (let i = 0; i < batch.size; i++) {
        for (const group of groups) {
          const values = columns[group](i);
          out.set(values, at);
          at += values.length;
        }
      }
    },
    train(batch, { tasks, weights }) {
      const total = weights.reduce((sum, weight) => sum + weight, 0);
      const chosen = new Float32Array(batch.size * K);
      for (let i = 0; i < batch.size; i++) chosen[i * K + tasks[i]] = weights[i] / total;
      return update(batch, chosen);
    },
    validate: async () => -mean(await mainLosses(validation)),
    async test() {
      const mse = mean(await mainLosses(test));
      const unchanged = mean(test.labels.data.filter((_, i) => i % K === MAIN).map((change) => change ** 2));
      // In °C², and the share of the error of "as warm as now" that the forecast does not make.
      return { mse: scales[MAIN] ** 2 * mse, skill: 1 - mse / unchanged };
    },
    capture: () =>
      schedule.joinSnapshots({
        training: schedule.captureTraining(training),
        sampling: schedule.stateOnly(sampling.state()),
      }),
    restore(snapshot) {
      schedule.restoreTraining(training, schedule.partOf(snapshot, 'training'));
      sampling = Random.restore(schedule.partOf(snapshot, 'sampling').state as RandomState);
    },
    async close() {
      await Promise.all([training.close(), inference.close(), gradients.close()]);
    },

    // The abilities that only some strategies ask for.
    trainBlend(batch, weights) {
      const shares = weights.map((weight) => weight / batch.size);
      return update(batch, shares);
    },
    mainLosses,
    validationBatches: () => [validation],
    gradients: {
      size: training.arena.length,
      ofTask: writeGradient,
      ofValidation: (out) => writeGradient(reward, MAIN, out),
    },
    influence: schedule.trainingInfluence<Samples>({
      training,
      shared: (name) => !name.startsWith('heads.'), // an output of its own would speak for its own task
      pieces: 1,
      gradient: (_, out) => writeGradient(reward, MAIN, out),
      sample: ({ size }, samples) => schedule.spacedPlaces(size, samples),
      async losses(batch, places) {
        const [y, labels] = [await forecasts(batch), batch.labels.data];
        return Float32Array.from({ length: places.length * K }, (_, at) => {
          const i = places[Math.floor(at / K)] * K + (at % K);
          return (y[i] - labels[i]) ** 2;
        });
      },
    }),
  };
}
