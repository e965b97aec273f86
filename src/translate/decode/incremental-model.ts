import type { Value } from '../../tensor/index.js';
import type { AttentionChoice } from '../policies/policy.js';
import { special } from '../text/vocabulary.js';
import { Cache, type SourceCache, type StepModel } from './step-model.js';
import { type Answers, answerRow, type Question, ReachOf, stackedAnswers, type TokenModel } from './token-model.js';

/** The Transformer's state for one sentence. */
export interface IncrementalState {
  readonly encoded: EncodedSource;
  readonly prefixes: DecodedPrefixes;
}

/**
 * The Transformer as a model for any policy: what it has computed for a sentence is kept in its state, and what is new is
 * computed for all sentences together, regardless of their lengths.
 */
export class IncrementalModel extends ReachOf<StepModel> implements TokenModel<IncrementalState> {
  /** One for each call that is in progress, usually one. */
  private readonly idle: JoinedCaches[] = [];

  begin(): IncrementalState {
    return { encoded: nothingEncoded(this.model), prefixes: new Map() };
  }

  async propose(questions: readonly Question<IncrementalState>[]): Promise<Answers> {
    const memories = await memoriesOf(
      this.model,
      questions.map(({ state, source, read }) => ({ encoded: state.encoded, source, read })),
    );
    const asked = questions.map((question, i): TargetQuestion => {
      const {
        state,
        source,
        read,
        prefix,
        redecode = this.model.redecodes,
        wait = Number.POSITIVE_INFINITY,
      } = question;
      const common = {
        prefixes: state.prefixes,
        inputs: [special.eos, ...prefix],
        memory: memories[i],
        heads: question.attention && chosenHeads(this.model, question.attention),
        ended: source[read - 1] === special.eos,
        kept: question.written === undefined ? undefined : question.written + 1,
      };
      // Decodings for another wait may be needed again; those for another number of source tokens will not.
      return redecode
        ? { ...common, key: `${REDECODED}${read}`, group: REDECODED, visible: () => read }
        : { ...common, key: `wait ${wait}`, visible: (position) => Math.min(position + wait, read) };
    });
    const joined = this.idle.pop() ?? new JoinedCaches();
    try {
      return stackedAnswers(await answersTo(this.model, asked, joined));
    } finally {
      this.idle.push(joined);
    }
  }

  async readAhead(sentences: readonly { state: IncrementalState; source: readonly number[] }[]): Promise<void> {
    if (this.model.reencodes) return;
    await readOn(
      this.model,
      sentences.map(({ state, source }) => ({ encoded: state.encoded, source, read: source.length })),
    );
  }
}

const REDECODED = 'redecoded ';

/** The decoder of one sentence after some target tokens. */
interface DecodedPrefix {
  /** Processed tokens, the start token first. */
  inputs: readonly number[];
  readonly cache: Cache;
  /** Source tokens that the last position saw. */
  visible: number;
  /** What comes next; set once something was processed. */
  answer: Answers | undefined;
  /** The heads whose attention the answer contains. */
  heads: readonly number[] | undefined;
}

/** Prefixes by what they see of the source: as many as there are hypotheses. */
type DecodedPrefixes = Map<string, readonly DecodedPrefix[]>;

/**
 * Caches of several sentences packed together for one run of the model. It is reused for the next, and what
 * has not changed is not copied again.
 */
class JoinedCaches {
  private readonly targets: Float32Array[] = [];
  private readonly memories: Float32Array[] = [];
  private last:
    | { readonly caches: readonly Cache[]; readonly lengths: readonly number[]; readonly joined: Cache }
    | undefined;

  target(caches: readonly Cache[]): Cache {
    return Cache.join(caches, 'end', this.targets);
  }

  memory(caches: readonly Cache[]): Cache {
    const { last } = this;
    const same = (cache: Cache, i: number): boolean => cache === last?.caches[i] && cache.length === last.lengths[i];
    if (last?.caches.length === caches.length && caches.every(same)) return last.joined;
    const joined = Cache.join(caches, 'start', this.memories);
    this.last = { caches, lengths: caches.map(({ length }) => length), joined };
    return joined;
  }
}

/** The next token after some inputs. */
interface TargetQuestion {
  readonly prefixes: DecodedPrefixes;
  /** The start token and what is written. */
  readonly inputs: readonly number[];
  readonly memory: Cache;
  /** The heads whose attention is requested, counted over all layers from 0. */
  readonly heads?: readonly number[];
  /** The last position sees the end of the source. */
  readonly ended: boolean;
  /** Inputs whose decoding is final; the others may have to see more of the source later. Default all. */
  readonly kept?: number;
  /** The key of prefixes that see the same part of the source as this question. */
  readonly key: string;
  /** Only requested keys of this group are kept. */
  readonly group?: string;
  /** Source tokens that a target position, from 0, sees. */
  readonly visible: (position: number) => number;
}

