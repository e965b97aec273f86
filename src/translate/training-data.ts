import { InputError } from '../errors.js';
import type { Random } from '../random.js';
import type { Snapshot } from '../run/index.js';
import { stateOnly } from '../schedule/index.js';
import { type TranslationBatch, translationBatch } from './batch.js';
import type { TranslationConfig } from './config.js';
import { Batches, type BatchOptions, type BatchState } from './corpus/batches.js';
import type { Corpus, CorpusSummary, PairedSequences } from './corpus/corpus.js';
import { type OpenData, openData } from './data.js';
import { type TranslationModel, translationModel } from './model/config.js';

/** What of a configuration says which sentences are trained on. */
export interface TrainingDataConfig extends Pick<TranslationConfig, 'data' | 'model' | 'batch'> {
  readonly validation: { readonly split: string };
}

/** The sentence pairs of a training: an endless row of batches, whose place can be saved, and the validation split. */
export class TrainingData {
  private batches: Batches;

  private constructor(
    /** The model of the configuration, with the sizes of the vocabularies. */
    readonly model: TranslationModel,
    readonly train: PairedSequences,
    readonly valid: PairedSequences,
    private readonly data: OpenData,
    private readonly options: BatchOptions,
    /** Batches that make one update. */
    private readonly accumulate: number,
  ) {
    this.batches = new Batches(train, options);
  }

  static async open(
    { data: from, model: keys, batch, validation }: TrainingDataConfig,
    random: Random,
  ): Promise<TrainingData> {
    const data = await openData(from);
    const opened: { close(): void }[] = [data];
    try {
      const { corpus } = data;
      const model = translationModel(keys, corpus.summary.vocabulary);
      const train = corpus.open('train');
      opened.push(train);
      const valid = corpus.open(validation.split);
      opened.push(valid);
      requireFits(corpus.summary, ['train', validation.split, 'test'], model.maxPositions);
      const seed = random.fork('batches').uint32();
      const options = { maxTokens: batch.tokens, maxSentences: batch.sentences ?? undefined, seed };
      return new TrainingData(model, train, valid, data, options, batch.accumulate);
    } catch (error) {
      for (const resource of opened.reverse()) resource.close();
      throw error;
    }
  }

  get corpus(): Corpus {
    return this.data.corpus;
  }

  /** Batches of the current epoch. */
  get batchesPerEpoch(): number {
    return this.batches.count;
  }

  next(): TranslationBatch {
    const parts = Array.from({ length: this.accumulate }, () => this.batches.next());
    return translationBatch(parts, 'train');
  }

  capture(): Snapshot {
    return stateOnly(this.batches.state());
  }

  restore({ state }: Snapshot): void {
    this.batches = new Batches(this.train, this.options, state as BatchState);
  }

  close(): void {
    this.valid.close();
    this.train.close();
    this.data.close();
  }
}

function requireFits({ splits }: CorpusSummary, names: readonly string[], maxPositions: number): void {
  for (const name of names) {
    const { source, target } = splits[name] ?? { source: NOTHING, target: NOTHING };
    const longest = Math.max(source.longest, target.longest);
    if (longest <= maxPositions) continue;
    throw new InputError(
      `the split ${name} has a sentence of ${longest} tokens, its end counted, expected at most ${maxPositions}`,
      { key: 'problem.model.maxPositions' },
    );
  }
}

const NOTHING = { longest: 0 };
