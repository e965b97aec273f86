/**
 * How much of an epoch's batches is padding, as they are made and with sources sorted up and down in turn.
 *
 *     npm run build && node bench/padding.mjs CORPUS [--tokens 2048]
 *
 * Work counts products in units of d² a token (d = 256, ffn = 512, vocabulary 5,978): 24 in the encoder, 59 in decoder
 * and vocabulary.
 */
import { parseArgs } from 'node:util';
import { openCorpus } from '../dist/translate/corpus/corpus.js';

const ENCODER = 24;
const DECODER = 59;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { tokens: { type: 'string', default: '2048' } },
});
const { source, target } = openCorpus(positionals[0]).open('train');
const most = Number(values.tokens);

const asMade = (a, b) => target.lengths[a] - target.lengths[b] || source.lengths[a] - source.lengths[b];
const inTurn = (a, b) => {
  const up = target.lengths[a] % 2 === 0 ? 1 : -1;
  return target.lengths[a] - target.lengths[b] || up * (source.lengths[a] - source.lengths[b]);
};
const sum = (lengths) => lengths.reduce((total, length) => total + length, 0);
const exact = { source: sum(source.lengths), target: sum(target.lengths) };

for (const [name, order] of Object.entries({ 'as made': asMade, 'sources up and down': inTurn })) {
  const padded = { source: 0, target: 0 };
  let batch = [];
  const close = () => {
    for (const side of ['source', 'target']) {
      const { lengths } = side === 'source' ? source : target;
      padded[side] += batch.length * Math.max(0, ...batch.map((pair) => lengths[pair]));
    }
    batch = [];
  };
  for (const pair of [...source.lengths.keys()].sort(order)) {
    if ((batch.length + 1) * target.lengths[pair] > most) close();
    batch.push(pair);
  }
  close();
  const work = ({ source: s, target: t }) => ENCODER * s + DECODER * t;
  const shares = [padded.source / exact.source, padded.target / exact.target, work(padded) / work(exact)];
  const [s, t, w] = shares.map((share) => share.toFixed(3));
  console.log(`${name}: source tokens × ${s}, target tokens × ${t}, work × ${w}`);
}
