/**
 * A simultaneous translator: trained on English with the verb at the end, then given a sentence word by word under
 * several waits. `npx tsc -p examples && node examples/dist/translator.js`: about ten seconds.
 */
import { existsSync } from 'node:fs';
import { trainRun } from 'tcts';
import { evaluateTranslation, Translator } from 'tcts/translate';

const folder = process.argv[2] ?? 'runs/translator';
const SENTENCE = 'the tired baker quickly a new boat sold';

/** The keys are those of configs/reference.yaml; what is left out has its default. */
if (!existsSync(folder)) {
  await trainRun(
    {
      problem: {
        kind: 'translation',
        data: { from: 'verb-final', pairs: 3000 },
        waits: 7, // the tasks: wait-1 … wait-7
        main: 3,
        model: { preset: 'tiny' },
        batch: { tokens: 1024 },
        learning: { peak: 5e-3, warmup: 60 },
      },
      strategy: { name: 'mtl' }, // every wait equally likely, so that the model can be used with any
      training: { episodes: 5, steps: 40 },
    },
    { folder },
  );
}

const translator = await Translator.open(folder);
try {
  for (const k of [1, 5]) {
    console.log(`\nwait-${k}`);
    const stream = translator.stream(translator.policy(`wait-k:${k}`), { beam: 1 });
    // A word goes in, and what can be said by now comes out.
    for (const word of SENTENCE.split(' ')) console.log(`${word.padStart(10)} → ${await stream.push(word)}`);
    console.log(`${''.padStart(10)} → ${await stream.end()}`);
  }
} finally {
  await translator.close();
}

console.log('\n   k   BLEU     AL');
for (const { k, bleu, latency } of await evaluateTranslation(folder, { policies: ['wait-k:1,3,5'], beam: 1 })) {
  console.log(`${String(k).padStart(4)}  ${bleu.toFixed(1).padStart(5)}  ${latency.stacl?.AL.toFixed(2).padStart(5)}`);
}
