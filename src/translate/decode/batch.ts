import { InputError } from '../../errors.js';
import { Cache } from './cache.js';
import { afterReading, type Group, writeRound } from './group.js';
import type { Policy } from './policy.js';
import type { SearchOptions } from './search.js';
import { type Decoded, Sentence } from './sentence.js';
import type { StepModel } from './step-model.js';

export interface BatchOptions extends SearchOptions {
  /** Sentences that are translated together. Default 64. */
  readonly batch?: number;
  /** Called with the number of sentences that are done. */
  readonly onProgress?: (done: number) => void;
}

/**
 * Translates sentences as if each were read token by token under the policy. `sources` are token ids that end with
 * `</s>`; one without a word before it is translated to nothing. Sentences of similar length go together; the results
 * are in the order of the sources.
 */
export async function translateBatch(
  model: StepModel,
  sources: readonly ArrayLike<number>[],
  policy: Policy,
  { batch = 64, onProgress, ...options }: BatchOptions = {},
): Promise<Decoded[]> {
  sources.forEach(({ length }, i) => {
    if (length > model.maxPositions) throw tooLong(length, model.maxPositions, i + 1);
  });
  const order = sources.map((_, i) => i).sort((a, b) => sources[a].length - sources[b].length || a - b);
  const results = new Array<Decoded>(sources.length);
  for (let start = 0; start < order.length; start += batch) {
    const chosen = order.slice(start, start + batch);
    const decoded = await translateTogether(
      model,
      chosen.map((i) => sources[i]),
      policy,
      options,
    );
    chosen.forEach((i, at) => {
      results[i] = decoded[at];
    });
    onProgress?.(start + chosen.length);
  }
  return results;
}

/** The model has no positions for a sentence, whose number may be given. */
export function tooLong(length: number, most: number, number?: number): InputError {
  const sentence = number === undefined ? 'the sentence' : `sentence ${number}`;
  return new InputError(`${sentence} has ${length} tokens with its end, the model reads at most ${most}`);
}

/** A sentence whose source is at hand. */
interface Known {
  readonly sentence: Sentence;
  readonly source: ArrayLike<number>;
  /** Keys and values of what has been read, where they are made anew with every token. */
  memory?: Cache;
}

async function translateTogether(
  model: StepModel,
  sources: readonly ArrayLike<number>[],
  policy: Policy,
  options: SearchOptions,
): Promise<Decoded[]> {
  const all = sources.map((source): Known => ({ source, sentence: new Sentence(policy, options, model) }));
  const begun = all.filter(({ source }) => source.length > 1);
  for (const one of all) if (!begun.includes(one)) one.sentence.takeNothing();
  if (begun.length > 0) await writeAll(model, begun);
  return all.map(({ sentence }) => sentence.decoded);
}

async function writeAll(model: StepModel, all: readonly Known[]): Promise<void> {
  const sources = all.map(({ source }) => source);
  const lengths = sources.map(({ length }) => length);
  // What a unidirectional encoder makes of a token does not depend on those after it: all are encoded at once, and a
  // sentence sees as many as it has read.
  const memory = model.reencodes ? model.source(all.length).memory : await model.encode(sources, lengths);
  const sentences = all.map(({ sentence }) => sentence);
  let group: Group = { sentences, memory, target: model.target(all.length) };
  while (group.sentences.length > 0) {
    const active = all.filter(({ sentence }) => !sentence.search.done);
    const changed = active.filter(readOn);
    if (changed.length > 0) {
      group = afterReading(model, group, model.reencodes ? await encodeAgain(model, active, changed) : undefined);
    }
    group = await writeRound(model, group);
  }
}

/** Reads until the policy wants to write; says whether anything was read. */
function readOn({ sentence, source }: Known): boolean {
  const before = sentence.read;
  while (sentence.next === 'READ') sentence.take(sentence.read === source.length - 1);
  return sentence.read > before;
}

/** Keys and values of the source for every hypothesis of the active sentences, new for those that have read on. */
async function encodeAgain(model: StepModel, active: readonly Known[], changed: readonly Known[]): Promise<Cache> {
  const memory = await model.encode(
    changed.map(({ source }) => source),
    changed.map(({ sentence }) => sentence.read),
  );
  changed.forEach((one, column) => {
    one.memory = memory.select([column]);
  });
  const rows = active.flatMap(({ memory: own, sentence }) => sentence.search.hypotheses.map(() => own!));
  return Cache.join(rows, 'start');
}
