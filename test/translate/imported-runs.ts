import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Arena, Inference, traceModel } from '../../src/optim/index.js';
import { i64, linear, type Parameters, type Tensor } from '../../src/tensor/index.js';
import { defaultFilters } from '../../src/translate/corpus/encode-split.js';
import { prepareTranslation } from '../../src/translate/corpus/prepare.js';
import type { ForeignModel } from '../../src/translate/exchange/foreign.js';
import { evaluationMode, type TranslationModel } from '../../src/translate/model/config.js';
import { lossInputs, lossModel, outputBias, outputWeight, translate } from '../../src/translate/model/transformer.js';
import type { Languages } from '../../src/translate/text/languages.js';

/** The checkpoints of test/vectors/make_checkpoints.py. */
export const vectors = fileURLToPath(new URL('../vectors/', import.meta.url));

/** Lines that the vocabularies of these checkpoints know. */
export const PAIRS = [
  ['the dog sees a cat', 'der hund sieht ein katze'],
  ['a man sees the dog', 'ein mann sieht der hund'],
  ['the cat sees the man', 'der katze sieht der mann'],
  ['a dog sees a dog', 'ein hund sieht ein hund'],
] as const;

/** Writes these pairs as text for training, validation and test; returns the prefix of the files. */
export function writePairs(folder: string): string {
  for (const [i, language] of ['en', 'de'].entries()) {
    writeFileSync(join(folder, `text.${language}`), PAIRS.map((pair) => `${pair[i]}\n`).join(''));
  }
  return join(folder, 'text');
}

/** A corpus of these pairs for the languages of an imported model. */
export async function corpusLike(languages: Languages, folder: string): Promise<string> {
  const text = writePairs(folder);
  const out = join(folder, 'corpus');
  await prepareTranslation({
    source: { config: languages.source.config },
    target: { config: languages.target.config },
    languages,
    ...{ train: text, valid: text, test: [text], out },
    learning: { joint: false, sharedVocabulary: false, filters: defaultFilters },
  });
  return out;
}

/** The parameters of a model that was read. */
export function arenaOf({ model, parameters }: Pick<ForeignModel, 'model' | 'parameters'>): Arena {
  const arena = new Arena(traceModel(lossModel(evaluationMode(model), { smoothing: 0 }), lossInputs).parameters);
  for (const [name, numbers] of parameters) arena.value(name).set(numbers as never);
  return arena;
}

/** Logits [T][V] of our program, for ids of ours. */
export async function logitsOf(
  model: TranslationModel,
  arena: Arena,
  source: readonly number[],
  previous: readonly number[],
): Promise<number[][]> {
  const inputs = { source: i64('S', 'B'), lengths: i64('B'), previous: i64('T', 'B') };
  const whole = (p: Parameters, x: Record<keyof typeof inputs, Tensor>) => {
    const states = translate(p, evaluationMode(model), { ids: x.source, lengths: x.lengths }, x.previous);
    return { out: linear(states, outputWeight(p, model), outputBias(p, model)) };
  };
  const inference = await Inference.create({ model: whole, inputs, arena });
  const column = (ids: readonly number[]) => ({ data: BigInt64Array.from(ids.map(BigInt)), shape: [ids.length, 1] });
  const lengths = { data: BigInt64Array.of(BigInt(source.length)), shape: [1] };
  const { out } = await inference.run({ source: column(source), lengths, previous: column(previous) });
  await inference.close();
  const size = model.vocabulary.target;
  return previous.map((_, t) => [...(out.data as Float32Array).subarray(t * size, (t + 1) * size)]);
}
