import { join, resolve } from 'node:path';
import { z } from 'zod';
import { InputError } from '../errors.js';
import { makeFolder, writeFileAtomic } from '../files.js';
import {
  bleuMetric,
  type CorpusLatency,
  chrfMetric,
  corpusBleu,
  corpusChrf,
  corpusLatency,
  type LatencyConvention,
  type LatencyInstance,
  multiBleu,
  type TokenizerName,
} from '../metrics/index.js';
import { dataDigest, dataName, type EvaluatedData, evaluationFolder, openRun, parseConfig } from '../run/index.js';
import type { CheckpointChoice } from './checkpoint-choice.js';
import { type DataConfig, translationSchema } from './config.js';
import { openData } from './data.js';
import type { Policy } from './decode/policy.js';
import { type SearchOptions, searchDefaults } from './decode/search.js';
import type { Decoded } from './decode/sentence.js';
import { arrivingWords, lineIds, tokensByWord, writtenText } from './decode/text-stream.js';
import { Translator } from './decode/translator.js';
import { wordDelays } from './decode/word-delays.js';
import { fileNameOf } from './policies/index.js';

export interface TranslationEvaluationOptions extends Pick<SearchOptions, 'beam' | 'earlyEnd'> {
  /** Policies to evaluate with, as `parsePolicies` reads them. Default the one that the model was trained for. */
  readonly policies?: readonly string[];
  /** Further runs that the policies may choose among, with the same vocabularies. Default none. */
  readonly models?: readonly string[];
  /** Split of the corpus. Default `test`. */
  readonly split?: string;
  /** Another corpus than the run was trained with; its text is encoded as the run's. Default the run's own. */
  readonly corpus?: string;
  /** Tokeniser of sacreBLEU. Default `zh` for Chinese targets, else `13a`. */
  readonly tokenize?: TokenizerName;
  /** Default `best`. */
  readonly checkpoint?: CheckpointChoice;
  /** Sentences translated together. Default 64. */
  readonly batch?: number;
  /** Threads inside one operation. Default 1. */
  readonly threads?: number;
  readonly onProgress?: (policy: string, done: number, total: number) => void;
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
  /** BLEU of the detokenised text, as sacreBLEU prints it, and what has to be known to repeat it. */
  readonly sacrebleu: number;
  readonly signature: string;
  /** chrF2 of the detokenised text. */
  readonly chrf: number;
  readonly chrfSignature: string;
  /** Words of the output over words of the references, tokenised. */
  readonly lengthRatio: number;
  /** Sentences that ended before the end of their source was read. */
  readonly endedEarly: number;
  /**
   * `stacl`: subwords and the length of the output. `simuleval`: words and the length of the reference. Null where
   * nothing was written at all.
   */
  readonly latency: Readonly<Record<LatencyConvention, CorpusLatency | null>>;
  /** Sentences translated per second, together in batches. */
  readonly speed: number;
  /** Folder of the outputs and of `instances.log`. */
  readonly folder: string;
}

/**
 * Translates a split of a corpus under one or more policies and scores it. Everything is kept in the run folder, as
 * `evaluation/<split>-<policy>-…/`, with the name of the data at its end where they are not the run's own: `output.txt` and `reference.txt` (text), `output.tok` and `reference.tok`
 * (tokenised), `instances.log` (as SimulEval has it: words, without elapsed times) and `scores.json`.
 */
