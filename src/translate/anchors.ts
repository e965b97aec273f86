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
