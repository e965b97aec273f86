/** An update of wait-3: 3+3 layers, d 256, ffn 512, 146 pairs of 13 and 14 tokens (2,044 targets), dropout 0.3, Adam. */
import { Training } from '../../dist/optim/index.js';
import { Random } from '../../dist/random.js';
import { lossFeeds, lossInputs, lossModel } from '../../dist/translate/index.js';
import { MULTI30K, randomModel, VOCABULARY } from './translation.mjs';

const [PAIRS, SOURCE, TARGET, WAIT] = [146, 13, 14, 3];

/** @param {{ workers: number, threads: number }} options */
export async function setup({ workers, threads }) {
  const { model } = randomModel(MULTI30K);
  const training = await Training.create({
    model: lossModel(model, { smoothing: 0.1 }),
    inputs: lossInputs,
    random: new Random('bench'),
    optimizer: { name: 'adam', betas: [0.9, 0.98] },
    workers,
    threads,
  });
  const random = new Random('tokens');
  const ids = (length) => Int32Array.from({ length: length * PAIRS }, () => 4 + random.int(VOCABULARY - 4));
  const batch = {
    source: ids(SOURCE),
    target: ids(TARGET),
    sourceLengths: new Int32Array(PAIRS).fill(SOURCE),
    targetLengths: new Int32Array(PAIRS).fill(TARGET),
    size: PAIRS,
    sourceLength: SOURCE,
    targetLength: TARGET,
  };
  const weights = new Float32Array(PAIRS).fill(1 / (PAIRS * TARGET));
  const feeds = lossFeeds(batch, new Int32Array(PAIRS).fill(WAIT), weights);
  return {
    step: async () => (await training.step(feeds, 1e-4)).loss,
    close: () => training.close(),
  };
}
