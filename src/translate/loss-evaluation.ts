import { join } from 'node:path';
import { z } from 'zod';
import { type DeviceChoice, type DeviceName, deviceFor } from '../devices.js';
import { makeFolder, writeFileAtomic } from '../files.js';
import { type Arena, type Feeds, Inference } from '../optim/index.js';
import type { Ranks } from '../ranks.js';
import { openRun, parseConfig } from '../run/index.js';
import { translationSchema } from './config.js';
import { type Batch, BatchIterator } from './corpus/batches.js';
import type { PairedSequences } from './corpus/corpus.js';
import { evaluationMode, type TranslationModel } from './model/config.js';
import { severalWaitsFeeds, severalWaitsInputs, severalWaitsModel } from './model/several-waits.js';
import { type LossOptions, lossFeeds, lossInputs, lossModel } from './model/transformer.js';
import { openTrained } from './trained.js';
import { openData } from './training.js';

/** Losses of sentences, each the sum over its tokens, in nats. */
export interface SentenceLosses {
  /** −log P, [B]. */
  readonly plain: Float32Array;
  /** With label smoothing, [B]. */
  readonly smoothed: Float32Array;
}

/** Mean losses per target token, ends of sentences counted, in nats. */
export interface CorpusLoss {
  readonly plain: number;
  readonly smoothed: number;
  readonly tokens: number;
}

/** The loss of a model in evaluation mode, with the current parameters of an arena. */
export class LossEvaluation {
  private estimation: Inference | undefined;
  private severalWaits: Inference | undefined;

  private constructor(
    private readonly inference: Inference,
    private readonly compileEstimation: () => Promise<Inference>,
    private readonly compileSeveralWaits: () => Promise<Inference>,
  ) {}

  static async create(
    model: TranslationModel,
    arena: Arena,
    options: LossOptions & { readonly threads?: number; readonly ranks?: Ranks; readonly device?: DeviceName },
  ): Promise<LossEvaluation> {
    const { threads, ranks, device, ...loss } = options;
    const evaluated = evaluationMode(model);
    const compile = (what: LossOptions, eightBit: boolean): Promise<Inference> =>
      Inference.create({
        model: lossModel(evaluated, what),
        inputs: lossInputs,
        arena,
        threads,
        ranks,
        eightBit,
        device,
      });
    return new LossEvaluation(
      await compile(loss, false),
      () => compile({ ...loss, smoothing: 0 }, true),
      () =>
        Inference.create({
          model: severalWaitsModel(evaluated, loss),
          inputs: severalWaitsInputs,
          arena,
          threads,
          // A point on each core: threads that share the operations of one point wait for each other.
          workers: Math.min(2, threads ?? 1),
          ranks,
          device,
        }),
    );
  }

  /** Of every sentence, with one wait for all or a wait for each. */
  async sentences(batch: Batch, wait: number | Int32Array): Promise<SentenceLosses> {
    const feeds = typeof wait === 'number' ? sameWait(batch, wait) : lossFeeds(batch, wait, noWeights(batch));
    const { plain, smoothed } = await this.inference.run(feeds, { outputs: ['plain', 'smoothed'] });
    return { plain: plain.data as Float32Array, smoothed: smoothed.data as Float32Array };
  }

  /**
   * −log P of every sentence with each of several waits, [A, B], at θ + shift and at θ − shift. What does not depend on the
   * wait is computed once.
   */
  async aroundUnderWaits(
    batch: Batch,
    waits: readonly number[],
    shift: Float32Array,
  ): Promise<[ahead: Float32Array, behind: Float32Array]> {
    this.severalWaits ??= await this.compileSeveralWaits();
    const [ahead, behind] = await this.severalWaits.runAround(severalWaitsFeeds(batch, waits), shift);
    return [ahead.plain.data as Float32Array, behind.plain.data as Float32Array];
  }

  /**
   * −log P of every sentence with the same wait, [B], with products in 8 bits: half the time, and right to about 0.01
   * nats per token, where the sentences of a batch differ by 1.
   */
  async estimates(batch: Batch, wait: number): Promise<Float32Array> {
    this.estimation ??= await this.compileEstimation();
    const { plain } = await this.estimation.run(sameWait(batch, wait), { outputs: ['plain'] });
    return plain.data as Float32Array;
  }

