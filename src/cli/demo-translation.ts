import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { textTable } from '../text-table.js';
import { tokenName } from '../translate/decode/text-stream.js';
import { Translator } from '../translate/decode/translator.js';
import { evaluateTranslation, type TranslationScores } from '../translate/evaluate.js';
import { type ToyPair, verbFinalText } from '../translate/toy.js';
import { type PartContext, trainShipped } from './demo.js';
import { saying } from './terminal.js';

const WAITS = [1, 5] as const;

/** Trains a translator with the scheduler, shows a sentence arriving under two waits, and scores both. */
export async function translationPart(context: PartContext): Promise<object | undefined> {
  const { folder, say } = context;
  const trained = await trainShipped('verb-final', 'learned', context);
  if (trained === undefined) return undefined;
  say(`trained in ${trained.seconds.toFixed(0)} s, validation loss ${trained.validation.toFixed(3)} nats per word`);
  const run = join(folder, 'learned');
  const scores = await saying('translating the test sentences', () =>
    evaluateTranslation(run, { policies: [`wait-k:${WAITS.join(',')}`], beam: 1, threads: 2 }),
  );
  const pair = tellingPair(scores);
  say(`\n  source     ${pair.source}\n  reference  ${pair.target}`);
  const translator = await Translator.open(run, { beam: 1 });
  try {
    for (const k of WAITS) await stream(translator, k, pair, context);
  } finally {
    await translator.close();
  }
  const rows = scores.map(({ k, bleu, latency }) => [
    `wait-${k}`,
    bleu.toFixed(1),
    latency.stacl?.AL.toFixed(2) ?? '–',
  ]);
  say(`\n${textTable(['', 'BLEU', 'AL (words)'], rows)}`);
  const [early, late] = scores;
  say(`${(late.bleu - early.bleu).toFixed(0)} BLEU for waiting ${(lag(late) - lag(early)).toFixed(1)} words longer.`);
  const results = scores.map(({ k, bleu, latency }) => ({ k, bleu, AL: latency.stacl?.AL ?? null }));
  return { validation: trained.validation, seconds: trained.seconds, results };
}

const lag = ({ latency }: TranslationScores): number => latency.stacl?.AL ?? Number.NaN;

/** A test sentence that only the longer wait gets right, where there is one. */
function tellingPair(scores: readonly TranslationScores[]): ToyPair {
  const { test } = verbFinalText(1, { train: 0, valid: 0 });
  const outputs = scores.map(({ folder }) => readFileSync(join(folder, 'output.txt'), 'utf8').split('\n'));
  const [early, late] = outputs;
  const telling = test.filter(({ target }, i) => late[i] === target && early[i] !== target);
  const short = telling.filter(({ source }) => source.split(' ').length <= 9);
  return short.toSorted((a, b) => b.source.length - a.source.length)[0] ?? telling[0] ?? test[0];
}

/** Shows every READ and WRITE when it happens; for people, at the speed of a slow reader. */
async function stream(translator: Translator, k: number, pair: ToyPair, { say, quiet }: PartContext): Promise<void> {
  say(`\n  wait-${k}`);
  let written: string[] = [];
  const sentence = translator.stream(translator.policy(`wait-k:${k}`), {
    beam: 1,
    onEvent: ({ action, token }) => {
      if (action === 'WRITE') written.push(tokenName(translator.target, token));
    },
  });
  const said: string[] = [];
  const show = (read: string): void => {
    const words = written.filter((word) => word !== '</s>');
    say(`  READ ${read.padEnd(11)}${words.length === 0 ? '' : `WRITE ${words.join(' ')}`}`.trimEnd());
    said.push(...words);
    written = [];
  };
  for (const word of pair.source.split(' ')) {
    await sentence.push(word);
    show(word);
    if (!quiet) await sleep(PAUSE);
  }
  await sentence.end();
  show('(end)');
  const wrong = said.filter((word) => !pair.target.split(' ').includes(word));
  const verdict = said.join(' ') === pair.target ? 'right' : `wrong: ${wrong.join(', ') || 'another order'}`;
  say(`  → ${said.join(' ')}  (${verdict})`);
}

/** Milliseconds between two words. */
const PAUSE = 150;
