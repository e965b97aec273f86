/**
 * Figures of translation that are not ratios: milliseconds from a word read to the next one written, seconds to prepare
 * Multi30k, words a second through byte pair encoding.
 *
 *     npm run build && node bench/translate.mjs [--multi30k FOLDER]
 *
 * FOLDER holds train.lc.norm.tok.{en,de}.gz and val…; without it the streaming alone is measured.
 */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { IncrementalModel } from '../dist/translate/decode/incremental-model.js';
import { TokenStream } from '../dist/translate/decode/stream.js';
import { createStepModel } from '../dist/translate/decode/translator.js';
import { waitK } from '../dist/translate/index.js';
import { bpeSegmenter, parseBpeCodes } from '../dist/translate/text/bpe.js';
import { randomModel, randomSentences } from './ours/translation.mjs';

const { values } = parseArgs({ options: { multi30k: { type: 'string' } } });
await streaming();
if (values.multi30k !== undefined) preparing(values.multi30k);

/** The 6+6-layer `small` model of the paper, vocabulary 10,000, wait-3, one thread: a token read, a token written. */
async function streaming() {
  const { model, arena } = randomModel({ preset: 'small' }, 10_000);
  const steps = await createStepModel(model, arena, { beam: 1 });
  const incremental = new IncrementalModel(steps);
  const times = [];
  for (const source of randomSentences(20, 20, 4, 10_000)) {
    const stream = new TokenStream([incremental], waitK(3), { beam: 1, earlyEnd: 'block' });
    for (const token of source.slice(0, -1)) {
      const start = performance.now();
      const written = await stream.push([token]);
      if (written.length > 0) times.push(performance.now() - start);
    }
  }
  await steps.close();
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.floor(share * times.length)].toFixed(2);
  report(
    'READ to WRITE, 6+6 layers',
    `median ${at(0.5)} ms, 95 % under ${at(0.95)} ms of ${times.length}`,
    'median ≤ 10 ms',
  );
}

function preparing(folder) {
  const out = mkdtempSync(join(tmpdir(), 'tcts-bench-'));
  const text = (split) => join(folder, `${split}.lc.norm.tok`);
  try {
    const corpus = join(out, 'corpus');
    const tool = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
    const files = [
      '--source',
      'en',
      '--target',
      'de',
      '--train',
      text('train'),
      '--valid',
      text('val'),
      '--out',
      corpus,
    ];
    const start = performance.now();
    const made = spawnSync(process.execPath, [
      ...[tool, 'prepare', 'translate', ...files],
      ...['--tokenizer', 'none', '--bpe', '6000', '--joint'],
    ]);
    if (made.status !== 0) throw new Error(`Multi30k could not be prepared: ${made.stderr}`);
    report('preparing Multi30k', `${((performance.now() - start) / 1000).toFixed(1)} s`, '≤ 15 s');
    segmenting(readFileSync(join(corpus, 'codes.de'), 'utf8'), `${text('train')}.de.gz`);
  } finally {
    rmSync(out, { recursive: true });
  }
}

/** One pass over the training text; words that come again are remembered, as when a corpus is prepared. */
function segmenting(codes, file) {
  const lines = gunzipSync(readFileSync(file)).toString('utf8').trimEnd().split('\n');
  const words = lines.reduce((sum, line) => sum + line.split(' ').length, 0);
  const segment = bpeSegmenter(parseBpeCodes(codes));
  const start = performance.now();
  for (const line of lines) for (const word of line.split(' ')) if (word !== '') segment(word);
  const perSecond = (1000 * words) / (performance.now() - start);
  report('byte pair encoding', `${Math.round(perSecond / 1000)}k words/s of ${words}`, '≥ 200k words/s');
}

function report(what, found, target) {
  console.log(`${what}: ${found} (target ${target})`);
}
