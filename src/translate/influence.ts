import type { Training } from '../optim/index.js';
import { type InfluenceAccess, scatteredPieces, spacedPlaces, trainingInfluence } from '../schedule/index.js';
import { type Batch, collate, pairCount, selectPairs } from './corpus/batches.js';
import type { PairedSequences } from './corpus/corpus.js';
import type { LossEvaluation } from './loss-evaluation.js';

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
  const tokens = reward.target.lengths.reduce((sum, length) => sum + length, 0);
  // Half a batch: the next measurement has another piece.
  const pieces = scatteredPieces(reward.count, (2 * tokens) / options.tokens);
  return trainingInfluence<readonly Batch[]>({
    training,
    samples: 32,
    pieces: pieces.length,
    gradient: (piece, out) => gradient([collate(reward, pieces[piece], { split: 'valid' })], out),
    sample: (batches, samples) => spacedPlaces(pairCount(batches), samples),
    losses: async (batches, places) => {
      const A = anchors.length;
      const repeated = Int32Array.from({ length: places.length * A }, (_, at) => places[Math.floor(at / A)]);
      const pairs = selectPairs(batches, repeated);
      const asked = Int32Array.from(repeated, (_, at) => waits[anchors[at % A]]);
      const { plain } = await evaluation.sentences(pairs, asked);
      const perToken = plain.map((sum, at) => sum / pairs.targetLengths[at]);
      return interpolated(perToken, anchors, K);
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
