import type { CorpusLatency } from '../metrics/index.js';
import { Progress } from '../run/progress.js';
import { searchDefaults } from '../translate/decode/search.js';
import { evaluateTranslation, type TranslationScores } from '../translate/evaluate.js';
import { type Evaluate, refuseFlags } from './evaluate.js';
import { textTable } from './text-table.js';

/** `tcts evaluate` for a run of a translation. */
export const evaluateTranslationRun: Evaluate = async (run, flags) => {
  refuseFlags(flags, 'translation', 'against');
  const { split = 'test', data: corpus, k: waits, threads } = flags;
  const { beam = searchDefaults.beam, earlyEnd = searchDefaults.earlyEnd } = flags;
  const progress = new ProgressOfWaits();
  const onProgress = progress.update.bind(progress);
  const scores = await evaluateTranslation(run, { split, corpus, waits, beam, earlyEnd, threads, onProgress });
  progress.end();
  const json = { run, split, beam, early_end: earlyEnd, results: scores.map(figures) };
  return { json, text: textOf(scores, `${split}, beam ${beam}, early end ${earlyEnd}ed`) };
};

/** A bar for each wait, one after the other. */
class ProgressOfWaits {
  private wait: number | undefined;
  private progress: Progress | undefined;

  update(wait: number, done: number, total: number): void {
    if (wait !== this.wait) {
      this.end();
      this.wait = wait;
      this.progress = new Progress({ total, unit: 'sentence' });
    }
    this.progress?.update(done, { k: wait });
  }

  end(): void {
    this.progress?.clear();
    this.progress = undefined;
  }
}

function figures(scores: TranslationScores): Record<string, unknown> {
  const { k, sentences, bleu, sacrebleu, signature, chrf, chrfSignature, latency, folder } = scores;
  return {
    k,
    sentences,
    bleu,
    sacrebleu,
    signature,
    chrf,
    chrf_signature: chrfSignature,
    length_ratio: scores.lengthRatio,
    ended_early: scores.endedEarly,
    latency,
    sentences_per_second: scores.speed,
    folder,
  };
}

function textOf(scores: readonly TranslationScores[], setting: string): string {
  const [{ signature, sentences }] = scores;
  const head = ['k', 'BLEU', 'sacreBLEU', 'chrF', 'length', 'ended early', ...MEASURES, ...MEASURES, 'sentences/s'];
  const rows = scores.map((one) => [
    String(one.k),
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
    'latency: first subwords and output length (stacl), then words and reference length (simuleval)',
    `outputs and instances.log: ${scores.map(({ folder }) => folder).join(', ')}`,
  ].join('\n');
}

const MEASURES = ['AP', 'AL', 'LAAL', 'DAL'] as const;

function measured(latency: CorpusLatency | null): string[] {
  return MEASURES.map((name) => latency?.[name].toFixed(name === 'AP' ? 3 : 2) ?? '–');
}
