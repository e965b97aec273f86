import { InputError } from '../errors.js';
import type { Arena, Floats } from './arena.js';
import {
  type Metadata,
  readSafetensors,
  type StoredDtype,
  type StoredTensor,
  writeSafetensors,
} from './safetensors.js';

export interface SaveArenaOptions {
  /** How many of the optimiser's arrays to write too, the first ones: its `slots`. Default 0. */
  readonly slots?: number;
  readonly metadata?: Metadata;
}

export interface LoadArenaOptions {
  /** How many of the optimiser's arrays to read too; with 0, the default, those in the file are passed over. */
  readonly slots?: number;
}

/** Writes the parameters under their names and optimiser array i of parameter p as `slot.<i>/<p>`. */
export function saveArena(path: string, arena: Arena, { slots = 0, metadata = {} }: SaveArenaOptions = {}): void {
  const dtype = STORED[arena.dtype];
  const tensors = new Map<string, StoredTensor>();
  for (const { key, name, data } of entries(arena, slots)) {
    if (tensors.has(key)) throw new InputError('a parameter has the name of an optimiser array', { key });
    tensors.set(key, { dtype, shape: arena.shape(name), data });
  }
  writeSafetensors(path, tensors, metadata);
}

/**
 * Fills the arena from a file and returns the file's metadata. The file must have exactly the arena's parameters,
 * of the same shapes and type; nothing is changed unless all of it fits.
 */
export function loadArena(path: string, arena: Arena, { slots = 0 }: LoadArenaOptions = {}): Metadata {
  const { tensors, metadata } = readSafetensors(path);
  const wanted = entries(arena, slots);
  const found = wanted.map(({ key, name }) => {
    const tensor = tensors.get(key);
    if (tensor === undefined) throw new InputError('the file lacks this parameter', { file: path, key });
    const shape = arena.shape(name);
    if (tensor.shape.length !== shape.length || tensor.shape.some((size, axis) => size !== shape[axis])) {
      throw new InputError(`the file has the shape [${tensor.shape.join(', ')}], the model [${shape.join(', ')}]`, {
        file: path,
        key,
      });
    }
    if (tensor.dtype !== STORED[arena.dtype]) {
      throw new InputError(`the file has ${tensor.dtype}, the model ${STORED[arena.dtype]}`, { file: path, key });
    }
    return tensor.data as Floats;
  });
  const known = new Set(wanted.map(({ key }) => key));
  for (const key of tensors.keys()) {
    if (known.has(key) || (slots === 0 && SLOT_KEY.test(key))) continue;
    throw new InputError('the model has no such parameter', { file: path, key });
  }
  wanted.forEach(({ data }, i) => {
    data.set(found[i]);
  });
  return metadata;
}

const STORED = { f32: 'F32', f64: 'F64' } as const satisfies Record<Arena['dtype'], StoredDtype>;

const SLOT_KEY = /^slot\.\d+\//;

function entries(arena: Arena, slots: number): { key: string; name: string; data: Floats }[] {
  const values = arena.names.map((name) => ({ key: name, name, data: arena.value(name) }));
  const states = Array.from({ length: slots }, (_, i) =>
    arena.names.map((name) => ({ key: `slot.${i}/${name}`, name, data: arena.slot(i, name) })),
  );
  return [...values, ...states.flat()];
}
