import type { Training } from '../optim/index.js';
import { type InfluenceAccess, spacedPlaces, trainingInfluence } from '../schedule/index.js';
import { type Batch, pairCount, selectPairs } from './corpus/batches.js';
import type { PairedSequences } from './corpus/corpus.js';
import type { LossEvaluation } from './loss-evaluation.js';
import { rewardPieces } from './reward.js';

export interface WaitInfluenceOptions {
  readonly training: Training;
  readonly evaluation: LossEvaluation;
  /** Validation pairs that are set aside for schedulers. */
  readonly reward: PairedSequences;
  /** m of each task. */
  readonly waits: readonly number[];
  readonly main: number;
  /** Most target tokens in a training batch. */
  readonly tokens: number;
  /** Writes the gradient of the main task's loss of an update. */
  readonly gradient: (batches: readonly Batch[], out: Float32Array) => Promise<void>;
}

/** How a step on each pair under each wait would change the main task's loss of the pairs set aside. */
export function waitInfluence(options: WaitInfluenceOptions): InfluenceAccess<readonly Batch[]> {
  const { training, evaluation, reward, waits, main, gradient } = options;
  const K = waits.length;
  const anchors = anchorsOf(K, main);
  const pieces = rewardPieces(reward, options.tokens);
  return trainingInfluence<readonly Batch[]>({
    training,
    samples: 32,
    pieces: pieces.count,
    gradient: (piece, out) => gradient(pieces.batchesOf(piece), out),
    sample: (batches, samples) => spacedPlaces(pairCount(batches), samples),
    lossesAround: async (batches, places, shift) => {
      const pairs = selectPairs(batches, places);
      const measured = anchors.map((task) => waits[task]);
      const [ahead, behind] = await evaluation.aroundUnderWaits(pairs, measured, shift);
      const perToken = (sums: Float32Array): Float32Array => {
        const losses = new Float32Array(sums.length); // [n, anchors]
        for (let at = 0; at < sums.length; at++) {
          const [anchor, i] = [Math.floor(at / pairs.size), at % pairs.size];
          losses[i * anchors.length + anchor] = sums[at] / pairs.targetLengths[i];
        }
        return interpolated(losses, anchors, K);
      };
      return [perToken(ahead), perToken(behind)];
    },
  });
}

/** The tasks that are measured where K waits would be too many: 1, 2, 4, 8 … words, the main task and the last one. */
export function anchorsOf(K: number, main: number): number[] {
  const anchors = new Set([main, K - 1]);
  for (let wait = 1; wait <= K; wait *= 2) anchors.add(wait - 1);
  return [...anchors].sort((a, b) => a - b);
}

/**
 * Losses of all K tasks [n, K] from those of some [n, anchors], first and last among them: the loss of a wait lies
 * between those of its neighbours, and the longer the wait, the less it changes.
 */
export function interpolated(losses: Float32Array, anchors: readonly number[], K: number): Float32Array {
  const A = anchors.length;
  const all = new Float32Array((losses.length / A) * K);
  for (let task = 0, right = 0; task < K; task++) {
    if (anchors[right] < task) right++;
    const left = anchors[right] === task ? right : right - 1;
    const share = left === right ? 0 : (task - anchors[left]) / (anchors[right] - anchors[left]);
    for (let i = 0; i < losses.length / A; i++) {
      all[i * K + task] = (1 - share) * losses[i * A + left] + share * losses[i * A + right];
    }
  }
  return all;
}