/** What comes next for each question, after decoding the rest of its prefix, for all questions together. */
async function answersTo(
  model: StepModel,
  questions: readonly TargetQuestion[],
  joined: JoinedCaches,
): Promise<readonly Answers[]> {
  const rows = assigned(model, questions);
  const lacking = ({ decoded, inputs }: Row): boolean => decoded.inputs.length < inputs.length;
  for (let left = rows.filter(lacking); left.length > 0; left = left.filter(lacking)) {
    for (const alike of runningTogether(left)) await takeIn(model, alike, joined);
  }
  const answers = rows.map(({ decoded }) => decoded.answer!);
  for (const { decoded, kept = decoded.inputs.length } of rows) {
    if (kept === decoded.inputs.length) continue;
    decoded.inputs = decoded.inputs.slice(0, kept);
    decoded.cache.truncate(kept);
    // The answer belongs to another question.
    decoded.visible = -1;
  }
  return answers;
}

interface Row extends TargetQuestion {
  readonly decoded: DecodedPrefix;
}

/** For each question its own prefix that holds the start of its inputs; it replaces the earlier ones. */
function assigned(model: StepModel, questions: readonly TargetQuestion[]): Row[] {
  const now = new Map<DecodedPrefixes, Map<string, DecodedPrefix[]>>();
  const taken = new Set<DecodedPrefix>();
  const rows = questions.map((question): Row => {
    const { prefixes, key } = question;
    const decoded = continued(model, question, taken);
    const own = now.get(prefixes) ?? new Map<string, DecodedPrefix[]>();
    now.set(prefixes, own.set(key, [...(own.get(key) ?? []), decoded]));
    return { ...question, decoded };
  });
  for (const { prefixes, group } of questions) {
    if (group === undefined) continue;
    for (const key of prefixes.keys()) if (key.startsWith(group)) prefixes.delete(key);
  }
  for (const [prefixes, own] of now) for (const [key, list] of own) prefixes.set(key, list);
  return rows;
}

/** The longest prefix that the inputs continue, copied if it is in use, or an empty one. */
function continued(
  model: StepModel,
  { prefixes, key, inputs, visible, heads }: TargetQuestion,
  taken: Set<DecodedPrefix>,
): DecodedPrefix {
  const fitting = (prefixes.get(key) ?? []).filter((decoded) =>
    decoded.inputs.every((token, i) => token === inputs[i]),
  );
  if (fitting.length === 0)
    return { inputs: [], cache: model.target(1), visible: 0, answer: undefined, heads: undefined };
  const longest = fitting.reduce((a, b) => (b.inputs.length > a.inputs.length ? b : a));
  const decoded = taken.has(longest) ? { ...longest, cache: longest.cache.select([0]) } : longest;
  taken.add(decoded);
  const last = inputs.length - 1;
  const unseen = heads !== undefined && decoded.heads?.join() !== heads.join();
  if (decoded.inputs.length === inputs.length && (decoded.visible !== visible(last) || unseen)) {
    // The same was asked before with another part of the source, or without its attention.
    decoded.inputs = decoded.inputs.slice(0, last);
    decoded.cache.truncate(last);
  }
  return decoded;
}

