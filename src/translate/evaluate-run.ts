import { join } from 'node:path';
import { InputError } from '../errors.js';
import type { CorpusLatency, LatencyUnit } from '../metrics/index.js';
import { type CheckpointChoice, checkpointInWords, evaluatedDataInWords, Progress } from '../run/index.js';
import { type Evaluate, type EvaluateFlags, refuseFlags } from '../schedule/problem-kind.js';
import { textTable, wrapped } from '../text-table.js';
import { type SearchOptions, searchDefaults } from './decode/search.js';
import { evaluateTranslation, type TranslationScores } from './evaluate.js';
import { evaluateWaitLoss } from './loss-evaluation.js';
import { policyTexts } from './policies/index.js';

interface TranslationFlags extends EvaluateFlags {
  readonly k?: readonly number[];
  readonly policy?: readonly string[];
  readonly models?: readonly string[];
  readonly beam?: number;
  readonly earlyEnd?: 'allow' | 'block';
  readonly lengthPenalty?: number;
  readonly speculate?: number;
  readonly checkpoint?: CheckpointChoice;
  readonly loss?: boolean;
  readonly unit?: LatencyUnit;
  readonly computationAware?: number;
}

/** `tcts evaluate` for a run of a translation. */
export const evaluateTranslationRun: Evaluate = async (run, flags: TranslationFlags) => {
  refuseFlags(flags, 'translation', 'against', 'columns', 'from', 'to', 'backtest', 'neutralise', 'predictions');
  if (flags.loss) return evaluateLoss(run, flags);
  const { split = 'test', data: corpus, models, checkpoint = 'best', threads, device, unit, computationAware } = flags;
  const { beam, earlyEnd, lengthPenalty, speculate } = { ...searchDefaults, ...given(flags) };
  const policies = policyTexts(flags);
  const progress = new ProgressOfPolicies();
  const onProgress = progress.update.bind(progress);
  const onTooLong = (line: number, { message }: InputError): void =>
    flags.warn?.(`${split}, line ${line}: ${message}: its translation counts as empty`);
  const options = {
    split,
    corpus,
    policies,
    models,
    beam,
    earlyEnd,
    lengthPenalty,
    speculate,
    checkpoint,
    threads,
    device,
    unit,
    computationAware,
    onProgress,
    onTooLong,
  };
  const scores = await evaluateTranslation(run, options);
  progress.end();
  const [{ data }] = scores;
  const json = {
    run,
    data,
    split,
    beam,
    early_end: earlyEnd,
    length_penalty: lengthPenalty,
    speculate,
    checkpoint,
    results: scores.map(figures),
  };
  const setting = `${split} of ${evaluatedDataInWords(data)}, beam ${beam}${speculate > 0 ? `, speculating ${speculate}` : ''}, early end ${earlyEnd}ed, ${checkpointInWords(checkpoint)}`;
  return { json, text: flags.all ? textOf(scores, setting) : shortText(scores, setting, run) };
};

function given({ beam, earlyEnd, lengthPenalty, speculate }: TranslationFlags): Partial<SearchOptions> {
  const all = Object.entries({ beam, earlyEnd, lengthPenalty, speculate });
  return Object.fromEntries(all.filter(([, value]) => value !== undefined));
}

/** `tcts evaluate --loss`: how likely the references are under wait-k. */
const evaluateLoss: Evaluate = async (run, flags: TranslationFlags) => {
  refuseFlags(
    flags,
    'translation with --loss',
    'policy',
    'models',
    'beam',
    'earlyEnd',
    'lengthPenalty',
    'speculate',
    'data',
    'unit',
    'computationAware',
  );
  const { k: waits, split, checkpoint = 'best', threads, device } = flags;
  if (waits === undefined) throw new InputError('missing, expected waits to measure the loss with', { key: '--k' });
  const losses = await evaluateWaitLoss(run, { waits, split, checkpoint, threads, device });
  const rows = losses.map(({ k, plain, smoothed }) => [String(k), plain.toFixed(4), smoothed.toFixed(4)]);
  const text = `${textTable(['k', 'loss', 'smoothed'], rows)}\n\nnats per token of ${losses[0].split}, ${checkpointInWords(checkpoint)}`;
  return { json: { run, results: losses }, text };
};

/** A bar for each policy, one after the other. */
class ProgressOfPolicies {
  private policy: string | undefined;
  private progress: Progress | undefined;

  update(policy: string, done: number, total: number): void {
    if (policy !== this.policy) {
      this.end();
      this.policy = policy;
      this.progress = new Progress({ total, unit: 'sentence' });
    }
    this.progress?.update(done, { policy });
  }

