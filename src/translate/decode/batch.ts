import type { Policy } from '../policies/policy.js';
import { special } from '../text/vocabulary.js';
import { type Decoded, type SearchOptions, Sentence, tooLong } from './search.js';
import { Cache, type StepModel } from './step-model.js';
import { ask, TokenStream } from './stream.js';
import type { TokenModel } from './token-model.js';

export interface DecodeOptions extends SearchOptions {
  /** Sentences that are translated together. Default 64. */
  readonly batch?: number;
  /** Called with the number of sentences that are done. */
  readonly onProgress?: (done: number) => void;
}

/** Default of `DecodeOptions.batch`. */
export const SENTENCES_TOGETHER = 64;

/** Rejects a sentence that is too long for one of the models. */
export function requireShort(
  sources: readonly ArrayLike<number>[],
  models: readonly { readonly maxPositions: number }[],
): void {
  const most = Math.min(...models.map(({ maxPositions }) => maxPositions));
  sources.forEach(({ length }, i) => {
    if (length > most) throw tooLong(length, most, i + 1);
  });
}

/** Places of the sentences, that of the longest first. */
export function longestFirst(sources: readonly ArrayLike<number>[]): number[] {
  return sources.map((_, i) => i).sort((a, b) => sources[b].length - sources[a].length || a - b);
}

/**
 * Translates sentences under any policy as if each were read token by token: at each step all current sentences query
 * their models together, and a finished one makes room for the next. `sources` are token ids that end with `</s>`; the
 * results are in the same order.
 */
export async function decodeBatch(
  models: readonly TokenModel[],
  sources: readonly ArrayLike<number>[],
  policy: Policy,
  { batch = SENTENCES_TOGETHER, onProgress, ...options }: DecodeOptions = {},
): Promise<Decoded[]> {
  requireShort(sources, models);
  // Sentences of similar length go together.
  const waiting = sources.map((_, i) => i).sort((a, b) => sources[b].length - sources[a].length || b - a);
  const results = new Array<Decoded>(sources.length);
  const begin = (place: number): Running => {
    const stream = new TokenStream(models, policy, options);
    for (const token of Array.from(sources[place])) stream.feed(token);
    return { place, stream };
  };
  let running: Running[] = [];
  let done = 0;
  while (running.length > 0 || waiting.length > 0) {
    while (running.length < batch && waiting.length > 0) running.push(begin(waiting.pop()!));
    await takeTurn(models, running);
    for (const { place, stream } of running) {
      if (!stream.done) continue;
      results[place] = stream.decoded;
      done++;
    }
    running = running.filter(({ stream }) => !stream.done);
    onProgress?.(done);
  }
  return results;
}

interface Running {
  readonly place: number;
  readonly stream: TokenStream;
}

/** Each sentence asks its questions and continues with the answers. */
async function takeTurn(models: readonly TokenModel[], running: readonly Running[]): Promise<void> {
  const turns = running.map(({ stream }) => ({ stream, asked: stream.questions() }));
  const answers = await ask(
    models,
    turns.flatMap(({ asked }) => asked),
  );
  let first = 0;
  for (const { stream, asked } of turns) {
    if (asked.length > 0) stream.answer(answers.slice(first, first + asked.length));
    first += asked.length;
  }
}

/**
 * The same for policies that look at nothing, such as wait-k: all sentences of a batch write token i together, so
 * their caches stay aligned. An empty source gives an empty translation.
 */
export async function decodeInLockstep(
  model: StepModel,
  sources: readonly ArrayLike<number>[],
  policy: Policy,
  { batch = SENTENCES_TOGETHER, onProgress, ...options }: DecodeOptions = {},
): Promise<Decoded[]> {
  requireShort(sources, [model]);
  // Their arrays have room for the others.
  const order = longestFirst(sources);
  const results = new Array<Decoded>(sources.length);
  const spare: Spare = {};
  for (let start = 0; start < order.length; start += batch) {
    const chosen = order.slice(start, start + batch);
    const known = chosen.map((i): Known => ({ source: sources[i], sentence: new Sentence(policy, options, model) }));
    await decodeTogether(model, known, spare);
    chosen.forEach((i, at) => {
      results[i] = known[at].sentence.decoded;
    });
    onProgress?.(start + chosen.length);
  }
  return results;
}

/** Arrays of unused caches: filling new ones would take longer than computing their content. */
interface Spare {
  memory?: Float32Array[];
  target?: Float32Array[];
  /** The second of two target caches that alternate when a beam is reordered. */
  other?: Float32Array[];
}

/** A sentence with its source. */
interface Known {
  readonly sentence: Sentence;
  readonly source: ArrayLike<number>;
  /** Keys and values of what has been read, for encoders that re-encode with every token. */
  memory?: Cache;
}

async function decodeTogether(model: StepModel, all: readonly Known[], spare: Spare): Promise<void> {
  const begun = all.filter(({ source }) => source.length > 1);
  for (const one of all) if (!begun.includes(one)) one.sentence.takeNothing();
  if (begun.length > 0) await writeAll(model, begun, spare);
}

