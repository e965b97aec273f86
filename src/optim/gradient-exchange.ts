import { type FloatKernels, loadKernels, newMemory } from '../kernels.js';
import type { Ranks } from '../ranks.js';
import type { Arena, Floats } from './arena.js';

/**
 * Adds up the gradients that the ranks have in their arenas. MPI's own sum leaves the order of the summands to the
 * library; here it is that of the ranks, as with the workers of one process: each rank receives a slice of everyone's
 * gradients, adds them in order and sends the sum to all.
 */
export class GradientExchange {
  private readonly kernels: FloatKernels;
  /** Slices of the gradients of all ranks, side by side. */
  private readonly slices: Floats;
  /** Elements that all ranks together add up in one round. */
  private readonly round: number;

  constructor(
    private readonly ranks: Ranks,
    private readonly arena: Arena,
    /** Largest number of elements that a rank adds up in one round: bounds the memory. A multiple of 16. */
    maxSlice = 1 << 22,
  ) {
    const { dtype, length, grads } = arena;
    const slice = Math.min(maxSlice, LINE * Math.ceil(length / LINE / ranks.size));
    const memory = newMemory(ranks.size * slice * grads.BYTES_PER_ELEMENT);
    this.round = ranks.size * slice;
    this.kernels = loadKernels(memory)[dtype];
    this.slices = dtype === 'f32' ? new Float32Array(memory.buffer) : new Float64Array(memory.buffer);
  }

  /** g ← ((g₀ + g₁) + g₂) + … in every rank, over the first `count` ranks; what the others hold is not looked at. */
  sum(count: number): void {
    const { ranks, slices, kernels } = this;
    const { grads, length } = this.arena;
    for (let start = 0; start < length; start += this.round) {
      const part = grads.subarray(start, Math.min(length, start + this.round)) as Floats;
      const bounds = sliceBounds(part.length, ranks.size);
      const own = bounds[ranks.rank + 1] - bounds[ranks.rank];
      ranks.exchange(part, bounds, slices);
      if (own > 0) kernels.sum(0, 0, own * part.BYTES_PER_ELEMENT, count, own);
      ranks.assemble(slices, bounds, part);
    }
  }
}

/** Elements of one or two cache lines, depending on the type: slices begin and end where the kernels can. */
const LINE = 16;

/** Slices of whole lines, as equal as possible. */
function sliceBounds(length: number, count: number): number[] {
  const lines = Math.ceil(length / LINE);
  return Array.from({ length: count + 1 }, (_, i) => Math.min(length, LINE * Math.floor((lines * i) / count)));
}
