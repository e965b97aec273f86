import { type DeviceChoice, deviceFor } from '../../devices.js';
import { InputError } from '../../errors.js';
import type { Arena } from '../../optim/index.js';
import { type CheckpointChoice, openRun } from '../../run/index.js';
import { type Executable, Session } from '../../tensor/index.js';
import type { TranslationModel } from '../model/config.js';
import { policyOf, redecodes } from '../monotonic/config.js';
import { createPolicy, ownPolicy, type PolicySpec, parsePolicies, type TrainedFor } from '../policies/index.js';
import type { Policy } from '../policies/policy.js';
import type { ArrivingWord } from '../text/arriving.js';
import { firstToken, type Language, type Languages } from '../text/languages.js';
import { textPipeline } from '../text/pipeline.js';
import { special } from '../text/vocabulary.js';
import { decidingAttention, openTrained, trainedMonotonic } from '../trained.js';
import {
  type DecodeOptions,
  decodeBatch,
  decodeInLockstep,
  longestFirst,
  requireShort,
  SENTENCES_TOGETHER,
} from './batch.js';
import { DecodeThreads } from './decode-threads.js';
import { IncrementalModel } from './incremental-model.js';
import { type Decoded, searchDefaults, tooLong } from './search.js';
import { StepModel, type StepProgram } from './step-model.js';
import { type SourceAttention, stepPrograms } from './steps.js';
import { requireAttention, type StreamEvent } from './stream.js';
import { lineIds, type TextSide, TextStream, type TextStreamOptions } from './text-stream.js';
import type { TokenModel } from './token-model.js';

/** How the models are opened. */
export interface TranslatorOptions extends OpenOptions {
  /**
   * Threads that share sentences which are translated together, each with its own copy of the models. They know only
   * policies that come with the package, or with a module that `node --import` has loaded. Default 1.
   */
  readonly workers?: number;
}

export interface LineOptions extends DecodeOptions {
  /**
   * Called with the index, from 0, of a line that is too long for the models, and the reason; its translation is empty.
   * Default: such a line is an error, and nothing is translated.
   */
  readonly onTooLong?: (line: number, reason: InputError) => void;
}

/** A translation with the milliseconds of computation until each token was written, and until the end. */
export interface TimedDecoded extends Decoded {
  readonly computed: readonly number[];
}

/** A translation with its score: Σ log p / length^α. */
export interface ScoredText {
  readonly text: string;
  readonly score: number;
}

/** How threads are best used for sentences that are translated together: on the CPU each translates its own. */
export function sharedAmong(threads: number | undefined, device: DeviceChoice = 'cpu'): TranslatorOptions {
  return device === 'cpu' ? { workers: threads } : { threads };
}

/** The models of one or more runs together with their languages: text in, text out, under any policy. */
export class Translator {
  /** The models for policies, in the order of the runs. */
  readonly models: readonly TokenModel[];

  private constructor(
    private readonly opened: readonly OpenedModel[],
    readonly source: TextSide,
    readonly target: TextSide,
    private readonly helpers: DecodeThreads | undefined,
  ) {
    this.models = opened.map(({ steps }) => new IncrementalModel(steps));
  }

  /**
   * Opens the model of a run.
   *
   * @param more runs with the same vocabularies, for policies that choose among several models
   */
  static async open(run: string, options: TranslatorOptions = {}, more: readonly string[] = []): Promise<Translator> {
    const { workers = 1, ...own } = options;
    const opened: OpenedModel[] = [];
    try {
      for (const folder of [run, ...more]) {
        opened.push(await openModel(folder, own));
        requireSame(opened[0].languages, opened.at(-1)!.languages, folder);
      }
      const { source, target } = opened[0].languages;
      const helpers = workers === 1 ? undefined : new DecodeThreads(workers - 1, { run, options: own, more });
      return new Translator(opened, await textSide(source), await textSide(target), helpers);
    } catch (error) {
      await closeAll(opened);
      throw error;
    }
  }

  /** What the models were trained to translate with. */
  get training(): readonly TrainedFor[] {
    return this.opened.map(({ training }) => training);
  }

  /** Updates that made the parameters of the first model. */
  get step(): number {
    return this.opened[0].step;
  }

  /** The policies that a text names (see `parsePolicies`). Default the one that the first model was trained for. */
  policies(text?: string): Policy[] {
    if (text === undefined) return [ownPolicy(this.training)];
    return parsePolicies(text).map((spec) => this.create(spec));
  }

  /** As `policies`, for a text that names one. */
  policy(text?: string): Policy {
    if (text === undefined) return ownPolicy(this.training);
    const [spec, ...others] = parsePolicies(text);
    if (others.length === 0) return this.create(spec);
    throw new InputError(`expected one policy, found ${others.length + 1} in ${text}`, { key: 'policy' });
  }

