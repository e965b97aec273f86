/** What the cases of translation share: a model with random parameters, and sentences of random words. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Arena, traceModel } from '../../dist/optim/index.js';
import { Random } from '../../dist/random.js';
import { lossInputs, lossModel, translationModel } from '../../dist/translate/index.js';

/** `</s>`; tokens of words come after the four special ones. */
const [END, FIRST] = [2, 4];

/** The model of the Multi30k results: 3+3 layers, d 256, ffn 512, one table of 5,978 entries. */
export const MULTI30K = { preset: 'small', encoderLayers: 3, decoderLayers: 3, ffn: 512 };
export const VOCABULARY = 5978;

/** @param {object} keys `problem.model` of a configuration */
export function randomModel(keys, vocabulary = VOCABULARY) {
  const complete = { encoder: 'unidirectional', maxPositions: 256, ...keys };
  const model = translationModel(complete, { source: vocabulary, target: vocabulary, shared: true });
  const { parameters } = traceModel(lossModel(model, { smoothing: 0 }), lossInputs);
  const arena = new Arena(parameters);
  const random = new Random('parameters');
  for (const { name, shape, initialize } of parameters) initialize(arena.value(name), shape, random.fork(name));
  return { model, arena };
}

/** Sentences of `mean` ± `deviation` tokens, each with its end. */
export function randomSentences(count, mean, deviation, vocabulary = VOCABULARY) {
  const random = new Random('sentences');
  return Array.from({ length: count }, () => {
    const length = Math.max(3, Math.round(mean + deviation * random.normal()));
    return [...Array.from({ length }, () => FIRST + random.int(vocabulary - FIRST)), END];
  });
}

const PAIRS = 5000;
export const TOOL = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/**
 * Prepares a corpus of random words in a folder, as many and as long as in Multi30k's batches. Every word occurs: the
 * vocabulary is as large as Multi30k's. The training pairs are the validation pairs, too.
 */
export function randomCorpus(folder) {
  const text = randomSentences(PAIRS, 13, 4).map((tokens) => tokens.slice(0, -1).map((token) => `w${token}`));
  for (let word = FIRST; word < VOCABULARY; word++) text[word % PAIRS].push(`w${word}`);
  const lines = text.map((words) => `${words.join(' ')}\n`).join('');
  const prefix = join(folder, 'text');
  for (const language of ['en', 'de']) writeFileSync(`${prefix}.${language}`, lines);
  const corpus = join(folder, 'corpus');
  const flags = ['--source', 'en', '--target', 'de', '--train', prefix, '--valid', prefix, '--out', corpus];
  const words = ['--tokenizer', 'none', '--shared-vocab'];
  const made = spawnSync(process.execPath, [TOOL, 'prepare', 'translate', ...flags, ...words]);
  if (made.status !== 0) throw new Error(`the corpus could not be prepared: ${made.stderr}`);
  return corpus;
}
