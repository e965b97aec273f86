import { join } from 'node:path';
import type { DeviceChoice } from '../devices.js';
import { InputError } from '../errors.js';
import { makeFolder, writeFileAtomic } from '../files.js';
import {
  bleuMetric,
  bleuTokenizer,
  type CorpusLatency,
  chrfMetric,
  corpusBleu,
  corpusChrf,
  corpusLatency,
  type LatencyConvention,
  type LatencyInstance,
  type LatencyUnit,
  latencyUnit,
  multiBleu,
  referenceLength,
  type TokenizerName,
  tokenizers,
} from '../metrics/index.js';
import {
  type CheckpointChoice,
  dataDigest,
  dataName,
  type EvaluatedData,
  evaluationFolder,
  writeScores,
} from '../run/index.js';
import { madeUpText, type TranslationDataConfig } from './config.js';
import { requireLanguages } from './corpus/corpus.js';
import { type Decoded, type SearchOptions, searchDefaults, tooLong } from './decode/search.js';
import { lineIds, type TextSide, tokensByWord, unitDelays, writtenText } from './decode/text-stream.js';
import { sharedAmong, type TimedDecoded, Translator } from './decode/translator.js';
import { fileNameOf } from './policies/index.js';
import type { Policy } from './policies/policy.js';
import { type ArrivingWord, arrivingWords } from './text/arriving.js';
import { lowercase } from './text/pipeline.js';
import { special } from './text/vocabulary.js';
import { evaluatedData, openData } from './training.js';

/** What to translate, and with which policies and search. */
export interface TranslationEvaluationOptions
  extends Pick<SearchOptions, 'beam' | 'earlyEnd' | 'lengthPenalty' | 'speculate'> {
  /** Policies to evaluate with, as `parsePolicies` reads them. Default the one that the model was trained for. */
  readonly policies?: readonly string[];
  /** Additional runs that policies may choose from, with the same vocabularies. Default none. */
  readonly models?: readonly string[];
  /** Split of the corpus. Default `test`. */
  readonly split?: string;
  /** Another corpus than the run was trained with; its text is encoded as the run's. Default the run's own. */
  readonly corpus?: string;
  /** Tokeniser of sacreBLEU. Default that of the target language (`bleuTokenizer`). */
  readonly tokenize?: TokenizerName;
  /** Unit of the latency `simuleval`. Default characters for targets without spaces, otherwise words. */
  readonly unit?: LatencyUnit;
  /**
   * Translate sentence by sentence, as streams, and also measure computation time: milliseconds that a source word
   * (or character, if it is read by characters) lasts. Default: sentences are translated together, without a clock.
   */
  readonly computationAware?: number;
  /** Default `best`. */
  readonly checkpoint?: CheckpointChoice;
  /** Sentences translated together. Default 64. */
  readonly batch?: number;
  /** Threads that share the sentences, as `workers` of a translator; those of an operation if it is timed. Default 1. */
  readonly threads?: number;
  /** What computes. Default cpu. */
  readonly device?: DeviceChoice;
  /** Called with the policy and how many of its sentences are done. */
  readonly onProgress?: (policy: string, done: number, total: number) => void;
  /** Called with the line, from 1, of a source that is too long for the model, and why; its translation is empty. */
  readonly onTooLong?: (line: number, reason: InputError) => void;
}

/** The quality and latency of a model under one policy. */
export interface TranslationScores {
  /** As `parsePolicies` reads it. */
  readonly policy: string;
  /** k of wait-k, `full` where the whole source is read first; null for other policies. */
  readonly k: number | 'full' | null;
  readonly sentences: number;
  readonly data: EvaluatedData;
  /** BLEU of the tokenised text, as multi-bleu.perl prints it. */
  readonly bleu: number;
  /**
   * BLEU of the detokenised text, as sacreBLEU prints it, and what is needed to reproduce it. Case is ignored
   * (`case:lc`) if the run lowercases its text.
   */
  readonly sacrebleu: number;
  readonly signature: string;
  /** chrF2 of the detokenised text. */
  readonly chrf: number;
  readonly chrfSignature: string;
  /** Words of the output over words of the references, tokenised. */
  readonly lengthRatio: number;
  /** Sentences that ended before the end of their source was read. */
  readonly endedEarly: number;
  /** Sentences whose source is too long for the model: their translation is empty. */
  readonly tooLong: number;
  /** What `latency.simuleval` counts. */
  readonly unit: LatencyUnit;
  /**
   * `stacl`: subwords and the length of the output. `simuleval`: words or characters and the length of the reference.
   * Null if nothing was written at all.
   */
  readonly latency: Readonly<Record<LatencyConvention, CorpusLatency | null>>;
  /** `latency.simuleval` with computation time, where it was measured. */
  readonly computationAware?: {
    /** Milliseconds that a source word or character lasts. */
    readonly unitMilliseconds: number;
    readonly latency: CorpusLatency | null;
  };
  /** Sentences translated per second, together in batches; one by one where computation time is measured. */
  readonly speed: number;
  /** Folder of the outputs and of `instances.log`. */
  readonly folder: string;
}

