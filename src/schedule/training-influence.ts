import type { Training } from '../optim/index.js';
import type { InfluenceAccess } from './problem.js';

/** What a problem that has its parameters in a `Training` says about itself to be measured. */
export interface TrainingInfluence<Batch> {
  readonly training: Training;
  /** Whether all tasks share the parameter of this name. Default: all do. */
  readonly shared?: (name: string) => boolean;
  /** Samples of a batch that are worth the cost of measuring them. Default 256; fewer where each task is a pass. */
  readonly samples?: number;
  /** Pieces of the reward data. */
  readonly pieces: number;
  /** Writes ∇θ of the main task's mean loss on a piece, laid out like the arena, in evaluation mode. */
  gradient(piece: number, out: Float32Array): Promise<void>;
  /** Places in the batch of about so many samples. */
  sample(batch: Batch, samples: number): Int32Array;
  /** Losses [n, K] of these samples on all tasks at the current parameters, in evaluation mode. */
  losses(batch: Batch, places: Int32Array): Promise<Float32Array>;
}

export function trainingInfluence<Batch>(from: TrainingInfluence<Batch>): InfluenceAccess<Batch> {
  const { training, shared = () => true } = from;
  const { arena } = training;
  const ofSingleTasks = arena.trained.filter((name) => !shared(name));
  return {
    size: arena.length,
    samples: from.samples ?? 256,
    pieces: from.pieces,
    gradient: async (piece, out) => {
      await from.gradient(piece, out);
      for (const name of ofSingleTasks) arena.view(out, name).fill(0);
    },
    shift: (gradient, out) => {
      training.direction(gradient, out);
      const length = norm(out);
      if (length === 0) return;
      const factor = (RELATIVE_LENGTH * norm(arena.values.subarray(0, arena.length))) / length;
      for (let i = 0; i < out.length; i++) out[i] *= factor;
    },
    losses: async (batch, samples, shift) => {
      const places = from.sample(batch, samples);
      const ahead = await arena.shifted(shift, 1, () => from.losses(batch, places));
      const behind = await arena.shifted(shift, -1, () => from.losses(batch, places));
      return { samples: places, ahead, behind };
    },
  };
}

/** Evenly spaced places in a batch of so many samples. */
export function spacedPlaces(size: number, samples: number): Int32Array {
  const count = Math.min(size, samples);
  return Int32Array.from({ length: count }, (_, i) => Math.floor(((i + 0.5) * size) / count));
}

/** All places of a part in so many pieces, each of which reaches over the whole part. */
export function scatteredPieces(size: number, pieces: number): Int32Array[] {
  const count = Math.min(size, Math.max(1, Math.round(pieces)));
  return Array.from({ length: count }, (_, piece) =>
    Int32Array.from({ length: Math.ceil((size - piece) / count) }, (_unused, i) => piece + i * count),
  );
}

/**
 * ‖u‖ ∕ ‖θ‖. A loss changes by about this share of itself, a thousand times the precision of f32, and the cubic term, the
 * first that the difference of two points leaves, by its cube.
 */
const RELATIVE_LENGTH = 3e-3;

function norm(vector: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < vector.length; i++) sum += vector[i] * vector[i];
  return Math.sqrt(sum);
}
