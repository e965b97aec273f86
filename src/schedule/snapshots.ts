import { InputError } from '../errors.js';
import type { LearningRate, PlateauState, Training, TrainingState } from '../optim/index.js';
import type { Snapshot } from '../run/index.js';

/** Several snapshots as one; the tensors of part `p` are named `p/…`. */
export function joinSnapshots(parts: Readonly<Record<string, Snapshot>>): Snapshot {
  const tensors = Object.entries(parts).flatMap(([part, snapshot]) =>
    [...snapshot.tensors].map(([name, tensor]) => [`${part}/${name}`, tensor] as const),
  );
  const state = Object.fromEntries(Object.entries(parts).map(([part, snapshot]) => [part, snapshot.state]));
  return { tensors: new Map(tensors), state };
}

/** A part of what `joinSnapshots` has joined. */
export function partOf(snapshot: Snapshot, part: string): Snapshot {
  const states = snapshot.state as Record<string, unknown>;
  if (!Object.hasOwn(states, part)) throw new InputError('the saved state lacks this part', { key: part });
  const prefix = `${part}/`;
  const own = [...snapshot.tensors].filter(([name]) => name.startsWith(prefix));
  return { tensors: new Map(own.map(([name, tensor]) => [name.slice(prefix.length), tensor])), state: states[part] };
}

/** A snapshot that later changes of what was captured do not reach. */
export function copySnapshot({ tensors, state }: Snapshot): Snapshot {
  const copies = [...tensors].map(([name, tensor]) => [name, { ...tensor, data: tensor.data.slice() }] as const);
  return { tensors: new Map(copies), state: structuredClone(state) };
}

/** A snapshot of plain JSON values alone. */
export function stateOnly(state: unknown): Snapshot {
  return { tensors: new Map(), state };
}

/**
 * Parameters, optimiser and dropout of a training, and its learning rate if that has a memory. Parameters keep their
 * names, optimiser arrays are `slot.<i>/<name>`.
 */
export function captureTraining(training: Training, rate?: LearningRate): Snapshot {
  const { arena } = training;
  const dtype = arena.dtype === 'f32' ? 'F32' : 'F64';
  const tensors = arrays(training).map(
    ([key, name, data]) => [key, { dtype, shape: arena.shape(name), data }] as const,
  );
  const learningRate = rate?.state() ?? undefined;
  const state: SavedTraining = learningRate ? { ...training.state(), learningRate } : training.state();
  return { tensors: new Map(tensors), state };
}

export function restoreTraining(training: Training, { tensors, state }: Snapshot, rate?: LearningRate): void {
  for (const [key, , data] of arrays(training)) {
    const saved = tensors.get(key);
    if (saved === undefined || saved.data.length !== data.length) {
      throw new InputError('the saved state has no array of this name and size', { key });
    }
    data.set(saved.data as never);
  }
  const saved = state as SavedTraining;
  training.load(saved);
  rate?.load(saved.learningRate ?? null);
}

type SavedTraining = TrainingState & { readonly learningRate?: PlateauState };

function arrays({ arena, optimizerSlots }: Training) {
  const values = arena.names.map((name) => [name, name, arena.value(name)] as const);
  const slots = Array.from({ length: optimizerSlots }, (_, i) =>
    arena.names.map((name) => [`slot.${i}/${name}`, name, arena.slot(i, name)] as const),
  );
  return [...values, ...slots.flat()];
}