/**
 * Translates a split of a corpus under one or more policies and scores it. Everything is kept in the run folder, as
 * `evaluation/<split>-<policy>-…/`, with the name of the data as its suffix if they are not the run's own: `output.txt`
 * and `reference.txt` (text, as it is compared), `output.tok` and `reference.tok` (tokenised), `instances.log` and
 * `config.yaml` (what SimulEval's `--score-only` reads), `comet.jsonl` (source, output and reference in COMET's format)
 * and `scores.json`.
 */
export async function evaluateTranslation(
  run: string,
  options: TranslationEvaluationOptions = {},
): Promise<TranslationScores[]> {
  const { split = 'test', beam = searchDefaults.beam, earlyEnd = searchDefaults.earlyEnd, models = [] } = options;
  const { lengthPenalty = searchDefaults.lengthPenalty, speculate = searchDefaults.speculate } = options;
  const { threads, device, checkpoint = 'best', batch, onProgress, computationAware: clock } = options;
  // Where computation is timed, sentences come one by one.
  const division = clock === undefined ? sharedAmong(threads, device) : { threads };
  const translator = await Translator.open(run, { beam, device, checkpoint, ...division }, models);
  try {
    const policies = options.policies?.flatMap((text) => translator.policies(text)) ?? translator.policies();
    const { language } = translator.target.pipeline.config;
    const { tokenize = bleuTokenizer(language), unit = latencyUnit(language) } = options;
    const { own, ...config } = evaluatedData(run, options.corpus);
    const test = await testSet(config.data, split, translator, options.onTooLong);
    const data: EvaluatedData = { name: dataName(config.data, madeUpText), digest: test.digest, own };
    const scores: TranslationScores[] = [];
    for (const policy of policies) {
      const started = performance.now();
      const search = { beam, earlyEnd, lengthPenalty, speculate };
      const progress = (done: number): void => onProgress?.(policy.name, done, test.ids.length);
      const decoded =
        clock === undefined
          ? await translator.translate(test.ids, policy, { ...search, batch, onProgress: progress })
          : await translator.timedStreams(test.arriving, policy, { ...search, onProgress: progress });
      const speed = (1000 * test.ids.length) / (performance.now() - started);
      const name = folderName(policy, { split, ...search, models, checkpoint });
      const folder = evaluationFolder(run, unit === latencyUnit(language) ? name : `${name}-by-${unit}`, data);
      const measured = score(translator.target, test, decoded, { tokenize, unit, clock });
      const result = { policy: policy.name, k: waitOf(policy), data, ...measured.scores, speed, folder };
      const decoding = { split, ...search, models, checkpoint };
      save(folder, test, measured, { ...result, ...decoding, step: translator.step });
      scores.push(result);
    }
    return scores;
  } finally {
    await translator.close();
  }
}

/** Sentences to be translated, with their references. */
interface TestSet {
  /** Of the untouched lines of both sides. */
  readonly digest: string;
  readonly ids: readonly Int32Array[];
  /** Sources that are too long for the model; their ids are those of an empty line. */
  readonly tooLong: number;
  /** Source tokens that come before those of every line. */
  readonly prefix: number;
  /** The untouched lines. */
  readonly sources: readonly string[];
  /** Words of the sources, as they arrive, or characters. */
  readonly words: readonly (readonly ArrivingWord[])[];
  /** The same; of a source that is too long, nothing arrives but its end. */
  readonly arriving: readonly (readonly ArrivingWord[])[];
  /** Source tokens settled after each word. */
  readonly counts: readonly (readonly number[])[];
  /** As outputs are compared with them: lowercased if these are. */
  readonly references: readonly string[];
  /** The same, tokenised as for training but without byte pair encoding (`tokenisedText`). */
  readonly tokenised: readonly string[];
}

