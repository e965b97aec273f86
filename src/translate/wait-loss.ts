import { join } from 'node:path';
import { z } from 'zod';
import { makeFolder, writeFileAtomic } from '../files.js';
import { openRun, parseConfig } from '../run/index.js';
import { translationSchema } from './config.js';
import { openData } from './data.js';
import { LossEvaluation } from './loss-evaluation.js';
import { openTrained } from './trained.js';

export interface WaitLossOptions {
  /** Numbers k of source tokens read ahead. */
  readonly waits: readonly number[];
  /** Split of the corpus. Default the one that the run was validated on. */
  readonly split?: string;
  /** Threads inside one operation. Default 1. */
  readonly threads?: number;
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
  const evaluation = await LossEvaluation.create(model, arena, { smoothing, limited: true, threads });
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
