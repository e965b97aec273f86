import { InputError } from '../errors.js';
import {
  type Arena,
  type LearningRate,
  type PlateauState,
  residenceOf,
  type Training,
  type TrainingState,
} from '../optim/index.js';
import {
  type CheckpointChoice,
  chosenCheckpoints,
  openRun,
  partOf,
  type SavedCheckpoint,
  type Snapshot,
  trainedState,
} from '../run/index.js';

export { copySnapshot, joinSnapshots, partOf, stateOnly } from '../run/index.js';

/**
 * Parameters, optimiser and dropout of a training, and its learning rate if that has a memory. Parameters keep their
 * names, optimiser arrays are `slot.<i>/<name>`.
 */
export function captureTraining(training: Training, rate?: LearningRate): Snapshot {
  const { arena } = training;
  if (residenceOf(arena)?.isAhead) throw new Error('settle a training before capturing its state');
  const dtype = arena.dtype === 'f32' ? 'F32' : 'F64';
  const tensors = arrays(training).map(
    ([key, name, data]) => [key, { dtype, shape: arena.shape(name), data }] as const,
  );
  const learningRate = rate?.state() ?? undefined;
  const state: SavedTraining = learningRate ? { ...training.state(), learningRate } : training.state();
  return { tensors: new Map(tensors), state };
}

/** Restores what `captureTraining` returned. */
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
    arena.trained.map((name) => [`slot.${i}/${name}`, name, arena.slot(i, name)] as const),
  );
  return [...values, ...slots.flat()];
}

/** The problem of a run, read from a checkpoint. */
export interface SavedProblem {
  readonly snapshot: Snapshot;
  /** Updates made before it was saved. */
  readonly step: number;
  /** The checkpoint. */
  readonly file: string;
}

/** The problem from a run's best checkpoint or, before the first validation, from its newest. */
export function savedProblem(run: string): SavedProblem {
  const [saved] = chosenCheckpoints(run, 'best');
  return problemIn(saved);
}

/** The problem in a checkpoint. */
function problemIn(saved: SavedCheckpoint): SavedProblem {
  return { snapshot: partOf(trainedState(saved), 'problem'), step: saved.step, file: saved.path };
}

/** Fills an arena with the parameters of a run, or with the mean of several checkpoints; returns the updates made. */
export function loadParameters(run: string, arena: Arena, choice: CheckpointChoice = 'best'): number {
  openRun(run);
  let [step, count] = [0, 0];
  for (const saved of chosenCheckpoints(run, choice)) {
    const problem = problemIn(saved);
    const found = parametersIn(problem, arena);
    count++;
    for (const [i, name] of arena.names.entries()) {
      const mean = arena.value(name);
      if (count === 1) mean.set(found[i] as never);
      else for (let j = 0; j < mean.length; j++) mean[j] += (found[i][j] - mean[j]) / count;
    }
    step = Math.max(step, saved.step);
  }
  return step;
}

/** The parameters of a saved problem, which must have the names and shapes of the arena. */
export function parametersIn({ snapshot, file }: Omit<SavedProblem, 'step'>, arena: Arena): Float32Array[] {
  const { tensors } = partOf(snapshot, 'model');
  return arena.names.map((name) => {
    const [tensor, shape] = [tensors.get(name), arena.shape(name)];
    if (tensor !== undefined && tensor.shape.join() === shape.join()) return tensor.data as Float32Array;
    const there = tensor === undefined ? 'nothing' : `[${tensor.shape.join(', ')}]`;
    throw new InputError(`the checkpoint holds ${there}, the model needs [${shape.join(', ')}]`, { file, key: name });
  });
}