  /** Of a whole split, in batches of at most `maxTokens` tokens. */
  async corpus(pairs: PairedSequences, wait: number, maxTokens: number): Promise<CorpusLoss> {
    let [plain, smoothed, tokens] = [0, 0, 0];
    for (const batch of inOrder(pairs, maxTokens)) {
      const losses = await this.sentences(batch, wait);
      for (let b = 0; b < batch.size; b++) {
        plain += losses.plain[b];
        smoothed += losses.smoothed[b];
        tokens += batch.targetLengths[b];
      }
    }
    return { plain: plain / tokens, smoothed: smoothed / tokens, tokens };
  }

  async close(): Promise<void> {
    await this.estimation?.close();
    await this.severalWaits?.close();
    await this.inference.close();
  }
}

function sameWait(batch: Batch, wait: number): Feeds {
  return lossFeeds(batch, new Int32Array(batch.size).fill(wait), noWeights(batch));
}

/** Of the training loss, which is not asked for. */
const noWeights = ({ size }: Batch): Float32Array => new Float32Array(size);

/** All pairs of a split, by length. A sentence longer than the bound has a batch of its own. */
export function inOrder(pairs: PairedSequences, maxTokens: number): Generator<Batch> {
  return batchesInOrder(pairs, maxTokens).rest();
}

/** The same, for those who need some of the batches only. */
export function batchesInOrder(pairs: PairedSequences, maxTokens: number): BatchIterator {
  const longest = pairs.target.lengths.reduce((a, b) => Math.max(a, b), 1);
  return new BatchIterator(pairs, {
    maxTokens: Math.max(maxTokens, longest),
    seed: 0,
    shuffle: false,
    split: 'valid',
  });
}

export interface WaitLossOptions {
  /** Numbers k of source tokens read ahead. */
  readonly waits: readonly number[];
  /** Split of the corpus. Default the one that the run was validated on. */
  readonly split?: string;
  /** Threads inside one operation. Default 1. */
  readonly threads?: number;
  /** What computes. Default cpu. */
  readonly device?: DeviceChoice;
}

/** The loss of a model under wait-k, whatever wait it was trained for. */
export interface WaitLoss {
  readonly split: string;
  readonly k: number;
  /** Mean −log P per target token, in nats, and the same with label smoothing. */
  readonly plain: number;
  readonly smoothed: number;
  /** Minus the one of both that the run was validated by: the paper's validation performance on wait-k. */
  readonly performance: number;
  /** Where it is kept. */
  readonly file: string;
}

/**
 * Measures the best model of a run on a split under one or more waits, without translating anything. Each loss is kept
 * in the run folder as `evaluation/<split>-wait-<k>-loss.json`.
 */
export async function evaluateWaitLoss(run: string, options: WaitLossOptions): Promise<WaitLoss[]> {
  const { data: from, smoothing, validation } = lossConfig(run);
  const { waits, split = validation.split, threads } = options;
  const { model, arena, step } = openTrained(run);
  const device = deviceFor(options.device ?? 'cpu', arena.parameterCount);
  const evaluation = await LossEvaluation.create(model, arena, { smoothing, limited: true, threads, device });
  const opened: { close(): void | Promise<void> }[] = [evaluation];
  try {
    const data = await openData(from);
    opened.push(data);
    const pairs = data.corpus.open(split);
    opened.push(pairs);
    makeFolder(join(run, 'evaluation'));
    const losses: WaitLoss[] = [];
    for (const k of waits) {
      const loss = await evaluation.corpus(pairs, k, validation.tokens);
      const { plain, smoothed } = loss;
      const file = join(run, 'evaluation', `${split}-wait-${k}-loss.json`);
      const result = { split, k, plain, smoothed, performance: -loss[validation.loss], file };
      writeFileAtomic(file, `${JSON.stringify({ ...result, step }, null, 2)}\n`);
      losses.push(result);
    }
    return losses;
  } finally {
    for (const resource of opened.reverse()) await resource.close();
  }
}

function lossConfig(run: string) {
  const { data, smoothing, validation } = translationSchema.shape;
  const schema = z.strictObject({ data, smoothing, validation });
  const { problem } = openRun(run).config as { problem: Record<string, unknown> };
  const own = Object.fromEntries(Object.keys(schema.shape).map((key) => [key, problem[key]]));
  return parseConfig(schema, own, join(run, 'config.yaml'));
}
