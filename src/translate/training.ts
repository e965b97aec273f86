import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { InputError } from '../errors.js';
import { type DeviceChoice, type InputTypes, type LearningRate, type Model, Training } from '../optim/index.js';
import { Random } from '../random.js';
import type { Ranks } from '../ranks.js';
import { openRun, parseConfig, runConfigFile, type Snapshot } from '../run/index.js';
import { learningRateOf, optimizerOf, oracleRows, stateOnly, type Task } from '../schedule/index.js';
import { type TranslationConfig, type TranslationDataConfig, translationSchema } from './config.js';
import { type Batch, BatchIterator, type BatchOptions, type BatchState, column, pairCount } from './corpus/batches.js';
import { type Corpus, type CorpusSummary, openCorpus, type PairedSequences, somePairs } from './corpus/corpus.js';
import { defaultFilters } from './corpus/encode-split.js';
import { prepareTranslation } from './corpus/prepare.js';
import { inOrder } from './loss-evaluation.js';
import { requireChosen, type TranslationModel, translationModel } from './model/config.js';
import { lossInputs } from './model/transformer.js';
import {
  type TextSizes,
  type ToyText,
  toyLanguages,
  toyText,
  verbFinalLanguages,
  verbFinalText,
  writeToyText,
} from './toy.js';

/** The keys of a configuration that select the training sentences. */
export interface TrainingDataConfig extends Pick<TranslationConfig, 'data' | 'model' | 'batch'> {
  readonly validation: { readonly split: string; readonly reward?: number };
  readonly corruption?: TranslationConfig['corruption'];
}

/**
 * The sentence pairs of a training: an endless sequence of batches that can be saved and resumed, and the validation
 * split.
 */
export class TrainingData {
  private batches: BatchIterator;

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
    this.batches = new BatchIterator(train, options);
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
      const options = {
        maxTokens: requireChosen(batch.tokens, 'batch.tokens'),
        maxSentences: batch.sentences ?? undefined,
        seed,
      };
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

  /** Maximum target tokens in a batch. */
  get tokens(): number {
    return this.options.maxTokens;
  }

  /** Batches of the current epoch. */
  get batchesPerEpoch(): number {
    return this.batches.count;
  }

  /** The batches of the next update. */
  next(): readonly Batch[] {
    return Array.from({ length: this.accumulate }, () => this.batches.next());
  }

  capture(): Snapshot {
    return stateOnly(this.batches.state());
  }

  restore({ state }: Snapshot): void {
    this.batches = new BatchIterator(this.train, this.options, state as BatchState);
  }

  close(): void {
    for (const resource of [...this.opened].reverse()) resource.close();
  }
}

/** The validation pairs and, for a share above 0, those for schedulers, evenly spread over the split. */
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
      `the split ${name} has a sentence of ${longest} tokens including its end, expected at most ${maxPositions}`,
      { key: 'problem.model.maxPositions' },
    );
  }
}

const NOTHING = { longest: 0 };

/** An open corpus. */
export interface OpenData {
  readonly corpus: Corpus;
  /** Removes temporary files. */
  close(): void;
}

/** The language pairs that are generated on the fly. */
const MADE: Readonly<Record<Exclude<TranslationDataConfig['from'], 'corpus'>, MadePair>> = {
  toy: { languages: toyLanguages, text: toyText },
  'verb-final': { languages: verbFinalLanguages, text: verbFinalText },
};

interface MadePair {
  readonly languages: { readonly source: string; readonly target: string };
  text(seed: number, sizes: TextSizes): ToyText;
}

/** The corpus of a configuration. A pair that is generated on the fly is written and prepared in a temporary folder. */
export async function openData(config: TranslationDataConfig): Promise<OpenData> {
  if (config.from === 'corpus') return { corpus: openCorpus(config.folder), close: () => {} };
  const folder = mkdtempSync(join(tmpdir(), 'tcts-toy-'));
  const close = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const { languages, text } = MADE[config.from];
    writeToyText(folder, text(config.seed, { train: config.pairs }), languages);
    const words = { lowercase: false, normalize: false, tokenizer: { kind: 'none' } } as const;
    await prepareTranslation({
      source: { config: { language: languages.source, ...words } },
      target: { config: { language: languages.target, ...words } },
      train: join(folder, 'train'),
      valid: join(folder, 'valid'),
      test: [join(folder, 'test')],
      out: join(folder, 'corpus'),
      learning: { joint: false, sharedVocabulary: false, filters: defaultFilters },
    });
    return { corpus: openCorpus(join(folder, 'corpus')), close };
  } catch (error) {
    close();
    throw error;
  }
}

export interface ProblemOptions {
  readonly random: Random;
  /** Default 1. */
  readonly threads?: number;
  /** Default 1. */
  readonly workers?: number;
  /** Updates of the whole training, for a learning rate that depends on it. Default: not known. */
  readonly updates?: number;
  /** Processes that share each batch. Default: this one alone. */
  readonly ranks?: Ranks;
  /** What trains the model. Default cpu. */
  readonly device?: DeviceChoice;
}

type Learning = TranslationConfig['learning'];

/**
 * The training of a loss model as configured in `learning`: of all of its parameters,
 * or those that are not `frozen`.
 */
