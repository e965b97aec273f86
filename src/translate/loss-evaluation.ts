import { dirname } from 'node:path';
import { z } from 'zod';
import { type DeviceChoice, type DeviceName, deviceFor } from '../devices.js';
import { makeFolder, writeFileAtomic } from '../files.js';
import { attentionOver } from '../nn/index.js';
import { type Arena, type Feeds, Inference, type InputTypes, type Model } from '../optim/index.js';
import type { Ranks } from '../ranks.js';
import { type CheckpointChoice, openRun, parseConfig, runConfigFile, waitLossFile } from '../run/index.js';
import { type GradientAccess, scatteredPieces } from '../schedule/index.js';
import {
  add,
  attentionBias,
  broadcastTo,
  type Dim,
  expandDims,
  i32,
  multiplyDims,
  type Parameters,
  range,
  reshape,
  sub,
  type Tensor,
} from '../tensor/index.js';
import { translationSchema } from './config.js';
import { type Batch, BatchIterator, collate } from './corpus/batches.js';
import type { PairedSequences } from './corpus/corpus.js';
import { adapted, evaluationMode, type TranslationModel } from './model/config.js';
import {
  decode,
  encode,
  type LossOptions,
  layerOptions,
  lossFeeds,
  lossInputs,
  lossModel,
  type Sources,
  sentenceFeeds,
  sentenceInputs,
  sentenceLosses,
  translate,
  wide,
} from './model/transformer.js';
import { openTrained } from './trained.js';
import { openData } from './training.js';

/** Losses of sentences, each the sum over its tokens, in nats. */
export interface SentenceLosses {
  /** −log P, [B]. */
  readonly plain: Float32Array;
  /** With label smoothing, [B]. */
  readonly smoothed: Float32Array;
}

/** Mean losses per target token, including sentence ends, in nats. */
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
          // One point per core: threads that share the operations of one point wait for each other.
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
   * −log P of every sentence with the same wait, [B], with 8-bit products: half the time, and accurate to about 0.01
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

/** All pairs of a split, by length. A sentence longer than the bound has its own batch. */
export function inOrder(pairs: PairedSequences, maxTokens: number): Generator<Batch> {
  return batchesInOrder(pairs, maxTokens).rest();
}

/** The same, if only some of the batches are needed. */
function batchesInOrder(pairs: PairedSequences, maxTokens: number): BatchIterator {
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
  /** Default `best`. */
  readonly checkpoint?: CheckpointChoice;
  /** Threads inside one operation. Default 1. */
  readonly threads?: number;
  /** What computes. Default cpu. */
  readonly device?: DeviceChoice;
}

/** The loss of a model under wait-k, regardless of the wait it was trained for. */
export interface WaitLoss {
  readonly split: string;
  readonly k: number;
  /** Mean −log P per target token, in nats, and the same with label smoothing. */
  readonly plain: number;
  readonly smoothed: number;
  /** Minus the loss the run was validated by: the paper's validation performance on wait-k. */
  readonly performance: number;
  /** Where it is kept. */
  readonly file: string;
}

/**
 * Measures the model of a run on a split under one or more waits, without translating anything. Each loss is kept in the
 * run folder as `evaluation/<split>-wait-<k>-loss.json`, or `…-loss-<checkpoint>.json` if it is not of the best checkpoint.
 */
