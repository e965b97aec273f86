import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CheckpointChoice, readWaitLoss } from '../../src/run/index.js';
import { evaluateWaitLoss, inOrder, LossEvaluation } from '../../src/translate/loss-evaluation.js';
import { openTrained } from '../../src/translate/trained.js';
import { openData } from '../../src/translate/training.js';
import { randomTranslationRun, type TranslationRun } from '../cli/translation-run.js';

let run: TranslationRun;
beforeAll(async () => {
  run = await randomTranslationRun(3);
});
afterAll(() => run.remove());

describe('the loss of a run under another wait', () => {
  it('is the mean over the target tokens of the split that the run was validated on', async () => {
    const losses = await evaluateWaitLoss(run.folder, { waits: [1, 5] });
    const { model, arena } = openTrained(run.folder);
    const evaluation = await LossEvaluation.create(model, arena, { smoothing: 0.1 });
    const { corpus, close } = await openData({ from: 'toy', seed: 1, pairs: 60 });
    const pairs = corpus.open('valid');
    for (const { k, plain, smoothed } of losses) {
      // Sentence by sentence, each in its own batch length.
      let [sum, sumSmoothed, tokens] = [0, 0, 0];
      for (const batch of inOrder(pairs, 1)) {
        const { plain, smoothed } = await evaluation.sentences(batch, k);
        for (let b = 0; b < batch.size; b++) {
          sum += plain[b];
          sumSmoothed += smoothed[b];
          tokens += batch.targetLengths[b];
        }
      }
      expect(plain).toBeCloseTo(sum / tokens, 5);
      expect(smoothed).toBeCloseTo(sumSmoothed / tokens, 5);
    }
    expect(losses[0].plain).not.toBeCloseTo(losses[1].plain, 5);
    pairs.close();
    close();
    await evaluation.close();
  });

  it('is kept in the run folder, with the performance that the run is validated by', async () => {
    const [{ plain, performance }] = await evaluateWaitLoss(run.folder, { waits: [2], split: 'test' });
    const kept = JSON.parse(readFileSync(join(run.folder, 'evaluation', 'test-wait-2-loss.json'), 'utf8'));
    expect(kept).toMatchObject({ split: 'test', k: 2, plain, performance: -plain, step: 7 });
    expect(performance).toBe(-plain);
    expect(readWaitLoss({ run: run.folder, split: 'test', k: 2 })).toEqual({ plain, performance });
  });

  it('of another checkpoint is kept beside it', async () => {
    const of = (checkpoint: CheckpointChoice) => ({ run: run.folder, split: 'test', k: 4, checkpoint });
    const [{ plain }] = await evaluateWaitLoss(run.folder, { waits: [4], split: 'test', checkpoint: 'latest' });
    expect(readWaitLoss(of('latest')).plain).toBe(plain);
    expect(() => readWaitLoss(of('best'))).toThrow(/test-wait-4-loss\.json: plain: expected a number/);
    await evaluateWaitLoss(run.folder, { waits: [4], split: 'test' });
    // The run has one checkpoint.
    expect(readWaitLoss(of('best'))).toEqual(readWaitLoss(of('latest')));
  });
});
