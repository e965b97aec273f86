/**
 * Greedy wait-9 translation of 256 sentences by length, 64 together, each as long as its source: with an incremental
 * encoder and decoder, or encoding again at every READ what has been read and decoding again what is written (Ma et al.
 * 2019).
 */
import { decodeInLockstep } from '../../dist/translate/decode/batch.js';
import { createStepModel } from '../../dist/translate/decode/translator.js';
import { waitK } from '../../dist/translate/index.js';
import { MULTI30K, randomModel, randomSentences } from './translation.mjs';

const [SENTENCES, TOGETHER] = [256, 64];

/**
 * @param {{ threads: number, again: boolean, length: number, deviation: number }} options
 *   `length` and `deviation` of the number of source tokens
 */
export async function setup({ threads, again, length, deviation }) {
  const { model, arena } = randomModel({ ...MULTI30K, encoder: again ? 'bidirectional' : 'unidirectional' });
  const steps = await createStepModel(model, arena, { beam: 1, redecodes: again, threads });
  const sources = randomSentences(SENTENCES, length, deviation);
  const options = { beam: 1, earlyEnd: 'block', batch: TOGETHER, maxLength: { ratio: 1, extra: 0 } };
  return {
    async step() {
      await decodeInLockstep(steps, sources, waitK(9), options);
    },
    close: () => steps.close(),
  };
}
