import { chunks, columnCount, type FeatureSpec, gather, type Panel, type Samples } from './data/index.js';
import { type BoostedTrees, predictTrees } from './trees/index.js';

/** Forecasts of boosted trees, one a sample. */
export function predictSamples(trees: BoostedTrees, panel: Panel, spec: FeatureSpec, samples: Samples): Float32Array {
  const columns = columnCount(spec);
  const out = new Float32Array(samples.length);
  const rows = new Float32Array(PIECE * columns);
  for (const positions of chunks(samples, PIECE)) {
    const own = rows.subarray(0, positions.length * columns);
    gather(panel, spec, samples, positions, own, 'flat');
    predictTrees(trees, own, out.subarray(positions[0], positions[0] + positions.length));
  }
  return out;
}

const PIECE = 1000;
