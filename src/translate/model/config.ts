import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { InputError } from '../../errors.js';
import { readJsonFile } from '../../files.js';
import { section } from '../../run/index.js';
import type { Parameters } from '../../tensor/index.js';

/** Names of the activations. */
export const ACTIVATION_NAMES = ['relu', 'gelu', 'swish'] as const;
/** Function between the two feed-forward layers. */
export type Activation = (typeof ACTIVATION_NAMES)[number];

/** Layers that can have an adapter, by the names of a configuration. */
const ADAPTED = { q: 'q_proj', k: 'k_proj', v: 'v_proj', out: 'out_proj', fc1: 'fc1', fc2: 'fc2' } as const;

/** Low-rank adapters (Hu et al. 2022): each matrix W that has one is W + α/r·B·A. */
export interface ModelAdapters {
  readonly rank: number;
  readonly alpha: number;
  readonly on: readonly (keyof typeof ADAPTED)[];
}

/** `adapters` of a model in a configuration. */
export const adaptersSchema = z.strictObject({
  rank: z.int().min(1).default(8).describe('r, rows of A and columns of B.'),
  alpha: z.number().positive().default(16).describe('α: what the adapter computes counts α/r times.'),
  on: z
    .array(z.enum(Object.keys(ADAPTED) as [keyof typeof ADAPTED, ...(keyof typeof ADAPTED)[]]))
    .min(1)
    .default(['q', 'v'])
    .describe('Queries, keys, values and outputs of every attention, fc1 and fc2 of the feed-forward layers.'),
});

/** The parameters of a model with the adapters that it has. */
export function adapted(p: Parameters, { adapters }: TranslationModelConfig): Parameters {
  return adapters ? p.adapted({ ...adapters, layers: adapters.on.map((name) => ADAPTED[name]) }) : p;
}

/** Adapters modify an existing model: the run it starts from must be named. */
export function requireStart({
  model,
  warmStart,
}: {
  readonly model: Pick<TranslationModelConfig, 'adapters'>;
  readonly warmStart: string | null;
}): void {
  if (model.adapters === undefined || warmStart !== null) return;
  throw new InputError('adapters modify an existing model, expected problem.warmStart to name its run', {
    key: 'problem.model.adapters',
  });
}

/** Whether this parameter belongs to an adapter. */
export function isAdapter(name: string): boolean {
  return /\.lora_[AB]\.weight$/.test(name);
}

/** The sizes of a Transformer for translation. */
export interface TranslationModelConfig {
  readonly encoderLayers: number;
  readonly decoderLayers: number;
  /** d, of every state and embedding. */
  readonly width: number;
  /** Width of the feed-forward layers. */
  readonly ffn: number;
  /** Attention heads. */
  readonly heads: number;
  /** On embeddings and on the output of each block. */
  readonly dropout: number;
  /** On the attention probabilities. */
  readonly attentionDropout: number;
  /** Dropout on the hidden units of the feed-forward layers. */
  readonly activationDropout: number;
  /** Normalise after the sum of each block (Vaswani et al. 2017) or before the block (Xiong et al. 2020). Default post. */
  readonly norm?: 'post' | 'pre';
  /** Between the two feed-forward layers. Default relu. */
  readonly activation?: Activation;
  /** Sinusoidal positions in fairseq's or Marian's form. Default fairseq. */
  readonly positions?: 'fairseq' | 'marian';
  /** Whether embeddings are multiplied by √d. Default true. */
  readonly scaleEmbeddings?: boolean;
  /** Whether a bias is added to the logits. Default false. */
  readonly outputBias?: boolean;
  /** The decoder's start token. Default eos. */
  readonly start?: 'eos' | 'pad';
  /** Low-rank adapters; only they are trained. Default none: everything is trained. */
  readonly adapters?: ModelAdapters;
  /** Which tables are shared: none, target embedding and output projection, or these and the source embedding. */
  readonly sharedEmbeddings: 'none' | 'decoder' | 'all';
  /**
   * `unidirectional`: a source token sees the tokens before it, so reading one more encodes one more (appendix B).
   * `bidirectional`: every token sees all that have been read, so reading one more encodes all of them again
   * (Ma et al. 2019).
   */
  readonly encoder: 'unidirectional' | 'bidirectional';
  /** Longest sentence, including its end, on either side. */
  readonly maxPositions: number;
}