interface Instance extends LatencyInstance {
  readonly prediction: string;
  readonly referenceLength: number;
}

/** How outputs are counted. */
interface Counting {
  readonly tokenize: TokenizerName;
  readonly unit: LatencyUnit;
  readonly clock?: number;
}

interface Measured {
  readonly scores: Omit<TranslationScores, 'policy' | 'k' | 'data' | 'speed' | 'folder'>;
  readonly outputs: readonly string[];
  readonly tokenised: readonly string[];
  readonly instances: readonly Instance[];
}

function folderName(
  policy: Policy,
  options: Required<
    Pick<
      TranslationEvaluationOptions,
      (keyof typeof searchDefaults & keyof TranslationEvaluationOptions) | 'split' | 'models' | 'checkpoint'
    >
  >,
): string {
  const { split, beam, earlyEnd, lengthPenalty, speculate, models, checkpoint } = options;
  const parts = [split, fileNameOf(policy), 'beam', beam];
  if (lengthPenalty !== searchDefaults.lengthPenalty) parts.push('length-penalty', lengthPenalty);
  if (speculate > 0) parts.push('speculate', speculate);
  if (earlyEnd === 'block') parts.push('no-early-end');
  if (models.length > 0) parts.push(models.length + 1, 'models');
  if (checkpoint !== 'best') parts.push(checkpoint.replace(':', '-'));
  return parts.join('-');
}

function waitOf({ name }: Policy): number | 'full' | null {
  const [, k] = /^wait-k:(.+)$/.exec(name) ?? [];
  if (k === undefined) return null;
  return k === 'full' ? k : Number(k);
}

async function testSet(
  data: TranslationDataConfig,
  split: string,
  { source, target, models }: Translator,
  onTooLong?: TranslationEvaluationOptions['onTooLong'],
): Promise<TestSet> {
  const { corpus, close } = await openData(data);
  try {
    requireLanguages(corpus, source.pipeline.config.language, target.pipeline.config.language);
    const sources = corpus.text(split, 'source');
    const references = corpus.text(split, 'target');
    if (sources.length === 0) throw new InputError(`the split "${split}" is empty`, { file: corpus.folder });
    const most = Math.min(...models.map(({ maxPositions }) => maxPositions));
    let overlong = 0;
    const ids = sources.map((line, i) => {
      const own = lineIds(source, line);
      if (own.length <= most) return own;
      overlong++;
      onTooLong?.(i + 1, tooLong(own.length, most));
      return Int32Array.of(special.eos);
    });
    const words = sources.map((line) => arrivingWords(line, source.pipeline.byCharacter));
    const { lowercase: isLower } = target.pipeline.config;
    return {
      digest: dataDigest([sources.join('\n'), references.join('\n')]),
      ids,
      tooLong: overlong,
      prefix: source.pipeline.config.prefix?.length ?? 0,
      sources,
      words,
      arriving: words.map((line, i) => (ids[i].length > 1 ? line : [])),
      counts: words.map((line) => tokensByWord(source, line)),
      references: references.map((line) => (isLower ? lowercase(line) : line).trim()),
      tokenised: references.map((line) => tokenisedText(target, target.pipeline.words(line))),
    };
  } finally {
    close();
  }
}

/**
 * Text for multi-bleu: words, separated by spaces. Moses finds no words in languages without
 * spaces: there every character counts as a word.
 */
function tokenisedText({ pipeline }: TextSide, words: readonly string[]): string {
  const { language, tokenizer } = pipeline.config;
  const isUncut = tokenizer.kind === 'moses' && latencyUnit(language) === 'char';
  return (isUncut ? tokenizers.char(pipeline.decode(words)) : words).join(' ');
}