export async function evaluateWaitLoss(run: string, options: WaitLossOptions): Promise<WaitLoss[]> {
  const { data: from, smoothing, validation } = lossConfig(run);
  const { waits, split = validation.split, checkpoint, threads } = options;
  const { model, arena, step } = openTrained(run, checkpoint);
  const device = deviceFor(options.device ?? 'cpu', arena.parameterCount);
  const evaluation = await LossEvaluation.create(model, arena, { smoothing, limited: true, threads, device });
  const opened: { close(): void | Promise<void> }[] = [evaluation];
  try {
    const data = await openData(from);
    opened.push(data);
    const pairs = data.corpus.open(split);
    opened.push(pairs);
    const losses: WaitLoss[] = [];
    for (const k of waits) {
      const loss = await evaluation.corpus(pairs, k, validation.tokens);
      const { plain, smoothed } = loss;
      const file = waitLossFile({ run, split, k, checkpoint });
      makeFolder(dirname(file));
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
  return parseConfig(schema, own, runConfigFile(run));
}

/** What the losses of a batch under several waits are computed from. */
const severalWaitsInputs = {
  ...sentenceInputs,
  /** m of each wait-m. */
  waits: i32('A'),
} satisfies InputTypes;

/** −log P of each sentence under each of several waits, `plain` [A, B] in nats: what `lossModel` says of each pair. */
function severalWaitsModel(
  model: TranslationModel,
  { smoothing, limited = true }: LossOptions,
): Model<typeof severalWaitsInputs> {
  return (parameters, { source, sourceLengths, previous, target, targetLengths, waits }) => {
    const p = adapted(parameters, model);
    const sources = { ids: wide(source), lengths: wide(sourceLengths) };
    const [count] = waits.shape;
    const limits = limited ? sub(wide(waits), 1) : undefined;
    const states = translateSeveral(p, model, sources, wide(previous), count, limits); // [T, A·B, D]
    const targets = repeated(wide(target), count);
    const lengths = repeated(wide(targetLengths), count);
    const { plain } = sentenceLosses(p, model, states, targets, lengths, smoothing);
    return { plain: reshape(plain, [count, target.shape[1]]) };
  };
}

/** A batch as the inputs of its losses under these waits. */
function severalWaitsFeeds(batch: Batch, waits: readonly number[]): Feeds {
  return { ...sentenceFeeds(batch), waits: { data: Int32Array.from(waits), shape: [waits.length] } };
}

/**
 * The decoder's states [T, A·B, D] under A limits i64 [A], or none: sentence b under limit a is column a·B + b. With an
 * encoder that sees only the past, its output and the keys and values of cross-attention are computed once: time-major, the
 * states under all limits are queries t·A + a of the same B sentences, without a copy.
 */
function translateSeveral(
  p: Parameters,
  model: TranslationModel,
  source: Sources,
  previous: Tensor,
  count: Dim,
  limits: Tensor | undefined,
): Tensor {
  const [steps, batch] = previous.shape;
  const all = multiplyDims(count, batch);
  if (model.encoder === 'bidirectional' && limits !== undefined) {
    const sources = { ids: repeated(source.ids, count), lengths: repeated(source.lengths, count) };
    const limit = reshape(broadcastTo(expandDims(limits, 1), [count, batch]), [all]);
    return translate(p, model, sources, repeated(previous, count), limit);
  }
  const memory = encode(p, model, source); // [S, B, D]
  const queries = multiplyDims(steps, count);
  const reach = limits && reshape(add(expandDims(range(steps), 1), limits), [queries]);
  const visible = attentionBias(queries, memory.shape[0], { reach, lengths: source.lengths }, p.dtype);
  const over = attentionOver(memory, visible, layerOptions(model));
  return decode(p, model, repeated(previous, count), (cross, x) =>
    reshape(over(cross, reshape(x, [queries, batch, model.width])), [steps, all, model.width]),
  );
}

/** […, B] as […, A·B]: all columns, A times. */
function repeated(x: Tensor, count: Dim): Tensor {
  const [outer, batch] = [x.shape.slice(0, -1), x.shape[x.shape.length - 1]];
  const wider = broadcastTo(expandDims(x, -2), [...outer, count, batch]);
  return reshape(wider, [...outer, multiplyDims(count, batch)]);
}

/** The parts of gradients for schedulers. */
export interface RewardGradientsOptions {
  /** Length of a gradient. */
  readonly size: number;
  readonly main: number;
  /** The pairs for validation gradients. */
  readonly pairs: PairedSequences;
  /** Maximum target tokens in a batch of them. */
  readonly tokens: number;
  /** Writes ∇θ of the mean loss of the batches with every pair on one task. */
  readonly gradient: (batches: readonly Batch[], task: number, out: Float32Array) => Promise<void>;
}

/** Gradients of tasks on training batches, and of the main task on successive batches of validation pairs. */
export class RewardGradients implements GradientAccess<readonly Batch[]> {
  /** The batch for the next validation gradient; part of a problem's state. */
  turn = 0;
  private batches: BatchIterator | undefined;

  constructor(private readonly options: RewardGradientsOptions) {}

  get size(): number {
    return this.options.size;
  }

  ofTask(batches: readonly Batch[], task: number, out: Float32Array): Promise<void> {
    return this.options.gradient(batches, task, out);
  }

  ofValidation(out: Float32Array): Promise<void> {
    const { pairs, tokens, main, gradient } = this.options;
    this.batches ??= batchesInOrder(pairs, tokens);
    return gradient([this.batches.at(this.turn++ % this.batches.count)], main, out);
  }
}

/** Reward pairs in pieces of half a training batch, each spread over all of them; every measurement uses the next piece. */
export function rewardPieces(reward: PairedSequences, tokens: number) {
  const all = reward.target.lengths.reduce((sum, length) => sum + length, 0);
  const pieces = scatteredPieces(reward.count, (2 * all) / tokens);
  return {
    count: pieces.length,
    batchesOf: (piece: number): readonly Batch[] => [collate(reward, pieces[piece], { split: 'valid' })],
  };
}
