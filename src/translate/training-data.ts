import { InputError } from '../errors.js';
import type { Random } from '../random.js';
import type { Snapshot } from '../run/index.js';
import { stateOnly } from '../schedule/index.js';
import { type TranslationBatch, translationBatch } from './batch.js';
import type { TranslationConfig } from './config.js';
import { Batches, type BatchOptions, type BatchState } from './corpus/batches.js';
import { type Corpus, type CorpusSummary, type PairedSequences, somePairs } from './corpus/corpus.js';
import { type Scrambled, scrambled } from './corruption.js';
import { type OpenData, openData } from './data.js';
import { type TranslationModel, translationModel } from './model/config.js';

/** What of a configuration says which sentences are trained on. */
export interface TrainingDataConfig extends Pick<TranslationConfig, 'data' | 'model' | 'batch'> {
  readonly validation: { readonly split: string; readonly reward?: number };
  readonly corruption?: TranslationConfig['corruption'];
}

/** The sentence pairs of a training: an endless row of batches, whose place can be saved, and the validation split. */
export class TrainingData {
  private batches: Batches;

  private constructor(
    /** The model of the configuration, with the sizes of the vocabularies. */
    readonly model: TranslationModel,
    readonly train: PairedSequences | Scrambled,
    /** What is validated on. */
    readonly valid: PairedSequences,
    /** The rest of the validation split: for schedulers to learn from. */
    readonly reward: PairedSequences | undefined,
    private readonly data: OpenData,
    private readonly options: BatchOptions,
    /** Batches that make one update. */
    private readonly accumulate: number,
    private readonly opened: readonly { close(): void }[],
  ) {
    this.batches = new Batches(train, options);
  }

  static async open(
    { data: from, model: keys, batch, validation, corruption }: TrainingDataConfig,
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
      const [selecting, reward] = divide(valid, validation.reward ?? 0);
      const share = corruption?.scrambled ?? 0;
      const pairs = share === 0 ? train : scrambled(train, share, corruption!.seed);
      return new TrainingData(model, pairs, selecting, reward, data, options, batch.accumulate, opened);
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
    for (const resource of [...this.opened].reverse()) resource.close();
  }
}

/** The pairs that validate and, of a share above 0, those for schedulers, evenly spread over the split. */
function divide(pairs: PairedSequences, share: number): [PairedSequences, PairedSequences | undefined] {
  if (share === 0) return [pairs, undefined];
  const all = Int32Array.from({ length: pairs.count }, (_, i) => i);
  const forReward = (i: number) => Math.floor((i + 1) * share) > Math.floor(i * share);
  const [reward, rest] = [all.filter(forReward), all.filter((i) => !forReward(i))];
  if (reward.length === 0 || rest.length === 0) {
    throw new InputError(`a share of ${share} of ${pairs.count} validation pairs leaves none on one side`, {
      key: 'problem.validation.reward',
    });
  }
  return [somePairs(pairs, rest), somePairs(pairs, reward)];
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
