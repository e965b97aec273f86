/**
 * 6+6 layers (or as many as the options say), post-norm, d 256, ffn 1024, 4 heads, vocabulary 10,000, 64 pairs of 32 and
 * 32 tokens, full sentence.
 */
import * as nn from '../../dist/nn/index.js';
import * as t from '../../dist/tensor/index.js';
import { randomIds, trainingSide } from './step.mjs';

const [D, FFN, HEADS, VOCABULARY, BATCH, TIME] = [256, 1024, 4, 10_000, 64, 32];
const LAYER = { heads: HEADS, ffn: FFN };

const model =
  (layers) =>
  (p, { source, previous, targets }) => {
    const positions = nn.sinusoidalTable(TIME, D);
    const embed = (name, ids) =>
      nn.addPositions(nn.embedding(p.under(name), ids, VOCABULARY, D, { scale: Math.sqrt(D) }), positions);
    let memory = embed('source', source);
    for (let l = 0; l < layers; l++) memory = nn.encoderLayer(p.under(`encoder.${l}`), memory, undefined, LAYER);
    const [time, batch] = previous.shape;
    const self = t.attentionBias(time, time, { causal: true });
    let x = embed('target', previous);
    const cross = nn.attentionOver(memory, undefined, LAYER);
    for (let l = 0; l < layers; l++) x = nn.decoderLayer(p.under(`decoder.${l}`), x, { self, cross }, LAYER);
    const rows = t.multiplyDims(time, batch);
    const weight = p.get('output.weight', [VOCABULARY, D], nn.xavierUniform());
    const losses = t.linearCrossEntropy(t.reshape(x, [rows, D]), weight, t.reshape(targets, [rows]), {
      smoothing: 0.1,
    });
    return { loss: t.mul(t.sum(losses), 1 / (BATCH * TIME)) };
  };

export function setup({ layers = 6, ...options }) {
  const inputs = { source: t.i64('S', 'B'), previous: t.i64('T', 'B'), targets: t.i64('T', 'B') };
  const ids = (seed) => randomIds(seed, VOCABULARY, [TIME, BATCH]);
  return trainingSide(
    { model: model(layers), inputs, batch: { source: ids(1), previous: ids(2), targets: ids(3) } },
    options,
  );
}