  end(): void {
    this.progress?.clear();
    this.progress = undefined;
  }
}

function figures(scores: TranslationScores): Record<string, unknown> {
  const { policy, k, sentences, bleu, sacrebleu, signature, chrf, chrfSignature, latency, folder } = scores;
  return {
    policy,
    k,
    sentences,
    bleu,
    sacrebleu,
    signature,
    chrf,
    chrf_signature: chrfSignature,
    length_ratio: scores.lengthRatio,
    ended_early: scores.endedEarly,
    too_long: scores.tooLong,
    unit: scores.unit,
    latency,
    ...(scores.computationAware && {
      computation_aware: {
        unit_milliseconds: scores.computationAware.unitMilliseconds,
        ...scores.computationAware.latency,
      },
    }),
    sentences_per_second: scores.speed,
    folder,
  };
}

/** What most readers want to know. */
function shortText(scores: readonly TranslationScores[], setting: string, run: string): string {
  const onlyWaits = scores.every(({ k }) => k !== null);
  const rows = scores.map(({ k, policy, bleu, latency }) => [
    onlyWaits ? String(k) : policy,
    bleu.toFixed(2),
    latency.stacl?.AL.toFixed(2) ?? '–',
  ]);
  return [
    textTable([onlyWaits ? 'k' : 'policy', 'BLEU', 'AL'], rows),
    '',
    wrapped(`${scores[0].sentences} sentences of ${setting}`),
    wrapped('BLEU: multi-bleu of the tokenised text; AL: average lagging, in source tokens (--all: all figures)'),
    `outputs: ${join(run, 'evaluation')}`,
  ].join('\n');
}

function textOf(scores: readonly TranslationScores[], setting: string): string {
  const [{ signature, sentences, unit }] = scores;
  const onlyWaits = scores.every(({ k }) => k !== null);
  const head = [
    onlyWaits ? 'k' : 'policy',
    'BLEU',
    'sacreBLEU',
    'chrF',
    'length',
    'ended early',
    ...SUBWORD_MEASURES,
    ...UNIT_MEASURES,
    'sentences/s',
  ];
  const rows = scores.map((one) => [
    onlyWaits ? String(one.k) : one.policy,
    ...[one.bleu, one.sacrebleu, one.chrf].map((figure) => figure.toFixed(2)),
    one.lengthRatio.toFixed(3),
    String(one.endedEarly),
    ...measured(one.latency.stacl, SUBWORD_MEASURES),
    ...measured(one.latency.simuleval, UNIT_MEASURES),
    one.speed.toFixed(1),
  ]);
  return [
    textTable(head, rows),
    '',
    ...clockedTable(scores, onlyWaits),
    `${sentences} sentences of ${setting}`,
    'BLEU: multi-bleu of the tokenised text; length: words of the output over words of the references',
    `sacreBLEU: ${signature}`,
    `latency: first subwords and output length (stacl), then ${unit === 'word' ? 'words' : 'characters'} and reference length (simuleval)`,
    `outputs and instances.log: ${scores.map(({ folder }) => folder).join(', ')}`,
  ].join('\n');
}

/** The same latencies with computation time, where it was measured. */
function clockedTable(scores: readonly TranslationScores[], onlyWaits: boolean): string[] {
  const rows = scores.flatMap(({ k, policy, computationAware }) =>
    computationAware === undefined
      ? []
      : [[onlyWaits ? String(k) : policy, ...measured(computationAware.latency, UNIT_MEASURES)]],
  );
  const clock = scores[0].computationAware?.unitMilliseconds;
  if (clock === undefined) {
    return ['No computation-aware latency: sentences were translated together (--computation-aware measures it)', ''];
  }
  const head = [onlyWaits ? 'k' : 'policy', ...UNIT_MEASURES.map((name) => `${name}_CA`)];
  const source = `with the time of computing, sentence by sentence; a source word lasts ${clock} ms`;
  return [textTable(head, rows), '', `_CA: ${source}`];
}

const SUBWORD_MEASURES = ['AP', 'AL', 'LAAL', 'DAL'] as const;
const UNIT_MEASURES = [...SUBWORD_MEASURES, 'YAAL', 'ATD'] as const;

function measured(latency: CorpusLatency | null, names: readonly (typeof UNIT_MEASURES)[number][]): string[] {
  return names.map((name) => latency?.[name]?.toFixed(name === 'AP' ? 3 : 2) ?? '–');
}
