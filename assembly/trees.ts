/*
 * Histogram kernels of the boosted trees (src/forecast/trees), over one shared memory laid out by the caller.
 *
 * Bins are kept in blocks of 32 features, [block][row][32] bytes. The rows of a leaf stream by while the histograms
 * of half a block (16 x 256 slots) stay in the first-level cache.
 *
 * Sums are fixed-point integers. A slot is one i64 that holds (gradient << countBits) + count, followed, when
 * samples are weighted, by one i64 with the hessian. Integer addition is associative, so that a histogram does not
 * depend on the order of rows or on threads, and parent - child is exactly the other child.
 */
export { binColumn, sortValues } from './trees/columns';
export { absoluteGradient, gatherGradients, packGradients, squaredError, sumGradients } from './trees/gradients';
export { accumulate, accumulateWeighted, subtract } from './trees/histogram';
export { findSplits, serve, stop } from './trees/jobs';
export { describeData, describeObjective } from './trees/plan';
export { addToLeaf, addTree, partition } from './trees/rows';