  private create(spec: PolicySpec): Policy {
    const policy = createPolicy(spec, this.training);
    requireAttention(policy, this.models);
    return policy;
  }

  /** One sentence, word by word. */
  stream(policy: Policy, options?: TextStreamOptions): TextStream {
    return new TextStream(this.models, this.source, this.target, policy, options);
  }

  /** Sentences of token ids that end with `</s>`, as if each were read token by token. */
  translate(sources: readonly ArrayLike<number>[], policy: Policy, given: DecodeOptions = {}): Promise<Decoded[]> {
    const [{ steps }] = this.opened;
    // A policy that looks at nothing lets sentences write in lockstep, which is faster.
    const together = policy.look === undefined && !steps.decides && (given.speculate ?? 0) === 0;
    const here = (some: readonly ArrayLike<number>[], options: DecodeOptions): Promise<Decoded[]> =>
      together ? decodeInLockstep(steps, some, policy, options) : decodeBatch(this.models, some, policy, options);
    const { batch = SENTENCES_TOGETHER } = given;
    if (this.helpers === undefined || sources.length <= batch) return here(sources, given);
    // Sentences that do not write in lockstep make room for others, so a part should have many more than write together.
    const many = Math.ceil(sources.length / (PARTS_EACH * (this.helpers.count + 1)));
    return this.shared(this.helpers, sources, { policy, given, size: together ? batch : Math.max(batch, many) }, here);
  }

  private async shared(
    helpers: DecodeThreads,
    sources: readonly ArrayLike<number>[],
    { policy, given, size }: { policy: Policy; given: DecodeOptions; size: number },
    here: (some: readonly ArrayLike<number>[], options: DecodeOptions) => Promise<Decoded[]>,
  ): Promise<Decoded[]> {
    requireShort(sources, this.models);
    const { onProgress, ...options } = given;
    const order = longestFirst(sources);
    const places = Array.from({ length: Math.ceil(order.length / size) }, (_, i) =>
      order.slice(i * size, (i + 1) * size),
    );
    const parts = places.map((own) => ({ sources: own.map((i) => sources[i]), policy: policy.name, options }));
    const results = new Array<Decoded>(sources.length);
    let done = 0;
    await helpers.share(
      parts,
      (part) => here(part.sources, part.options),
      (part, decoded) => {
        places[part].forEach((i, at) => {
          results[i] = decoded[at];
        });
        done += decoded.length;
        onProgress?.(done);
      },
    );
    return results;
  }

  /**
   * Each sentence separately, word by word as fast as possible, with its times. As in SimulEval, a token
   * comes when the source that was read has passed and all computation up to it is done: nothing is computed while the next
   * word is spoken.
   */
  async timedStreams(
    sentences: readonly (readonly ArrivingWord[])[],
    policy: Policy,
    { onProgress, ...options }: TextStreamOptions & Pick<DecodeOptions, 'onProgress'> = {},
  ): Promise<TimedDecoded[]> {
    const translated = async (words: readonly ArrivingWord[]): Promise<TimedDecoded> => {
      const computed: number[] = [];
      const began = performance.now();
      const onEvent = ({ action }: StreamEvent): void => {
        if (action === 'WRITE') computed.push(performance.now() - began);
      };
      const stream = this.stream(policy, { ...options, onEvent });
      for (const { word, joined } of words) await stream.push(word, joined);
      await stream.end();
      return { ...stream.decoded, computed: [...computed, performance.now() - began] };
    };
    // Once before the clock counts: the first calls of a session are slow.
    if (sentences.length > 0) await translated(sentences[0]);
    const decoded: TimedDecoded[] = [];
    for (const words of sentences) {
      decoded.push(await translated(words));
      onProgress?.(decoded.length);
    }
    return decoded;
  }

  /** Whole lines, as if each were read token by token. */
  async lines(lines: readonly string[], policy: Policy, options?: LineOptions): Promise<string[]> {
    return (await this.decodedLines(lines, policy, options)).map((decoded) => this.text(decoded));
  }

  /** The same with the best `nbest` translations of each line and their scores, the best first. */
  async nbestLines(lines: readonly string[], policy: Policy, options: LineOptions): Promise<ScoredText[][]> {
    return (await this.decodedLines(lines, policy, options)).map(({ nbest = [] }) =>
      nbest.map(({ tokens, score }) => ({ text: this.text({ tokens: Int32Array.from(tokens) }), score })),
    );
  }

  private decodedLines(
    lines: readonly string[],
    policy: Policy,
    { onTooLong, ...options }: LineOptions = {},
  ): Promise<Decoded[]> {
    const most = Math.min(...this.models.map(({ maxPositions }) => maxPositions));
    const sources = lines.map((line, i) => {
      const ids = lineIds(this.source, line);
      if (ids.length <= most || onTooLong === undefined) return ids;
      onTooLong(i, tooLong(ids.length, most));
      return Int32Array.of(special.eos);
    });
    return this.translate(sources, policy, options);
  }

