import { accumulate, accumulateWeighted, HALF, subtract, warm } from './histogram';
import { LANES, PLAN, Plan, plan, ROW_SHIFT, SLOTS, Split } from './plan';
import { scan } from './split';

/**
 * Histogram of the leaf with the given rows into `smallSlot`; the sibling's is what remains of the parent's in
 * `largeSlot` (-1 for the root, which has neither). Then the best split per block of both. All threads take part.
 */
export function findSplits(
  leafRows: usize,
  leafCount: i32,
  leafGradients: usize,
  smallSlot: i32,
  largeSlot: i32,
  smallSum: i64,
  smallHessian: i64,
  largeSum: i64,
  largeHessian: i64,
): void {
  const p = plan();
  p.leafRows = leafRows;
  p.leafCount = leafCount;
  p.leafGradients = leafGradients;
  p.smallSlot = smallSlot;
  p.largeSlot = largeSlot;
  p.smallSum = smallSum;
  p.smallHessian = smallHessian;
  p.largeSum = largeSum;
  p.largeHessian = largeHessian;

  const epoch = p.epoch + 1;
  atomic.store<i32>(PLAN + offsetof<Plan>('done'), 0);
  atomic.store<i64>(PLAN + offsetof<Plan>('ticket'), (<i64>epoch) << 32);
  atomic.store<i32>(PLAN + offsetof<Plan>('epoch'), epoch);
  atomic.notify(PLAN + offsetof<Plan>('epoch'), -1);
  takeBlocks();
  const blocks = p.blocks;
  while (true) {
    const done = atomic.load<i32>(PLAN + offsetof<Plan>('done'));
    if (done >= blocks) return;
    atomic.wait<i32>(PLAN + offsetof<Plan>('done'), done, -1);
  }
}

/** The life of a worker thread: sleep until a job appears, take blocks of it, until told to stop. */
export function serve(): void {
  let seen: i32 = 0;
  while (true) {
    atomic.wait<i32>(PLAN + offsetof<Plan>('epoch'), seen, -1);
    seen = atomic.load<i32>(PLAN + offsetof<Plan>('epoch'));
    if (atomic.load<i32>(PLAN + offsetof<Plan>('stop'))) return;
    takeBlocks();
  }
}

export function stop(): void {
  atomic.store<i32>(PLAN + offsetof<Plan>('stop'), 1);
  atomic.add<i32>(PLAN + offsetof<Plan>('epoch'), 1);
  atomic.notify(PLAN + offsetof<Plan>('epoch'), -1);
}

function takeBlocks(): void {
  const blocks = plan().blocks;
  while (true) {
    const ticket = atomic.load<i64>(PLAN + offsetof<Plan>('ticket'));
    const block = <i32>(ticket & 0xffffffff);
    if (block >= blocks) return;
    if (atomic.cmpxchg<i64>(PLAN + offsetof<Plan>('ticket'), ticket, ticket + 1) != ticket) continue;
    splitBlock(block);
    if (atomic.add<i32>(PLAN + offsetof<Plan>('done'), 1) + 1 == blocks) {
      atomic.notify(PLAN + offsetof<Plan>('done'), -1);
    }
  }
}

function splitBlock(block: i32): void {
  const p = plan();
  const bestSmall = changetype<Split>(p.results + <usize>block * offsetof<Split>());
  const bestLarge = changetype<Split>(p.results + <usize>(p.blocks + block) * offsetof<Split>());
  bestSmall.gain = 0;
  bestLarge.gain = 0;

  const root = p.largeSlot < 0;
  const features = p.blocks * LANES;
  const first = block * LANES;
  const small = p.splittable + <usize>(p.smallSlot * features + first);
  // A feature without any admissible split in a leaf is left out in all of its descendants, as in LightGBM.
  const parent = root ? small : p.splittable + <usize>(p.largeSlot * features + first);
  const slotShift: usize = p.weighted ? 4 : 3;
  const featureBytes = SLOTS << slotShift;
  const histogram = p.histograms + <usize>(p.smallSlot * features + first) * featureBytes;
  bestSmall.sink = fillHistograms(block, histogram, featureBytes, parent);

  for (let lane = 0; lane < LANES; lane++) {
    if (!load<u8>(parent + <usize>lane)) {
      store<u8>(small + <usize>lane, 0);
      continue;
    }
    const feature = first + lane;
    const own = histogram + <usize>lane * featureBytes;
    if (!root) {
      const rest = p.histograms + <usize>(p.largeSlot * features + feature) * featureBytes;
      subtract(rest, own, <usize>load<u32>(p.binCounts + (<usize>feature << 2)) << slotShift);
      store<u8>(parent + <usize>lane, scan(rest, feature, p.largeSum, p.largeHessian, bestLarge));
    }
    store<u8>(small + <usize>lane, scan(own, feature, p.smallSum, p.smallHessian, bestSmall));
  }
}

/** Rows that are worked on together: their bins and the histograms of a block stay in the second-level cache. */
const CHUNK: i32 = 2048;

function fillHistograms(block: i32, histogram: usize, featureBytes: usize, wanted: usize): u32 {
  const p = plan();
  const halfBytes = <usize>HALF * featureBytes;
  const bins = p.bins + ((<usize>block * <usize>p.rows) << ROW_SHIFT);
  const gradientShift: usize = p.weighted ? 4 : 3;
  const firstHalf = (load<u64>(wanted) | load<u64>(wanted, 8)) != 0;
  const secondHalf = (load<u64>(wanted, 16) | load<u64>(wanted, 24)) != 0;
  if (!(firstHalf || secondHalf)) return 0;
  if (firstHalf) memory.fill(histogram, 0, halfBytes);
  if (secondHalf) memory.fill(histogram + halfBytes, 0, halfBytes);
  let sink: u32 = 0;
  for (let start = 0; start < p.leafCount; start += CHUNK) {
    const n = min(CHUNK, p.leafCount - start);
    const rows = p.leafRows + (<usize>start << 2);
    const gradients = p.leafGradients + (<usize>start << gradientShift);
    sink += warm(rows, n, bins);
    if (p.weighted) {
      if (firstHalf) accumulateWeighted(rows, n, bins, gradients, histogram);
      if (secondHalf) accumulateWeighted(rows, n, bins + <usize>HALF, gradients, histogram + halfBytes);
    } else {
      if (firstHalf) accumulate(rows, n, bins, gradients, histogram);
      if (secondHalf) accumulate(rows, n, bins + <usize>HALF, gradients, histogram + halfBytes);
    }
  }
  return sink;
}
