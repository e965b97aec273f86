import { plan, Split } from './plan';

/**
 * Looks for the best threshold of one feature, keeps it in `best` if it beats what is there, and returns 1 if any
 * threshold was admissible. Bins are scanned from the right with missing values on the left; a feature with
 * missing values (always its last bin) is scanned once more from the left with missing values on the right.
 */
export function scan(histogram: usize, feature: i32, sum: i64, hessian: i64, best: Split): i32 {
  const p = plan();
  const weighted = p.weighted;
  const shift: usize = weighted ? 4 : 3;
  const countBits = p.countBits;
  const countMask = ((<i64>1) << countBits) - 1;
  const unit = p.gradientUnit;
  const hessianUnit = p.hessianUnit;
  const l1 = p.l1;
  const l2 = p.l2;
  const minData = <i64>p.minData;
  const minHessian = p.minHessian;

  const total = <f64>(sum >> countBits) * unit;
  const totalCount = sum & countMask;
  if (totalCount < 2 * minData) return 0;
  const totalHessian = weighted ? <f64>hessian * hessianUnit : <f64>totalCount;
  const shiftGain = leafGain(total, totalHessian, l1, l2) + p.minGain;
  const missing = <i32>load<u8>(p.hasMissing + <usize>feature);
  const last = load<i32>(p.binCounts + (<usize>feature << 2)) - 1 - missing;

  let bestGain = shiftGain;
  let bestBin: i32 = -1;
  let bestSum: i64 = 0;
  let bestHessian: i64 = 0;
  let bestMissingLeft: i32 = 1;

  for (let direction = 0; direction <= missing; direction++) {
    let near: i64 = 0; // sums of the side the scan starts from
    let nearHessian: i64 = 0;
    // From the right a threshold must leave bin 0; from the left it may leave only the missing values.
    for (let step = 0; step < last + direction; step++) {
      const bin = direction ? step : last - step;
      const slot = histogram + (<usize>bin << shift);
      const sumHere = load<i64>(slot);
      if (!sumHere) continue; // an empty bin: the same split as the previous one
      near += sumHere;
      if (weighted) nearHessian += load<i64>(slot, 8);
      const nearCount = near & countMask;
      if (nearCount < minData) continue;
      if (totalCount - nearCount < minData) break;
      const hessianHere = weighted ? <f64>nearHessian * hessianUnit : <f64>nearCount;
      if (hessianHere < minHessian) continue;
      const hessianThere = totalHessian - hessianHere;
      if (hessianThere < minHessian) break;
      const here = <f64>(near >> countBits) * unit;
      const gain = leafGain(here, hessianHere, l1, l2) + leafGain(total - here, hessianThere, l1, l2);
      if (gain > bestGain) {
        bestGain = gain;
        bestBin = direction ? bin : bin - 1;
        bestSum = direction ? near : sum - near;
        bestHessian = direction ? nearHessian : hessian - nearHessian;
        bestMissingLeft = 1 - direction;
      }
    }
  }
  if (bestBin < 0) return 0;
  if (bestGain - shiftGain > best.gain) {
    best.gain = bestGain - shiftGain;
    best.feature = feature;
    best.bin = bestBin;
    best.leftSum = bestSum;
    best.leftHessian = bestHessian;
    best.missingLeft = bestMissingLeft;
  }
  return 1;
}

// @ts-ignore: decorator
@inline
function leafGain(gradient: f64, hessian: f64, l1: f64, l2: f64): f64 {
  const excess = abs(gradient) - l1;
  const shrunk = excess > 0 ? excess : 0; // faster than max, which has to tell 0 from -0
  return (shrunk * shrunk) / (hessian + l2);
}
