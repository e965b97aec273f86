/** 3 layers, post-norm, d 256, ffn 1024, 4 heads, vocabulary 10,000, 64 sentences of 32 tokens, causal. */
import * as nn from '../../dist/nn/index.js';
import * as t from '../../dist/tensor/index.js';
import { randomIds, trainingSide } from './step.mjs';

const [LAYERS, D, FFN, HEADS, VOCABULARY, BATCH, TIME] = [3, 256, 1024, 4, 10_000, 64, 32];

function model(p, { ids, targets }) {
  const [time, batch] = ids.shape;
  const bias = t.attentionBias(time, time, { causal: true });
  const embedded = nn.embedding(p.under('embedding'), ids, VOCABULARY, D, { scale: Math.sqrt(D) });
  let x = nn.addPositions(embedded, nn.sinusoidalTable(TIME, D));
  for (let l = 0; l < LAYERS; l++) x = nn.encoderLayer(p.under(l), x, bias, { heads: HEADS, ffn: FFN });
  const rows = t.multiplyDims(time, batch);
  const weight = p.get('output.weight', [VOCABULARY, D], nn.xavierUniform());
  const losses = t.linearCrossEntropy(t.reshape(x, [rows, D]), weight, t.reshape(targets, [rows]), { smoothing: 0.1 });
  return { loss: t.mul(t.sum(losses), 1 / (BATCH * TIME)) };
}

export function setup(options) {
  const inputs = { ids: t.i64('T', 'B'), targets: t.i64('T', 'B') };
  const batch = { ids: randomIds(1, VOCABULARY, [TIME, BATCH]), targets: randomIds(2, VOCABULARY, [TIME, BATCH]) };
  return trainingSide({ model, inputs, batch }, options);
}