function score(
  target: TextSide,
  test: TestSet,
  decoded: readonly (Decoded | TimedDecoded)[],
  { tokenize, unit, clock }: Counting,
): Measured {
  const texts = decoded.map(({ tokens }) => writtenText(target, tokens));
  const outputs = texts.map((seen) => seen.at(-1)!.trim());
  const tokenised = decoded.map(({ tokens }) =>
    tokenisedText(target, target.pipeline.join(target.vocabulary.decode(tokens))),
  );
  const multi = multiBleu(tokenised, [test.tokenised]);
  const { attaches, config } = target.pipeline;
  const instances = decoded.map((one, i): Instance => {
    const delays = [...one.delays, one.end];
    const written = unitDelays(texts[i], delays, test.counts[i], { unit, attaches });
    const counted = countable(written.delays, test.counts[i].length);
    const computed = 'computed' in one ? one.computed : undefined;
    const timed = clock !== undefined && computed !== undefined && counted.delays.length > 0;
    return {
      prediction: unit === 'word' ? written.units.join(' ') : outputs[i],
      ...counted,
      ...(timed && { elapsed: written.delays.map((delay, at) => delay + computed[written.places[at]] / clock) }),
      referenceLength: referenceLength(test.references[i], unit),
    };
  });
  // Prefixes, such as language codes, count neither as read nor as written.
  const { length: before } = config.prefix ?? [];
  const subwords = decoded.map(({ delays }, i) => {
    const own = Array.from(delays)
      .slice(before)
      .map((delay) => Math.max(0, delay - test.prefix));
    return countable(own, Math.max(0, test.ids[i].length - 1 - test.prefix));
  });
  const bleu = { tokenize, lowercase: config.lowercase };
  const chrf = { lowercase: config.lowercase };
  return {
    outputs,
    tokenised,
    instances,
    scores: {
      sentences: decoded.length,
      bleu: multi.score,
      sacrebleu: corpusBleu(outputs, [test.references], bleu).score,
      signature: bleuMetric(bleu).signature(1),
      chrf: corpusChrf(outputs, [test.references], chrf),
      chrfSignature: chrfMetric(chrf).signature(1),
      lengthRatio: multi.systemLength / multi.referenceLength,
      endedEarly: decoded.filter(({ endedEarly }) => endedEarly).length,
      tooLong: test.tooLong,
      unit,
      latency: { stacl: latency(subwords, 'stacl'), simuleval: latency(instances, 'simuleval') },
      ...(clock !== undefined && {
        computationAware: { unitMilliseconds: clock, latency: latency(instances, 'simuleval', true) },
      }),
    },
  };
}

/** What is written to an empty source has no delays that could be measured. */
function countable(delays: ArrayLike<number>, sourceLength: number): LatencyInstance {
  return sourceLength > 0 ? { delays, sourceLength } : { delays: [], sourceLength: 1 };
}

function latency(
  instances: readonly LatencyInstance[],
  convention: LatencyConvention,
  computationAware = false,
): CorpusLatency | null {
  const written = instances.some(({ delays }) => delays.length > 0);
  return written ? corpusLatency(instances, convention, { computationAware }) : null;
}

function save(folder: string, test: TestSet, measured: Measured, scores: object): void {
  const { outputs, tokenised, instances } = measured;
  const { unit } = measured.scores;
  makeFolder(folder);
  const write = (name: string, lines: readonly string[]): void =>
    writeFileAtomic(join(folder, name), lines.map((line) => `${line}\n`).join(''));
  write('output.txt', outputs);
  write('reference.txt', test.references);
  write('output.tok', tokenised);
  write('reference.tok', test.tokenised);
  write(
    'instances.log',
    instances.map(({ prediction, delays, elapsed, sourceLength }, index) =>
      JSON.stringify({
        index,
        prediction,
        delays: Array.from(delays),
        // Zeros without a clock, as SimulEval writes them for text.
        elapsed: Array.from(elapsed ?? delays, (time) => (elapsed === undefined ? 0 : time)),
        prediction_length: delays.length,
        // SimulEval counts it itself: a key `reference_length` would end its reader.
        reference: test.references[index],
        source: test.words[index].map(({ word }) => word).join(' '),
        source_length: sourceLength,
        latency_unit: unit,
      }),
    ),
  );
  write(
    'comet.jsonl',
    outputs.map((mt, i) => JSON.stringify({ src: test.sources[i], mt, ref: test.references[i] })),
  );
  write('config.yaml', ['source_type: text', 'target_type: text']);
  writeScores(folder, scores);
}
