import { Arena, Inference, traceModel } from '../../src/optim/index.js';
import { Random } from '../../src/random.js';
import {
  i64,
  linear,
  logSoftmax,
  type Parameter,
  type Parameters,
  type Tensor,
  type Value,
} from '../../src/tensor/index.js';
import { evaluationMode, PRESETS, type TranslationModel } from '../../src/translate/model/config.js';
import { outputBias, outputWeight, translate } from '../../src/translate/model/transformer.js';

/** Vocabulary of the random models, special tokens included. */
export const VOCABULARY = 17;

export function tinyModel(changes: Partial<TranslationModel> = {}): TranslationModel {
  return {
    ...PRESETS.tiny,
    width: 16,
    ffn: 24,
    heads: 2,
    dropout: 0.1,
    // With one table for input and output, random models mostly repeat what they have written.
    sharedEmbeddings: 'none',
    maxPositions: 64,
    vocabulary: { source: VOCABULARY, target: VOCABULARY },
    ...changes,
  };
}

const sentences = {
  source: i64('S', 'B'),
  lengths: i64('B'),
  previous: i64('T', 'B'),
  limit: i64('B'),
};

/** Log-probabilities [T, B, V] of the whole model, as it is trained. */
const wholeModel =
  (model: TranslationModel) =>
  (p: Parameters, { source, lengths, previous, limit }: Record<keyof typeof sentences, Tensor>) => ({
    out: logSoftmax(
      linear(
        translate(p, evaluationMode(model), { ids: source, lengths }, previous, limit),
        outputWeight(p, model),
        outputBias(p, model),
      ),
    ),
  });

/** Random parameters, larger than training starts with, so that the model has opinions, above all about the source. */
export function randomArena(
  model: TranslationModel,
  seed: number,
  parameters: readonly Parameter[] = traceModel(wholeModel(model), sentences).parameters,
): Arena {
  const arena = new Arena(parameters);
  const random = new Random(seed);
  for (const name of arena.names) {
    const values = arena.value(name) as Float32Array;
    if (name.includes('layer_norm.weight')) values.fill(1);
    else random.fork(name).fillNormal(values, 0, deviation(name));
  }
  return arena;
}

function deviation(name: string): number {
  if (name.endsWith('bias')) return 0.1;
  return name.includes('embed_tokens') || name.includes('encoder_attn.') ? 1 : 0.3;
}

/** Log-probabilities [T][V] of one sentence under the whole model, not incremental. */
export async function wholeModelScores(
  model: TranslationModel,
  arena: Arena,
  source: readonly number[],
  previous: readonly number[],
  k: number,
): Promise<number[][]> {
  const inference = await Inference.create({ model: wholeModel(model), inputs: sentences, arena });
  const column = (ids: readonly number[]): Value => ({
    data: BigInt64Array.from(ids.map(BigInt)),
    shape: [ids.length, 1],
  });
  const one = (value: number): Value => ({ data: BigInt64Array.from([BigInt(value)]), shape: [1] });
  const { out } = await inference.run({
    source: column(source),
    lengths: one(source.length),
    previous: column(previous),
    limit: one(k - 1),
  });
  await inference.close();
  const size = model.vocabulary.target;
  return previous.map((_, t) => Array.from((out.data as Float32Array).subarray(t * size, (t + 1) * size)));
}
