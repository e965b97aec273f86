/**
 * Greedy wait-9 translation of 256 sentences by length, 64 together, each as long as its source: with an incremental
 * encoder and decoder, or encoding again at every READ what has been read and decoding again what is written (Ma et al.
 * 2019). As in `tcts evaluate --threads N`, each thread translates its own sentences.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Translator } from '../../dist/translate/index.js';
import { MULTI30K, randomCorpus, randomSentences, TOOL } from './translation.mjs';

const SENTENCES = 256;

/**
 * @param {{ workers: number, again: boolean, length: number, deviation: number }} options
 *   `length` and `deviation` of the number of source tokens
 */
export async function setup({ workers, again, length, deviation }) {
  const folder = mkdtempSync(join(tmpdir(), 'tcts-bench-'));
  const translator = await Translator.open(briefRun(folder, again), { beam: 1, checkpoint: 'latest', workers });
  const sources = randomSentences(SENTENCES, length, deviation);
  const options = { beam: 1, earlyEnd: 'block', maxLength: { ratio: 1, extra: 0 } };
  const policy = translator.policy('wait-k:9');
  return {
    async step() {
      await translator.translate(sources, policy, options);
    },
    async close() {
      await translator.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** A run of one update: how good the model is does not matter here. */
function briefRun(folder, again) {
  const file = join(folder, 'run.yaml');
  const config = {
    name: 'brief',
    out: folder,
    problem: {
      kind: 'translation',
      data: { from: 'corpus', folder: randomCorpus(folder) },
      ...(again ? { waits: 'full' } : { waits: 9, main: 9 }),
      model: { ...MULTI30K, encoder: again ? 'bidirectional' : 'unidirectional' },
    },
    strategy: { name: 'fixed' },
    training: { episodes: 1, steps: 1 },
  };
  writeFileSync(file, JSON.stringify(config));
  const made = spawnSync(process.execPath, [TOOL, 'train', file, '--quiet'], { encoding: 'utf8' });
  if (made.status !== 0) throw new Error(`the run could not be made: ${made.stderr}`);
  return join(folder, 'brief');
}
