import { InputError } from '../errors.js';
import type { CorpusLatency } from '../metrics/index.js';
import { Progress } from '../run/progress.js';
import { checkpointInWords } from '../translate/checkpoint-choice.js';
import { searchDefaults } from '../translate/decode/search.js';
import { evaluateTranslation, type TranslationScores } from '../translate/evaluate.js';
import { evaluateWaitLoss } from '../translate/wait-loss.js';
import { dataInWords, type Evaluate, refuseFlags } from './evaluate.js';
import { policiesOf } from './search-flags.js';
import { textTable } from './text-table.js';

/** `tcts evaluate` for a run of a translation. */
export const evaluateTranslationRun: Evaluate = async (run, flags) => {
  refuseFlags(flags, 'translation', 'against');
  if (flags.loss) return evaluateLoss(run, flags);
  const { split = 'test', data: corpus, models, checkpoint = 'best', threads, unit } = flags;
  const { beam = searchDefaults.beam, earlyEnd = searchDefaults.earlyEnd } = flags;
  const policies = policiesOf(flags);
  const progress = new ProgressOfPolicies();
  const onProgress = progress.update.bind(progress);
  const options = { split, corpus, policies, models, beam, earlyEnd, checkpoint, threads, unit, onProgress };
  const scores = await evaluateTranslation(run, options);
  progress.end();
  const [{ data }] = scores;
  const json = { run, data, split, beam, early_end: earlyEnd, checkpoint, results: scores.map(figures) };
  const setting = `${split} of ${dataInWords(data)}, beam ${beam}, early end ${earlyEnd}ed, ${checkpointInWords(checkpoint)}`;
  return { json, text: textOf(scores, setting) };
};

/** `tcts evaluate --loss`: how likely the references are under wait-k. */
const evaluateLoss: Evaluate = async (run, flags) => {
  refuseFlags(flags, 'translation with --loss', 'policy', 'models', 'beam', 'earlyEnd', 'checkpoint', 'data', 'unit');
  const { k: waits, split, threads } = flags;
  if (waits === undefined) throw new InputError('missing, expected waits to measure the loss with', { key: '--k' });
  const losses = await evaluateWaitLoss(run, { waits, split, threads });
  const rows = losses.map(({ k, plain, smoothed }) => [String(k), plain.toFixed(4), smoothed.toFixed(4)]);
  const text = `${textTable(['k', 'loss', 'smoothed'], rows)}\n\nnats per token of ${losses[0].split}`;
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
    unit: scores.unit,
    latency,
    sentences_per_second: scores.speed,
    folder,
  };
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
    ...MEASURES,
    ...MEASURES,
    'sentences/s',
  ];
  const rows = scores.map((one) => [
    onlyWaits ? String(one.k) : one.policy,
    ...[one.bleu, one.sacrebleu, one.chrf].map((figure) => figure.toFixed(2)),
    one.lengthRatio.toFixed(3),
    String(one.endedEarly),
    ...measured(one.latency.stacl),
    ...measured(one.latency.simuleval),
    one.speed.toFixed(1),
  ]);
  return [
    textTable(head, rows),
    '',
    `${sentences} sentences of ${setting}`,
    'BLEU: multi-bleu of the tokenised text; length: words of the output over words of the references',
    `sacreBLEU: ${signature}`,
    `latency: first subwords and output length (stacl), then ${unit === 'word' ? 'words' : 'characters'} and reference length (simuleval)`,
    `outputs and instances.log: ${scores.map(({ folder }) => folder).join(', ')}`,
  ].join('\n');
}

const MEASURES = ['AP', 'AL', 'LAAL', 'DAL'] as const;

function measured(latency: CorpusLatency | null): string[] {
  return MEASURES.map((name) => latency?.[name].toFixed(name === 'AP' ? 3 : 2) ?? '–');
}
