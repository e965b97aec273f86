import type { Random } from '../../random.js';
import type { TreeOptions } from './options.js';

/** The rows of each round: first those in the bag, `size` of them, then the others, both ascending. */
export function bagging(count: number, { baggingFraction, baggingFrequency }: TreeOptions, random: Random) {
  const bag = { rows: Uint32Array.from({ length: count }, (_, row) => row), size: count };
  if (baggingFrequency === 0 || baggingFraction === 1) return () => bag;
  const outside = new Uint32Array(count);
  return (round: number) => {
    if ((round - 1) % baggingFrequency !== 0) return bag;
    let inside = 0;
    let others = 0;
    for (let row = 0; row < count; row++) {
      if (random.uniform() < baggingFraction) bag.rows[inside++] = row;
      else outside[others++] = row;
    }
    bag.rows.set(outside.subarray(0, others), inside);
    bag.size = inside;
    return bag;
  };
}

/** Draws the features a tree may use, as a mask over the used features. */
export function featureChoice(used: number, fraction: number, random: Random): () => Uint8Array {
  const all = new Uint8Array(used).fill(1);
  if (fraction === 1) return () => all;
  const size = Math.max(Math.round(used * fraction), Math.min(2, used));
  const order = Uint32Array.from({ length: used }, (_, feature) => feature);
  return () => {
    const mask = new Uint8Array(used);
    for (const feature of random.shuffle(order).subarray(0, size)) mask[feature] = 1;
    return mask;
  };
}