export function createTraining<I extends InputTypes = typeof lossInputs>(
  model: Model<I>,
  learning: Learning,
  {
    random,
    threads = 1,
    workers = 1,
    ranks,
    device,
    frozen,
  }: ProblemOptions & { readonly frozen?: (name: string) => boolean },
  inputs: I = lossInputs as unknown as I,
): Promise<Training> {
  const { clipNorm } = learning;
  return Training.create({
    frozen,
    model,
    inputs,
    random: random.fork('model'),
    optimizer: optimizerOf(learning),
    clip: clipNorm === null ? undefined : { norm: clipNorm },
    workers,
    threads,
    ranks,
    device,
  });
}

/** The parts of a translation problem. */
export interface CorpusParts {
  readonly tasks: readonly Task[];
  readonly main: number;
  readonly data: TrainingData;
  readonly training: Training;
  readonly learningRate: LearningRate;
  /** What must be closed, in reverse order. */
  readonly opened: readonly { close(): void | Promise<void> }[];
}

/** What all problems that learn from sentence pairs share. */
export abstract class CorpusProblem<Parts extends CorpusParts> {
  protected constructor(protected readonly parts: Parts) {}

  /** Learned in turn or together. */
  get tasks(): readonly Task[] {
    return this.parts.tasks;
  }

  /** Place of the main task. */
  get main(): number {
    return this.parts.main;
  }

  /** The next batches of training pairs. */
  nextBatch(): readonly Batch[] {
    return this.parts.data.next();
  }

  /** Pairs of an update. */
  sizeOf(batches: readonly Batch[]): number {
    return pairCount(batches);
  }

  /** Receives a validation performance. */
  observe(performance: number): void {
    this.parts.learningRate.observe(performance);
  }

  /** The validation pairs. */
  *validationBatches(): Generator<readonly Batch[]> {
    const { valid, tokens } = this.parts.data;
    for (const batch of inOrder(valid, tokens)) yield [batch];
  }

  /** Copies what `capture` reads into memory. */
  settle(): Promise<void> {
    return this.parts.training.settle();
  }

  /** Releases files, native memory and threads. */
  async close(): Promise<void> {
    for (const resource of [...this.parts.opened].reverse()) await resource.close();
  }
}

/** η₁ over a training of `updates` updates. */
export function translationLearningRate(learning: Learning, updates?: number): LearningRate {
  const peak = requireChosen(learning.peak, 'learning.peak');
  const warmup = requireChosen(learning.warmup, 'learning.warmup');
  return learningRateOf(peak, { ...learning, warmup }, updates);
}

/** The data that a run is evaluated on: its own, or another corpus. */
export function evaluatedData(run: string, corpus: string | undefined): { data: TranslationDataConfig; own: boolean } {
  const { problem } = openRun(run).config as { problem: { data: unknown } };
  if (problem.data === undefined) {
    // An imported run.
    if (corpus !== undefined) return { data: { from: 'corpus', folder: corpus }, own: false };
    throw new InputError('the run has no data, expected a corpus', { key: '--data', file: run });
  }
  const schema = z.strictObject({ data: translationSchema.shape.data });
  const { data } = parseConfig(schema, { data: problem.data }, runConfigFile(run));
  const isOwn = corpus === undefined || (data.from === 'corpus' && resolve(data.folder) === resolve(corpus));
  return isOwn ? { data, own: true } : { data: { from: 'corpus', folder: corpus }, own: false };
}

/** Training pairs, some from a second origin whose sources have their halves swapped. */
export interface Scrambled extends PairedSequences {
  /** [pair]; 1 for the second origin: the feature `origin`. */
  readonly origin: Uint8Array;
}

/** Swaps the halves of the source in a share of the pairs, drawn by its own seed. Ends of sentences stay. */
export function scrambled(pairs: PairedSequences, share: number, seed: number): Scrambled {
  const random = new Random(seed).fork('corruption');
  const order = random.shuffle(Int32Array.from({ length: pairs.count }, (_, i) => i));
  const origin = new Uint8Array(pairs.count);
  for (const pair of order.subarray(0, Math.round(share * pairs.count))) origin[pair] = 1;
  const { source, target, count } = pairs;
  const read = (pair: number) => (origin[pair] === 1 ? swapped(source.read(pair)) : source.read(pair));
  return { count, origin, target, source: { lengths: source.lengths, read }, close: () => pairs.close() };
}

/** a b c d e ⏹ becomes d e a b c ⏹. */
export function swapped(ids: ArrayLike<number>): Int32Array {
  const words = ids.length - 1;
  const half = Math.ceil(words / 2);
  return Int32Array.from(ids, (id, i) => (i === words ? id : ids[(i + half) % words]));
}

/**
 * If the halves are swapped, the words that wait-m would have seen of the original come n/2 words later: a wait is
 * unharmed if it is that much longer than the main one, or the longest there is.
 */
export function scrambledOracle(
  scrambled: Scrambled,
  batches: readonly Batch[],
  { waits, main }: { readonly waits: readonly number[]; readonly main: number },
): Float32Array {
  const origins = originsOf(scrambled, batches);
  const lengths = column(batches, 'sourceLengths');
  const longest = Math.max(...waits);
  return oracleRows(origins.length, waits.length, main, (i, task) => {
    const half = Math.ceil((lengths[i] - 1) / 2);
    return origins[i] === 1 && waits[task] < Math.min(longest, waits[main] + half);
  });
}

/** Of every pair of an update; validation data are all of the first origin. */
export function originsOf({ origin }: Scrambled, batches: readonly Batch[]): number[] {
  return batches.flatMap(({ indices, split }) => Array.from(indices, (pair) => (split === 'train' ? origin[pair] : 0)));
}