/** Rows that can run together: new ones, and those that process equally many tokens. */
function runningTogether(rows: readonly Row[]): Row[][] {
  const groups = new Map<number, Row[]>();
  for (const row of rows) {
    const key = row.decoded.inputs.length === 0 ? 0 : nextInputs(row).length;
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  return [...groups.values()];
}

/** Tokens to process at once: all next positions that see the same part of the source. */
function nextInputs({ decoded, inputs, visible }: Row): readonly number[] {
  const first = decoded.inputs.length;
  let end = first + 1;
  while (end < inputs.length && visible(end) === visible(first)) end++;
  return inputs.slice(first, end);
}

async function takeIn(model: StepModel, rows: readonly Row[], joined: JoinedCaches): Promise<void> {
  const added = rows.map(nextInputs);
  const most = Math.max(...added.map(({ length }) => length));
  const caches = rows.map(({ decoded }) => decoded.cache);
  const memories = rows.map(({ memory }) => memory);
  const alone = rows.length === 1;
  const target = alone ? caches[0] : joined.target(caches);
  const seen = rows.map(({ decoded, visible }) => visible(decoded.inputs.length));
  const answers = await model.write(target, alone ? memories[0] : joined.memory(memories), {
    // Rows without a past may be shorter. They begin later, and what precedes their position 0 is hidden.
    tokens: added.map((tokens) => [...new Array<number>(most - tokens.length).fill(special.pad), ...tokens]),
    lengths: caches.map(({ length }, i) => length - (most - added[i].length)),
    visible: seen,
    ended: rows.map(({ ended }) => ended),
    attention: rows.some(({ heads }) => heads !== undefined),
  });
  for (const [column, { decoded, heads }] of rows.entries()) {
    const { length } = added[column];
    if (!alone) decoded.cache.appendColumn(target, column, target.length - length, length);
    decoded.inputs = [...decoded.inputs, ...added[column]];
    decoded.visible = seen[column];
    const { weights } = answers;
    const attention = heads && weights ? [meanAttention(weights, column, heads, seen[column])] : undefined;
    decoded.answer = { ...answerRow(answers, column), ...(attention ? { attention } : {}) };
    decoded.heads = heads;
  }
}

/** Indices of the chosen heads among those of all layers. */
function chosenHeads({ attention }: StepModel, { layer, heads }: AttentionChoice): readonly number[] {
  if (attention === undefined) throw new TypeError('this model does not expose its attention');
  const below = attention.heads * ((layer ?? Math.ceil((2 * attention.layers) / 3)) - 1);
  const all = Array.from({ length: attention.heads }, (_, h) => h + 1);
  return (heads ?? all).map((head) => below + head - 1);
}

/** Mean attention of some heads over the first `visible` source tokens, from weights [B, L·H, S]. */
function meanAttention({ data, shape }: Value, row: number, heads: readonly number[], visible: number): Float32Array {
  const [, count, source] = shape;
  const mean = new Float32Array(visible);
  for (const head of heads) {
    const start = (row * count + head) * source;
    for (let j = 0; j < visible; j++) mean[j] += Number(data[start + j]) / heads.length;
  }
  return mean;
}

/** A model's state for the source of one sentence. */
export interface EncodedSource {
  /** What a unidirectional encoder has read. */
  source: SourceCache;
  /** Keys and values of a bidirectional encoder, by the number of tokens that were read. */
  readonly memories: Map<number, Cache>;
}

function nothingEncoded(model: StepModel): EncodedSource {
  return { source: model.source(1), memories: new Map() };
}

/** The first `read` of the known tokens of a source. */
export interface SourceQuestion {
  readonly encoded: EncodedSource;
  readonly source: readonly number[];
  readonly read: number;
}

/** Keys and values of the source for each question; for unidirectional encoders there may be more than it needs. */
async function memoriesOf(model: StepModel, questions: readonly SourceQuestion[]): Promise<Cache[]> {
  if (model.reencodes) await reencode(model, questions);
  else {
    await encodeWhole(model, questions);
    await readOn(model, questions);
  }
  return questions.map(({ encoded, read }) => encoded.memories.get(read) ?? encoded.source.memory);
}

/** Encodes further tokens one by one, for all sentences together. For unidirectional encoders. */
export async function readOn(model: StepModel, questions: readonly SourceQuestion[]): Promise<void> {
  const lacking = (): SourceQuestion[] => {
    const found = new Map<EncodedSource, SourceQuestion>();
    for (const question of questions) {
      if (question.encoded.source.memory.length < question.read) found.set(question.encoded, question);
    }
    return [...found.values()];
  };
  for (let left = lacking(); left.length > 0; left = lacking()) {
    const sources = left.map(({ encoded }) => encoded.source);
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

/** A bidirectional encoder: each further token changes the encoding of all tokens. */
async function reencode(model: StepModel, questions: readonly SourceQuestion[]): Promise<void> {
  const reads = new Map<EncodedSource, Set<number>>();
  const lacking = questions.filter(({ encoded, read }) => {
    const others = reads.get(encoded) ?? new Set();
    reads.set(encoded, others);
    const isNew = !others.has(read) && !encoded.memories.has(read);
    others.add(read);
    return isNew;
  });
  for (const [{ memories }, wanted] of reads) {
    for (const read of memories.keys()) if (!wanted.has(read)) memories.delete(read);
  }
  const encodings = await encodedTogether(model, lacking);
  for (const [i, { encoded, read }] of lacking.entries()) encoded.memories.set(read, encodings[i]);
}

/** Later tokens do not change a unidirectional encoding: a complete source is encoded at once. */
async function encodeWhole(model: StepModel, questions: readonly SourceQuestion[]): Promise<void> {
  const whole = new Map<EncodedSource, SourceQuestion>();
  for (const { encoded, source } of questions) {
    if (encoded.source.memory.length > 0 || source.at(-1) !== special.eos) continue;
    whole.set(encoded, { encoded, source, read: source.length });
  }
  const memories = await encodedTogether(model, [...whole.values()]);
  for (const [i, encoded] of [...whole.keys()].entries()) encoded.source = { encoder: undefined, memory: memories[i] };
}

async function encodedTogether(model: StepModel, questions: readonly SourceQuestion[]): Promise<Cache[]> {
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
