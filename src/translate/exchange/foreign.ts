import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { InputError } from '../../errors.js';
import { makeFolder, writeFileAtomic } from '../../files.js';
import { traceModel } from '../../optim/index.js';
import type { StoredTensor } from '../../optim/safetensors.js';
import { checkpointFolder, createRun, isRun, recordState, resolvedYaml, saveCheckpoint } from '../../run/index.js';
import { evaluationMode, type TranslationModel } from '../model/config.js';
import { lossInputs, lossModel } from '../model/transformer.js';
import type { Languages } from '../text/languages.js';
import { FULL, saveTranslation } from '../trained.js';

/** A model trained with another tool, with this library's names and order. */
export interface ForeignModel {
  readonly model: TranslationModel;
  readonly languages: Languages;
  /** By the names of `model/transformer.ts`. */
  readonly parameters: ReadonlyMap<string, Float32Array>;
}

/** A tensor of a checkpoint, read on demand. */
export interface ForeignTensor {
  readonly shape: readonly number[];
  floats(): Float32Array;
}

/** What `foreignParameters` needs from a checkpoint. */
export interface ForeignParameters {
  /** By the names of `model/transformer.ts`. */
  readonly tensors: ReadonlyMap<string, ForeignTensor>;
  /** Id in the checkpoint of each of our ids, −1 for none. Default: the same ids. */
  readonly rows?: { readonly source: readonly number[]; readonly target: readonly number[] };
  /** Name of a tensor in the checkpoint, for messages. */
  nameOf(name: string): string;
  readonly file: string;
}

/** A logit for tokens that the checkpoint does not have: their relative probability is e^−50. */
const ABSENT = -50;

/** All parameters of a model from the tensors of a checkpoint, all of which must be used. */
export function foreignParameters(model: TranslationModel, from: ForeignParameters): Map<string, Float32Array> {
  const { tensors, rows, nameOf, file } = from;
  requireSizes(model, file);
  const { parameters } = traceModel(lossModel(evaluationMode(model), { smoothing: 0 }), lossInputs);
  const found = new Map<string, Float32Array>();
  for (const { name, shape } of parameters) {
    const tensor = tensors.get(name);
    const ids = rows && /embed_tokens|output_projection/.test(name) ? rows[sideOf(name)] : undefined;
    const size = ids === undefined ? undefined : Math.max(...ids) + 1;
    const expected = size === undefined ? shape : [size, ...shape.slice(1)];
    if (tensor === undefined)
      throw new InputError('the checkpoint does not have this tensor', { file, key: nameOf(name) });
    if (tensor.shape.join() !== expected.join()) {
      const there = `[${tensor.shape.join(', ')}]`;
      throw new InputError(`the tensor is ${there}, expected [${expected.join(', ')}]`, { file, key: nameOf(name) });
    }
    const numbers = tensor.floats();
    if (!numbers.every(Number.isFinite)) throw new InputError('the tensor is not finite', { file, key: nameOf(name) });
    found.set(
      name,
      ids === undefined ? numbers : reordered(numbers, ids, shape[1] ?? 1, shape.length === 1 ? ABSENT : 0),
    );
  }
  const [left] = [...tensors.keys()].filter((name) => !found.has(name));
  if (left !== undefined) throw new InputError('the model has no place for this tensor', { file, key: nameOf(left) });
  return found;
}

/** Checks the sizes before anything is built from them. */
function requireSizes(model: TranslationModel, file: string): void {
  for (const key of ['encoderLayers', 'decoderLayers', 'width', 'ffn', 'heads', 'maxPositions'] as const) {
    if (Number.isSafeInteger(model[key]) && model[key] >= 1) continue;
    throw new InputError(`the checkpoint says ${model[key]} for ${key}, expected a whole number of at least 1`, {
      file,
    });
  }
  const { width, heads, sharedEmbeddings, vocabulary } = model;
  if (width < 4 || width % 2 !== 0 || width % heads !== 0) {
    throw new InputError(`expected an even width that ${heads} heads can share, found ${width}`, { file });
  }
  if (sharedEmbeddings === 'all' && vocabulary.source !== vocabulary.target) {
    const sizes = `${vocabulary.source} and ${vocabulary.target}`;
    throw new InputError(`one table for both languages needs one vocabulary, found ${sizes} entries`, { file });
  }
}

function sideOf(name: string): 'source' | 'target' {
  return name.startsWith('encoder.') ? 'source' : 'target';
}

function reordered(numbers: Float32Array, ids: readonly number[], width: number, absent: number): Float32Array {
  const rows = new Float32Array(ids.length * width).fill(absent);
  ids.forEach((id, i) => {
    if (id >= 0) rows.set(numbers.subarray(id * width, (id + 1) * width), i * width);
  });
  return rows;
}

/** What the run folder of an imported model contains besides the model. */
export interface ImportedRunOptions {
  /** A corpus for `tcts evaluate`. Default none. */
  readonly data?: string;
  /** What it was imported from, for the record. */
  readonly from: string;
}

/**
 * Writes the model as a run folder whose one task is to translate whole sentences, and `start.yaml` in it: what the
 * keys a training needs to start from it. The folder appears when it is complete.
 */
export function saveImported(
  folder: string,
  { model, languages, parameters }: ForeignModel,
  { data, from }: ImportedRunOptions,
): void {
  if (isRun(folder)) throw new InputError('there is already a run: choose another name', { file: folder });
  const { vocabulary, ...keys } = model;
  const problem = { kind: 'translation', waits: 'full', model: keys };
  const own = data === undefined ? problem : { ...problem, data: { from: 'corpus', folder: resolve(data) } };
  const above = dirname(resolve(folder));
  makeFolder(above);
  const partial = mkdtempSync(join(above, '.tcts-import-'));
  try {
    const run = createRun(join(partial, basename(folder)), {
      config: { seed: 1, problem: own, imported: from },
      seed: 1,
    });
    try {
      saveTranslation(run.path, languages, { model, main: FULL, waits: 'full' });
      const shapes = new Map(parametersOf(model).map(({ name, shape }) => [name, shape]));
      const tensors = [...parameters].map(([name, numbers]): [string, StoredTensor] => [
        `problem/model/${name}`,
        { dtype: 'F32', shape: shapes.get(name) ?? [numbers.length], data: numbers },
      ]);
      const state = { subject: { problem: { model: null } } };
      saveCheckpoint(checkpointFolder(run.path), { step: 0, tensors: new Map(tensors), state });
      const start = { problem: { model: keys, warmStart: resolve(folder) } };
      writeFileAtomic(join(run.path, 'start.yaml'), `${START}${resolvedYaml(start)}`);
      recordState(run, 'finished');
    } finally {
      run.lock.release();
    }
    renameSync(run.path, folder);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

const START = `# A configuration that begins with "extends:" and the path of this file trains the imported model further,
# with problem.kind translation or monotonic.
`;

function parametersOf(model: TranslationModel) {
  return traceModel(lossModel(evaluationMode(model), { smoothing: 0 }), lossInputs).parameters;
}
