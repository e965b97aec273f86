import { InputError } from '../errors.js';
import type { Sizing, SizingChoice, SizingLimits } from '../schedule/problem-kind.js';
import type { TranslationConfig } from './config.js';
import { type ModelKeys, PRESETS, type Preset } from './model/config.js';
import { openData } from './training.js';

/** Properties of a corpus that determine the sizes. */
export interface CorpusSize {
  readonly pairs: number;
  /** Tokens of the training pairs, including sentence ends. */
  readonly source: number;
  readonly target: number;
  /** Tokens of the longest target sentence, including its end. */
  readonly longest: number;
  readonly vocabulary: { readonly source: number; readonly target: number; readonly shared: boolean };
}

/** A size of model with what goes with it. */
export interface ModelSize {
  readonly model: Pick<ModelKeys, 'encoderLayers' | 'decoderLayers' | 'width' | 'ffn'> & { readonly preset: Preset };
  /** Target tokens of a batch. */
  readonly tokens: number;
  /** η₁. */
  readonly peak: number;
  /** Target tokens that the corpus must have so that the model does not memorise it. */
  readonly corpus: number;
  /** Target tokens that a training must see for the model to be better than the one before it. */
  readonly seen: number;
}

/** Rules of thumb, from the runs of docs/results and the settings of the paper; docs/translation.md has them as a table. */
export const RUNGS: readonly ModelSize[] = [
  { model: { preset: 'tiny' }, tokens: 1024, peak: 5e-3, corpus: 0, seen: 0 },
  { model: { preset: 'tiny', width: 128, ffn: 256 }, tokens: 1024, peak: 2e-3, corpus: 1e5, seen: 6e5 },
  {
    model: { preset: 'small', encoderLayers: 3, decoderLayers: 3, ffn: 512 },
    tokens: 2048,
    peak: 1e-3,
    corpus: 2e5,
    seen: 2e6,
  },
  { model: { preset: 'small' }, tokens: 4096, peak: 5e-4, corpus: 2e6, seen: 1e7 },
  { model: { preset: 'iwslt' }, tokens: 4096, peak: 5e-4, corpus: 1e7, seen: 4e7 },
  { model: { preset: 'big' }, tokens: 8192, peak: 5e-4, corpus: 5e7, seen: 4e8 },
];

/**
 * Multiply-adds of an update for each target token: three times those of the forward pass. A layer has 4 d² for its own
 * attention and 2 d·ffn; the decoder's 2 d² more for queries and output of its cross-attention, and 2 d² for each source
 * token. Scores of attention are left out.
 */
export function productsPerToken(
  { model }: Pick<ModelSize, 'model'>,
  { source, target, vocabulary }: CorpusSize,
): number {
  const { encoderLayers, decoderLayers, width: d, ffn } = { ...PRESETS[model.preset], ...given(model) };
  const block = 4 * d * d + 2 * d * ffn;
  const ratio = source / target;
  const encoder = ratio * encoderLayers * block;
  const decoder = decoderLayers * (block + 2 * d * d + ratio * 2 * d * d);
  return 3 * (encoder + decoder + d * vocabulary.target);
}

/** The largest model that suits the corpus and, if there is a budget, sees enough of it in time. */
export function chooseRung(corpus: CorpusSize, time?: { readonly budget: number; readonly speed: number }): ModelSize {
  const fits = (rung: ModelSize): boolean =>
    corpus.target >= rung.corpus &&
    (time === undefined || rung.seen * productsPerToken(rung, corpus) <= time.budget * time.speed);
  return RUNGS.findLast(fits) ?? RUNGS[0];
}

/** The rung's batch, halved until an epoch has 20 batches; room for the longest sentence, and for 256 tokens. */
export function batchTokens({ tokens }: Pick<ModelSize, 'tokens'>, { target, longest }: CorpusSize): number {
  let size = tokens;
  while (size > 256 && target / size < 20) size /= 2;
  return Math.max(size, longest);
}

/** A fifth of the updates, from 1 to 4,000. */
export function warmupFor(updates: number): number {
  return Math.min(4000, Math.max(1, Math.round(updates / 5)));
}

/** More passes over a corpus mostly lead to memorisation. */
const MOST_EPOCHS = 40;

export const translationSizing: Sizing = {
  choose: (config, limits) => choose(config as TranslationConfig, limits),
  complete: (config, updates) => {
    const problem = config as TranslationConfig;
    if (problem.learning.warmup !== 'auto') return problem;
    return { ...problem, learning: { ...problem.learning, warmup: warmupFor(updates) } };
  },
};

