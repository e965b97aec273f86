/**
 * A read/write policy of one's own: wait for the next word while the model is unsure of the next token. It gets a name,
 * so that texts such as `sure:at=0.6` stand for it wherever a policy is named, beside wait-k.
 * `node examples/dist/translator.js && node examples/dist/own-policy.js runs/translator`
 */
import { evaluateTranslation, type Policy, type PolicyDescription, policies } from 'tcts/translate';

const folder = process.argv[2] ?? 'runs/translator';

/** Writes a token whose probability is at least `at`, and reads on otherwise. */
function sure(at: number): Policy {
  return {
    name: `sure:at=${at}`,
    // What it has to see before it decides: what the model would write now.
    look: () => [{}],
    decide({ proposals, read, written, ended }) {
      if (ended) return 'WRITE';
      if (read <= written) return 'READ'; // never ahead of the speaker
      return Math.exp(proposals[0].score) >= at ? 'WRITE' : 'READ';
    },
  };
}

/** Help, texts, the page's menu and reports read the description. */
const description: PolicyDescription = {
  name: 'sure',
  title: 'sure enough',
  label: 'sure',
  help: 'write what the model gives at least this probability',
  settings: { at: { kind: 'share', default: 0.6, slider: { label: 'probability', max: 1, start: 0.6 } } },
  models: ['wait-k', 'full'],
  create: ({ at = 0.6 }) => sure(Number(at)),
};
policies.push(description);

const results = await evaluateTranslation(folder, { policies: ['wait-k:1,3,5', 'sure:at=0.3,0.6,0.8'], beam: 1 });
console.log('policy          BLEU     AL');
for (const { policy, bleu, latency } of results) {
  console.log(`${policy.padEnd(12)}  ${bleu.toFixed(1).padStart(6)}  ${latency.stacl?.AL.toFixed(2).padStart(5)}`);
}