async function writeAll(model: StepModel, all: readonly Known[], spare: Spare): Promise<void> {
  const sources = all.map(({ source }) => source);
  const lengths = sources.map(({ length }) => length);
  // A unidirectional encoding does not depend on later tokens: all are encoded at once, and a
  // sentence sees those it has read.
  const memory = model.reencodes ? model.source(all.length).memory : await model.encode(sources, lengths, spare.memory);
  const sentences = all.map(({ sentence }) => sentence);
  const target = model.target(all.length, spare.target);
  // Most translations are about as long as their sources.
  target.reserve(Math.max(...lengths) + 4);
  let group: Group = { sentences, memory, target, other: spare.other };
  for (let active = all; active.length > 0; active = active.filter(({ sentence }) => !sentence.search.done)) {
    const changed = active.filter(readOn);
    if (changed.length > 0) {
      group = afterReading(model, group, model.reencodes ? await encodeAgain(model, active, changed) : undefined);
    }
    group = await writeRound(model, group);
  }
  if (!model.reencodes) spare.memory = group.memory.storage;
  spare.target = group.target.storage;
  spare.other = group.other;
}

/** Reads until the policy wants to write; says whether anything was read. */
function readOn({ sentence, source }: Known): boolean {
  const before = sentence.read;
  while (sentence.next === 'READ') sentence.take(sentence.read === source.length - 1);
  return sentence.read > before;
}

/** Keys and values of the source for every hypothesis of the active sentences, new for those that have read more. */
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

/** Sentences that write together: one column of the caches for each hypothesis of each, in order. */
export interface Group {
  /** Some may be finished: their columns stay until compaction pays off. */
  readonly sentences: readonly Sentence[];
  readonly target: Cache;
  /** Keys and values of the source. */
  readonly memory: Cache;
  /** Arrays for the target's cache when its columns are reordered. */
  readonly other?: Float32Array[];
}

/** Share of the columns that may belong to finished sentences. */
const IDLE = 1 / 8;

/**
 * One target token for every hypothesis of every unfinished sentence, all of the same length. Written tokens missing
 * from the target's cache are processed first. Returns the group of those that continue.
 */
export async function writeRound(model: StepModel, group: Group): Promise<Group> {
  const { sentences, target, memory } = group;
  const rows = sentences.flatMap((sentence) => sentence.search.hypotheses.map(({ tokens }) => ({ sentence, tokens })));
  const inputs = rows.map(({ sentence, tokens }) => (sentence.search.done ? undefined : taken(tokens, target.length)));
  const idle = (inputs.find((tokens) => tokens !== undefined) ?? []).map(() => special.eos);
  const candidates = await model.write(target, memory, {
    tokens: inputs.map((tokens) => tokens ?? idle),
    lengths: rows.map(() => target.length),
    visible: rows.map(({ sentence }) => (sentence.search.done ? 1 : sentence.read)),
  });
  /** Columns of sentences that continue, and of all. */
  const [kept, all]: [number[], number[]] = [[], []];
  let first = 0;
  for (const sentence of sentences) {
    const count = sentence.search.hypotheses.length;
    const columns = Array.from({ length: count }, (_, i) => first + i);
    const parents = sentence.search.done ? [] : sentence.write(candidates, first).map((parent) => first + parent);
    kept.push(...parents);
    all.push(...(sentence.search.done ? columns : parents));
    first += count;
  }
  if (kept.length === 0) return { ...group, sentences: [] };
  const mayIdle = !model.reencodes && !model.redecodes && all.every((column, row) => column === row);
  if (mayIdle && all.length === rows.length && kept.length > (1 - IDLE) * all.length) return group;
  const same = (column: number, row: number): boolean => column === row;
  const sameSentence = (column: number, row: number): boolean => rows[column].sentence === rows[row].sentence;
  const next = rearranged(target, kept, same, group.other);
  return {
    sentences: sentences.filter(({ search }) => !search.done),
    target: next,
    memory: rearranged(memory, kept, sameSentence),
    other: next.storage === target.storage ? group.other : target.storage,
  };
}

/** The written tokens, preceded by `</s>`, that a decoder still has to process after the first `length`. */
function taken(tokens: readonly number[], length: number): number[] {
  return length === 0 ? [special.eos, ...tokens] : tokens.slice(length - 1);
}

/** The group after a read, with the new keys and values of the source if there are any. */
function afterReading(model: StepModel, group: Group, memory: Cache = group.memory): Group {
  const { sentences, target, other } = group;
  return { sentences, memory, target: model.redecodes ? model.target(target.batch, target.storage) : target, other };
}

function rearranged(
  cache: Cache,
  columns: readonly number[],
  same: (column: number, row: number) => boolean,
  arrays?: Float32Array[],
): Cache {
  if (columns.length === cache.batch && columns.every(same)) return cache;
  const rising = columns.length > 0 && columns.every((column, i) => i === 0 || column > columns[i - 1]);
  return rising ? cache.narrowed(columns) : cache.select(columns, arrays);
}