async function choose(config: TranslationConfig, limits: SizingLimits): Promise<SizingChoice> {
  const { model, batch, learning, warmStart } = config;
  if (model.preset === 'auto' && warmStart !== null) {
    throw new InputError('a warm start needs the sizes of the run it starts from, expected its preset', {
      key: 'problem.model.preset',
    });
  }
  const corpus = await corpusSize(config);
  const tokensOf = (rung: ModelSize): number => (batch.tokens === 'auto' ? batchTokens(rung, corpus) : batch.tokens);
  const sized = (rung: ModelSize): TranslationConfig => ({
    ...config,
    model: modelOf(rung, model, corpus),
    batch: { ...batch, tokens: tokensOf(rung) },
    learning: { ...learning, peak: learning.peak === 'auto' ? rung.peak : learning.peak },
  });
  const rung = model.preset === 'auto' ? await rungWithin(corpus, limits, sized) : rungOf(model.preset);
  const problem = sized(rung);
  const tokens = tokensOf(rung);
  const updatesPerEpoch = corpus.target / (tokens * batch.accumulate);
  const { encoderLayers, decoderLayers, width, ffn } = { ...PRESETS[rung.model.preset], ...given(problem.model) };
  const [source, target] = [corpus.vocabulary.source, corpus.vocabulary.target].map(grouped);
  const accumulated = batch.accumulate === 1 ? '' : ` × ${batch.accumulate}`;
  return {
    problem,
    updatesPerEpoch,
    mostUpdates: Math.ceil(MOST_EPOCHS * updatesPerEpoch),
    lines: [
      `corpus: ${grouped(corpus.pairs)} pairs, ${grouped(corpus.target)} target tokens, vocabulary ${corpus.vocabulary.shared ? target : `${source} + ${target}`}`,
      `model: ${encoderLayers}+${decoderLayers} layers, width ${width}, feed-forward ${ffn}${model.preset === 'auto' ? ' (auto)' : ''}`,
      `batch: ${grouped(tokens)} tokens${accumulated}; learning rate up to ${problem.learning.peak}`,
    ],
  };
}

/** The keys that the user gives, over those of the rung; one table for all embeddings only if there is one vocabulary. */
function modelOf(rung: ModelSize, keys: ModelKeys, { vocabulary }: CorpusSize): ModelKeys {
  const model: ModelKeys = { ...keys, ...rung.model, ...given(keys), preset: rung.model.preset };
  const apart = !vocabulary.shared && PRESETS[rung.model.preset].sharedEmbeddings === 'all';
  return keys.preset === 'auto' && apart && keys.sharedEmbeddings === undefined
    ? { ...model, sharedEmbeddings: 'decoder' }
    : model;
}

function grouped(count: number): string {
  return Math.round(count).toLocaleString('en');
}

/** If the corpus alone leaves a choice, an update of the third rung measures the machine's speed. */
async function rungWithin(
  corpus: CorpusSize,
  { budget, secondsOf }: SizingLimits,
  sized: (rung: ModelSize) => TranslationConfig,
): Promise<ModelSize> {
  const largest = chooseRung(corpus);
  if (budget === undefined || largest === RUNGS[0]) return largest;
  const measured = RUNGS[Math.min(RUNGS.indexOf(largest), 2)];
  const problem = sized(measured);
  const tokens = Math.max(Math.min(1024, batchTokens(measured, corpus)), corpus.longest);
  const seconds = await secondsOf({ ...problem, batch: { ...problem.batch, tokens, accumulate: 1 } });
  return chooseRung(corpus, { budget, speed: (tokens * productsPerToken(measured, corpus)) / seconds });
}

/** The settings for a preset chosen by the user. */
function rungOf(preset: Preset): ModelSize {
  return RUNGS.find(({ model }) => model.preset === preset && Object.keys(model).length === 1) ?? RUNGS[0];
}

async function corpusSize({ data }: TranslationConfig): Promise<CorpusSize> {
  const opened = await openData(data);
  try {
    const { splits, vocabulary } = opened.corpus.summary;
    const { train } = splits;
    if (train === undefined || train.pairs === 0) throw new InputError('the corpus has no training pairs');
    return {
      pairs: train.pairs,
      source: train.source.tokens + train.pairs,
      target: train.target.tokens + train.pairs,
      longest: train.target.longest,
      vocabulary,
    };
  } finally {
    opened.close();
  }
}

/** The keys that are not left out. */
function given<T extends object>(keys: T): Partial<T> {
  return Object.fromEntries(Object.entries(keys).filter(([, value]) => value !== undefined)) as Partial<T>;
}