  /** The text of a translation. */
  text({ tokens }: Pick<Decoded, 'tokens'>): string {
    return this.target.pipeline.decode(this.target.vocabulary.decode(tokens));
  }

  /** Releases native memory and threads. */
  async close(): Promise<void> {
    await this.helpers?.stop();
    await closeAll(this.opened);
  }
}

/** Parts of a text for each thread: the last ones to be done should be small. */
const PARTS_EACH = 4;

async function textSide(language: Language): Promise<TextSide> {
  return { pipeline: await textPipeline(language.config, language), vocabulary: language.vocabulary };
}

function requireSame(expected: Languages, found: Languages, folder: string): void {
  for (const side of ['source', 'target'] as const) {
    if (expected[side].vocabulary.format() === found[side].vocabulary.format()) continue;
    throw new InputError(`its ${side} vocabulary differs from that of the first run`, { file: folder });
  }
}

async function closeAll(opened: readonly OpenedModel[]): Promise<void> {
  for (const { steps } of opened) await steps.close();
}

export interface OpenOptions {
  /** The parameters that were best on the main task, or the latest. Default `best`. */
  readonly checkpoint?: CheckpointChoice;
  /** Largest beam that will be searched with. Default 5. */
  readonly beam?: number;
  /** Threads inside one operation. Default 1. */
  readonly threads?: number;
  /** What computes. Default cpu. */
  readonly device?: DeviceChoice;
}

/** A run's model, ready to read and write. */
export interface OpenedModel {
  readonly steps: StepModel;
  readonly languages: Languages;
  readonly training: TrainedFor;
  /** Updates that made the parameters. */
  readonly step: number;
}

/** Opens the model of a run of any kind that translates. */
async function openModel(run: string, options: OpenOptions = {}): Promise<OpenedModel> {
  const { problem } = openRun(run).config as { problem?: { kind?: string } };
  switch (problem?.kind) {
    case 'translation':
      return openTranslation(run, options);
    case 'monotonic':
      return openMonotonic(run, options);
    default:
      throw new InputError('the run is not a translation run', { file: run, key: 'problem.kind' });
  }
}

async function openTranslation(run: string, { checkpoint, beam, threads, device }: OpenOptions): Promise<OpenedModel> {
  const { model, arena, waits, main, languages, step } = openTrained(run, checkpoint);
  const first = firstToken(languages);
  const steps = await createStepModel(model, arena, { beam, threads, device, redecodes: waits === 'full', first });
  return { steps, languages, step, training: waits === 'full' ? 'full' : main };
}

/** A run whose `problem.kind` is `monotonic`, to be run under the policy of its attention. */
async function openMonotonic(run: string, { checkpoint, beam, threads, device }: OpenOptions): Promise<OpenedModel> {
  const { model, arena, languages, step } = trainedMonotonic(run, checkpoint);
  const options = { beam, threads, device, redecodes: redecodes(model) };
  const steps = await createStepModel(model, arena, options, decidingAttention(model));
  return { steps, languages, step, training: policyOf(model.attention) };
}

export interface StepModelOptions {
  /** Largest beam that will be searched with. Default 5. */
  readonly beam?: number;
  /**
   * Re-decode what is written after every READ. Right for a model that was trained on whole sentences: all
   * states of its decoder saw the same source. Default false.
   */
  readonly redecodes?: boolean;
  /** Threads inside one operation. Default 1. */
  readonly threads?: number;
  /** What computes. Default cpu. */
  readonly device?: DeviceChoice;
  /** Id of the token that every output begins with, such as the code of a language. Default: the model chooses. */
  readonly first?: number;
}

/** A trained model, ready to read and write token by token. */
export async function createStepModel(
  model: TranslationModel,
  arena: Arena,
  options: StepModelOptions = {},
  attend?: SourceAttention,
): Promise<StepModel> {
  const { beam = searchDefaults.beam, redecodes = false, threads = 1, first } = options;
  const device = deviceFor(options.device ?? 'cpu', arena.parameterCount);
  const { encoder, decoder } = stepPrograms(model, arena, { beam, attend, first, device });
  const open = async (executable: Executable): Promise<StepProgram> => {
    const session = await Session.create(executable, { threads });
    return {
      inputs: Object.keys(executable.inputs),
      outputs: Object.keys(executable.outputs),
      run: (feeds, outputs, into) => session.run(feeds, { outputs, into }),
      close: () => session.close(),
    };
  };
  // Most policies do not look at the attention; a decoder that outputs it is compiled when one does.
  const attending = () => open(stepPrograms(model, arena, { beam, first, weights: true, device }).decoder);
  const shape = { ...model, beam, redecodes };
  return new StepModel(await open(encoder), await open(decoder), shape, attend === undefined ? attending : undefined);
}