export async function evaluateTranslation(
  run: string,
  options: TranslationEvaluationOptions = {},
): Promise<TranslationScores[]> {
  const { split = 'test', beam = searchDefaults.beam, earlyEnd = searchDefaults.earlyEnd, models = [] } = options;
  const { threads, checkpoint = 'best', batch, onProgress } = options;
  const translator = await Translator.open(run, { beam, threads, checkpoint }, models);
  try {
    const policies = options.policies?.flatMap((text) => translator.policies(text)) ?? translator.policies();
    const { own, ...config } = dataOf(run, options.corpus);
    const test = await testSet(config.data, split, translator);
    const data: EvaluatedData = { name: dataName(config.data), digest: test.digest, own };
    const scores: TranslationScores[] = [];
    for (const policy of policies) {
      const started = performance.now();
      const decoded = await translator.translate(test.ids, policy, {
        beam,
        earlyEnd,
        batch,
        onProgress: (done) => onProgress?.(policy.name, done, test.ids.length),
      });
      const speed = (1000 * test.ids.length) / (performance.now() - started);
      const folder = evaluationFolder(run, folderName(policy, { split, beam, earlyEnd, models, checkpoint }), data);
      const measured = score(translator, test, decoded, options.tokenize);
      const result = { policy: policy.name, k: waitOf(policy), data, ...measured.scores, speed, folder };
      save(folder, test, measured, { ...result, split, beam, earlyEnd, models, checkpoint, step: translator.step });
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
  /** Words of the sources, as they arrive. */
  readonly words: readonly (readonly string[])[];
  /** Source tokens settled after each word. */
  readonly counts: readonly (readonly number[])[];
  readonly references: readonly string[];
  /** The same, tokenised as for training but without byte pair encoding. */
  readonly tokenised: readonly string[];
}

interface Instance extends LatencyInstance {
  readonly prediction: string;
}

interface Measured {
  readonly scores: Omit<TranslationScores, 'policy' | 'k' | 'data' | 'speed' | 'folder'>;
  readonly outputs: readonly string[];
  readonly tokenised: readonly string[];
  readonly instances: readonly Instance[];
}

function dataOf(run: string, corpus: string | undefined): { data: DataConfig; own: boolean } {
  const { problem } = openRun(run).config as { problem: { data: unknown } };
  const schema = z.strictObject({ data: translationSchema.shape.data });
  const { data } = parseConfig(schema, { data: problem.data }, join(run, 'config.yaml'));
  const isOwn = corpus === undefined || (data.from === 'corpus' && resolve(data.folder) === resolve(corpus));
  return isOwn ? { data, own: true } : { data: { from: 'corpus', folder: corpus }, own: false };
}

function folderName(
  policy: Policy,
  options: Required<Pick<TranslationEvaluationOptions, 'split' | 'beam' | 'earlyEnd' | 'models' | 'checkpoint'>>,
): string {
  const { split, beam, earlyEnd, models, checkpoint } = options;
  const parts = [split, fileNameOf(policy), 'beam', beam];
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

async function testSet(data: DataConfig, split: string, { source, target }: Translator): Promise<TestSet> {
  const { corpus, close } = await openData(data);
  try {
    const sources = corpus.text(split, 'source');
    const references = corpus.text(split, 'target');
    if (sources.length === 0) throw new InputError(`the split "${split}" is empty`, { file: corpus.folder });
    const words = sources.map(arrivingWords);
    return {
      digest: dataDigest([sources.join('\n'), references.join('\n')]),
      ids: sources.map((line) => lineIds(source, line)),
      words,
      counts: words.map((line) => tokensByWord(source, line)),
      references,
      tokenised: references.map((line) => target.pipeline.words(line).join(' ')),
    };
  } finally {
    close();
  }
}

function score(
  { target }: Translator,
  test: TestSet,
  decoded: readonly Decoded[],
  tokenize: TokenizerName = target.pipeline.config.language === 'zh' ? 'zh' : '13a',
): Measured {
  const texts = decoded.map(({ tokens }) => writtenText(target, tokens));
  const outputs = texts.map((seen) => (seen.at(-1) ?? '').trim());
  const tokenised = decoded.map(({ tokens }) => target.pipeline.join(target.vocabulary.decode(tokens)).join(' '));
  const multi = multiBleu(tokenised, [test.tokenised]);
  const instances = decoded.map((one, i) => wordInstance(one, texts[i], test, i));
  const subwords = decoded.map(({ delays }, i) => countable(delays, test.ids[i].length - 1));
  return {
    outputs,
    tokenised,
    instances,
    scores: {
      sentences: decoded.length,
      bleu: multi.score,
      sacrebleu: corpusBleu(outputs, [test.references], { tokenize }).score,
      signature: bleuMetric({ tokenize }).signature(1),
      chrf: corpusChrf(outputs, [test.references]),
      chrfSignature: chrfMetric().signature(1),
      lengthRatio: multi.systemLength / multi.referenceLength,
      endedEarly: decoded.filter(({ endedEarly }) => endedEarly).length,
      latency: { stacl: latency(subwords, 'stacl'), simuleval: latency(instances, 'simuleval') },
    },
  };
}

function wordInstance({ delays }: Decoded, seen: readonly string[], test: TestSet, i: number): Instance {
  const written = wordDelays(seen, delays, test.counts[i]);
  const instance = countable(written.delays, test.counts[i].length);
  // As SimulEval counts the words of a reference.
  const referenceLength = test.references[i].trim().split(' ').length;
  return { prediction: written.words.join(' '), ...instance, referenceLength };
}

/** What is written to an empty source has no delays that could be measured. */
function countable(delays: ArrayLike<number>, sourceLength: number): LatencyInstance {
  return sourceLength > 0 ? { delays, sourceLength } : { delays: [], sourceLength: 1 };
}

function latency(instances: readonly LatencyInstance[], convention: LatencyConvention): CorpusLatency | null {
  return instances.some(({ delays }) => delays.length > 0) ? corpusLatency(instances, convention) : null;
}

function save(folder: string, test: TestSet, { outputs, tokenised, instances }: Measured, scores: object): void {
  makeFolder(folder);
  const write = (name: string, lines: readonly string[]): void =>
    writeFileAtomic(join(folder, name), lines.map((line) => `${line}\n`).join(''));
  write('output.txt', outputs);
  write('reference.txt', test.references);
  write('output.tok', tokenised);
  write('reference.tok', test.tokenised);
  write(
    'instances.log',
    instances.map(({ prediction, delays, sourceLength, referenceLength }, index) =>
      JSON.stringify({
        index,
        prediction,
        delays: Array.from(delays),
        prediction_length: delays.length,
        reference: test.references[index],
        source: test.words[index].join(' '),
        source_length: sourceLength,
        reference_length: referenceLength,
      }),
    ),
  );
  write('scores.json', [JSON.stringify(scores, null, 2)]);
}