/** A configuration with the sizes of its vocabularies, which determine the shapes of the parameters. */
export interface TranslationModel extends TranslationModelConfig {
  readonly vocabulary: { readonly source: number; readonly target: number };
}

const COMMON = {
  attentionDropout: 0,
  activationDropout: 0,
  encoder: 'unidirectional',
  maxPositions: 1024,
} as const;

const SIX = { encoderLayers: 6, decoderLayers: 6, dropout: 0.3, ...COMMON } as const;

/** Name of a model size. */
export type Preset = 'tiny' | 'small' | 'iwslt' | 'big';

/** `small`, `iwslt` and `big` are the paper's models for IWSLT En→De, for En→Vi and En→Zh, and for WMT (section 3.3). */
export const PRESETS: Readonly<Record<Preset, TranslationModelConfig>> = {
  tiny: {
    ...SIX,
    encoderLayers: 2,
    decoderLayers: 2,
    width: 64,
    ffn: 128,
    heads: 4,
    dropout: 0.1,
    sharedEmbeddings: 'decoder',
  },
  small: { ...SIX, width: 256, ffn: 1024, heads: 4, sharedEmbeddings: 'all' },
  iwslt: { ...SIX, width: 512, ffn: 1024, heads: 4, sharedEmbeddings: 'none' },
  big: { ...SIX, width: 1024, ffn: 4096, heads: 16, sharedEmbeddings: 'all' },
};

const rate = z.number().min(0).lt(1);
const size = z.int().min(1);
const ofPreset = 'Default: from the preset.';

const modelKeys = section({
  preset: z
    .enum(['tiny', 'small', 'iwslt', 'big', 'auto'])
    .default('small')
    .describe(
      'Default values of the keys below: tiny is 2+2 layers, d 64; small 6+6, 256/1024; iwslt 512/1024; ' +
        'big 1024/4096; auto: chosen from the corpus and training.budget.',
    ),
  encoderLayers: size.optional().describe(`Layers of the encoder. ${ofPreset}`),
  decoderLayers: size.optional().describe(`Layers of the decoder. ${ofPreset}`),
  width: z.int().min(4).multipleOf(2).optional().describe(`d, width of all states. ${ofPreset}`),
  ffn: size.optional().describe(`Width of the feed-forward layers. ${ofPreset}`),
  heads: size.optional().describe(`Attention heads. ${ofPreset}`),
  dropout: rate.optional().describe(`Dropout on embeddings and residual branches. ${ofPreset}`),
  attentionDropout: rate.optional().describe(`Dropout on attention probabilities. ${ofPreset}`),
  activationDropout: rate.optional().describe(`Dropout on the hidden units of the feed-forward layers. ${ofPreset}`),
  sharedEmbeddings: z
    .enum(['none', 'decoder', 'all'])
    .optional()
    .describe(`Which tables are shared: none, target embedding and output, or also the source embedding. ${ofPreset}`),
  norm: z
    .enum(['post', 'pre'])
    .optional()
    .describe('Layer norm after each block, or before it, which trains more stably. Default: post.'),
  activation: z
    .enum(ACTIVATION_NAMES)
    .optional()
    .describe('Activation between the two feed-forward layers; swish is x·sigmoid(x). Default: relu.'),
  positions: z
    .enum(['fairseq', 'marian'])
    .optional()
    .describe(
      "Sinusoidal positions: fairseq's start at 2, Marian's at 0 with different wavelengths. Default: fairseq.",
    ),
  scaleEmbeddings: z.boolean().optional().describe('Multiply embeddings by √d. Default: true.'),
  outputBias: z.boolean().optional().describe('Add a bias to the logits, as Marian does. Default: false.'),
  start: z
    .enum(['eos', 'pad'])
    .optional()
    .describe("The decoder's start token: </s>, or padding as in Marian. Default: eos."),
  adapters: adaptersSchema
    .optional()
    .describe(
      'Train only low-rank adapters on top of warmStart: W + α/r·B·A on queries (q), keys, values and outputs ' +
        '(k, v, out) of every attention, or on the feed-forward layers (fc1, fc2). Default: train everything.',
    )
    .meta({ examples: [{ rank: 8, alpha: 16, on: ['q', 'v'] }] }),
  encoder: z
    .enum(['unidirectional', 'bidirectional'])
    .default('unidirectional')
    .describe('Encode each source token once, or all of them again whenever another one is read (Ma et al. 2019).'),
  // It takes a table of width × maxPositions numbers, and attention is quadratic in it.
  maxPositions: z
    .int()
    .min(2)
    .max(16384)
    .default(1024)
    .describe('Maximum sentence length in tokens, including its end.'),
});

