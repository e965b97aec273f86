import { statSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, writeFileAtomic } from '../files.js';
import { type StoredTensor, writeSafetensors } from '../optim/safetensors.js';
import { type CheckpointChoice, openRun } from '../run/index.js';
import { formatShape, type TensorType } from '../tensor/index.js';
import { stepPrograms } from './decode/steps.js';
import { policyOf, redecodes } from './monotonic/config.js';
import { decidingAttention } from './monotonic/steps.js';
import { firstToken, saveLanguages } from './text/languages.js';
import { special } from './text/vocabulary.js';
import { openTrained, trainedMonotonic } from './trained.js';

/** What of a run is exported. */
export interface ExportOptions {
  /** Default `best`. */
  readonly checkpoint?: CheckpointChoice;
  /** Beam that the listed candidates must suffice for. Default 5. */
  readonly beam?: number;
}

/** What was written, file by file. */
export interface Exported {
  readonly files: readonly { readonly name: string; readonly bytes: number }[];
}

/**
 * Writes a run's model for use without this library: `encoder-step.onnx` and `decoder-step.onnx` (see
 * `decode/steps.ts` for their contract), the vocabularies and text settings, and `settings.json` with the sizes, the
 * special tokens and the inputs and outputs of both models.
 */
export function exportTranslation(run: string, folder: string, options: ExportOptions = {}): Exported {
  const { model, languages, step, encoder, decoder, training } = opened(run, options);
  makeFolder(folder);
  saveLanguages(folder, languages);
  const settings = {
    format: 'tcts translation model',
    version: 1,
    ...training,
    updates: step,
    languages: { source: languages.source.config.language, target: languages.target.config.language },
    model: {
      encoder: model.encoder,
      encoderLayers: model.encoderLayers,
      decoderLayers: model.decoderLayers,
      width: model.width,
      heads: model.heads,
      maxPositions: model.maxPositions,
      vocabulary: model.vocabulary,
    },
    tokens: { start: special.eos, end: special.eos, padding: special.pad, unknown: special.unk, firstOwn: 4 },
    encoderStep: { file: ENCODER, inputs: described(encoder.inputs), outputs: described(encoder.outputs) },
    decoderStep: { file: DECODER, inputs: described(decoder.inputs), outputs: described(decoder.outputs) },
  };
  const written: [string, string | Uint8Array][] = [
    [ENCODER, encoder.onnx],
    [DECODER, decoder.onnx],
    ['settings.json', `${JSON.stringify(settings, null, 2)}\n`],
  ];
  for (const [name, content] of written) writeFileAtomic(join(folder, name), content);
  return { files: written.map(([name, content]) => ({ name, bytes: Buffer.byteLength(content) })) };
}

/** The programs of a run of any kind that translates, and what tells how it was trained: k, or its own policy. */
function opened(run: string, { checkpoint, beam }: ExportOptions) {
  if (!learnsWhenToRead(run)) {
    const { main, waits, ...trained } = openTrained(run, checkpoint);
    const programs = stepPrograms(trained.model, trained.arena, {
      beam,
      weights: true,
      first: firstToken(trained.languages),
    });
    return { ...trained, ...programs, training: { main, waits } };
  }
  const trained = trainedMonotonic(run, checkpoint);
  const { model, arena } = trained;
  const programs = stepPrograms(model, arena, { beam, attend: decidingAttention(model) });
  const { attention, candidates } = model;
  const training = {
    policy: policyOf(attention),
    attention,
    ...(candidates && { candidates }),
    redecodes: redecodes(model),
  };
  return { ...trained, ...programs, training };
}

function learnsWhenToRead(run: string): boolean {
  const { problem } = openRun(run).config as { problem?: { kind?: string } };
  return problem?.kind === 'monotonic';
}

/**
 * Writes the parameters of a run, and nothing of its optimiser, as one safetensors file: names are fairseq's, the metadata
 * tell the model's sizes and the number of updates. Of a run of any kind that translates. Returns the bytes written.
 */
export function exportParameters(run: string, file: string, checkpoint?: CheckpointChoice): number {
  const open = learnsWhenToRead(run) ? trainedMonotonic : openTrained;
  const { model, arena, step } = open(run, checkpoint);
  const tensors = arena.names.map((name): [string, StoredTensor] => {
    const data = arena.value(name) as Float32Array;
    return [name, { dtype: 'F32', shape: arena.shape(name), data }];
  });
  writeSafetensors(file, new Map(tensors), { format: 'pt', model: JSON.stringify(model), updates: String(step) });
  return statSync(file).size;
}

const ENCODER = 'encoder-step.onnx';
const DECODER = 'decoder-step.onnx';

function described(types: Readonly<Record<string, TensorType>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(types).map(([name, { dtype, shape }]) => [name, `${dtype}${formatShape(shape)}`]),
  );
}
