import { special } from '../text/vocabulary.js';
import { Cache } from './cache.js';
import type { Source } from './step-model.js';
import type { StepwiseModel } from './token-model.js';

/** What a model keeps of the source of one sentence. */
export interface HeardSource {
  /** What a unidirectional encoder has read. */
  source: Source;
  /** Keys and values of a bidirectional encoder, by the number of tokens that were read. */
  readonly memories: Map<number, Cache>;
}

export function nothingHeard(model: StepwiseModel): HeardSource {
  return { source: model.source(1), memories: new Map() };
}

/** The first `read` of the tokens that are known of a source. */
export interface SourceQuestion {
  readonly heard: HeardSource;
  readonly source: readonly number[];
  readonly read: number;
}

/** Keys and values of the source for each question; for unidirectional encoders there may be more than it asks for. */
export async function memoriesOf(model: StepwiseModel, questions: readonly SourceQuestion[]): Promise<Cache[]> {
  if (model.reencodes) await encodeAnew(model, questions);
  else {
    await encodeWhole(model, questions);
    await readOn(model, questions);
  }
  return questions.map(({ heard, read }) => heard.memories.get(read) ?? heard.source.memory);
}

/** Encodes tokens one by one behind those that are encoded, of all sentences together. For unidirectional encoders. */
export async function readOn(model: StepwiseModel, questions: readonly SourceQuestion[]): Promise<void> {
  const lacking = (): SourceQuestion[] => {
    const found = new Map<HeardSource, SourceQuestion>();
    for (const question of questions) {
      if (question.heard.source.memory.length < question.read) found.set(question.heard, question);
    }
    return [...found.values()];
  };
  for (let left = lacking(); left.length > 0; left = lacking()) {
    const sources = left.map(({ heard }) => heard.source);
    const lengths = sources.map(({ memory }) => memory.length);
    const tokens = left.map(({ source }, i) => source[lengths[i]]);
    if (left.length === 1) {
      await model.read(sources[0], tokens, lengths);
      continue;
    }
    const encoders = sources.map(({ encoder }) => encoder!);
    const together = { encoder: Cache.join(encoders, 'end'), memory: model.source(left.length).memory };
    await model.read(together, tokens, lengths);
    sources.forEach(({ memory }, column) => {
      encoders[column].appendColumn(together.encoder, column, together.encoder.length - 1, 1);
      memory.appendColumn(together.memory, column, 0, 1);
    });
  }
}

/** A bidirectional encoder: with each token, what is known of the source becomes another thing. */
async function encodeAnew(model: StepwiseModel, questions: readonly SourceQuestion[]): Promise<void> {
  const reads = new Map<HeardSource, Set<number>>();
  const lacking = questions.filter(({ heard, read }) => {
    const others = reads.get(heard) ?? new Set();
    reads.set(heard, others);
    const isNew = !others.has(read) && !heard.memories.has(read);
    others.add(read);
    return isNew;
  });
  for (const [{ memories }, wanted] of reads) {
    for (const read of memories.keys()) if (!wanted.has(read)) memories.delete(read);
  }
  const encoded = await encodedTogether(model, lacking);
  for (const [i, { heard, read }] of lacking.entries()) heard.memories.set(read, encoded[i]);
}

/** A unidirectional encoder makes the same of a token whatever comes after it: a source known to its end is encoded at once. */
async function encodeWhole(model: StepwiseModel, questions: readonly SourceQuestion[]): Promise<void> {
  const whole = new Map<HeardSource, SourceQuestion>();
  for (const { heard, source } of questions) {
    if (heard.source.memory.length > 0 || source.at(-1) !== special.eos) continue;
    whole.set(heard, { heard, source, read: source.length });
  }
  const encoded = await encodedTogether(model, [...whole.values()]);
  for (const [i, heard] of [...whole.keys()].entries()) heard.source = { encoder: undefined, memory: encoded[i] };
}

async function encodedTogether(model: StepwiseModel, questions: readonly SourceQuestion[]): Promise<Cache[]> {
  if (questions.length === 0) return [];
  const memory = await model.encode(
    questions.map(({ source }) => source),
    questions.map(({ read }) => read),
  );
  return questions.map(({ read }, column) => {
    const own = model.source(1).memory;
    own.appendColumn(memory, column, 0, read);
    return own;
  });
}