/** The `model` of a configuration: a map, or `auto`, which is short for `{preset: auto}`. */
export const modelSchema = z
  .preprocess((value) => (value === 'auto' ? { preset: 'auto' } : value), modelKeys)
  .prefault({})
  .describe('The Transformer; auto is short for {preset: auto}.')
  .meta({ shorthand: 'auto' });

/** The checked `model` of a configuration. */
export type ModelKeys = z.output<typeof modelSchema>;

/** A size that is not `auto`, or no longer is. */
export function requireChosen<T>(value: T, key: string): Exclude<T, 'auto'> {
  if (value !== 'auto') return value as Exclude<T, 'auto'>;
  const sentence = 'found "auto", which only tcts train and tcts init replace by a size; expected the size';
  throw new InputError(sentence, { key: `problem.${key}` });
}

/** The preset, overridden by the given keys, for vocabularies of these sizes. */
export function translationModel(
  { preset, ...keys }: ModelKeys,
  vocabulary: { readonly source: number; readonly target: number; readonly shared: boolean },
): TranslationModel {
  const given = Object.fromEntries(Object.entries(keys).filter(([, value]) => value !== undefined));
  const { source, target } = vocabulary;
  const base = PRESETS[requireChosen(preset, 'model.preset')];
  const model: TranslationModel = { ...base, ...given, vocabulary: { source, target } };
  if (model.width % model.heads !== 0) {
    throw new InputError(`the width ${model.width} is not divisible by ${model.heads} heads, expected a divisor`, {
      key: 'problem.model.heads',
    });
  }
  if (model.sharedEmbeddings === 'all' && !vocabulary.shared) {
    throw new InputError(
      'one table for all embeddings needs one vocabulary for both languages: prepare the corpus with --joint or ' +
        '--shared-vocab, or choose "decoder" or "none"',
      { key: 'problem.model.sharedEmbeddings' },
    );
  }
  return model;
}

/** The same model without dropout. */
export function evaluationMode(model: TranslationModel): TranslationModel {
  return { ...model, dropout: 0, attentionDropout: 0, activationDropout: 0 };
}

/** The file of a run folder that describes its model. */
export function modelFile(run: string): string {
  return join(run, 'model.json');
}

const summarySchema = z.looseObject({
  main: z.number().optional(),
  waits: z.union([z.number(), z.literal('full')]).optional(),
  model: z
    .looseObject({
      attention: z.string().optional(),
      vocabulary: z.object({ source: z.number(), target: z.number() }).optional(),
    })
    .default({}),
});

/** What reports and the page read about a model without opening it. */
export type ModelSummary = z.output<typeof summarySchema>;

/** The summary of a run's model; undefined if it has none. */
export function readModelSummary(run: string): ModelSummary | undefined {
  const file = modelFile(run);
  return existsSync(file) ? readJsonFile(file, summarySchema) : undefined;
}
