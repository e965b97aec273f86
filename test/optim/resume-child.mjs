// Trains a small model with dropout for 20 steps, at once or in two processes, and prints a hash of its parameters.
import { createHash } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mlp } from '../../dist/nn/index.js';
import { readSafetensors, Training, writeSafetensors } from '../../dist/optim/index.js';
import { Random } from '../../dist/random.js';
import { captureTraining, restoreTraining } from '../../dist/schedule/index.js';
import * as t from '../../dist/tensor/index.js';

const [part, workers, file] = process.argv.slice(2);
const training = await Training.create({
  model: (p, { x, y }) => {
    const out = t.squeeze(mlp(p, t.dropout(x, 0.1), { hidden: [16, 16], out: 1, dropout: 0.3 }), 1);
    return { loss: t.sum(t.square(t.sub(out, y))) };
  },
  inputs: { x: t.f32('B', 4), y: t.f32('B') },
  random: new Random('resume'),
  optimizer: { name: 'adam' },
  workers: Number(workers),
});
let data = new Random('data');

if (part === 'second-half') {
  const { tensors, metadata } = readSafetensors(file);
  const saved = JSON.parse(metadata.state);
  restoreTraining(training, { tensors, state: saved.training });
  data = Random.restore(saved.data);
}
for (let i = 0; i < (part === 'whole' ? 20 : 10); i++) await training.step(batch(12), 0.01);
if (part === 'first-half') {
  const path = join(mkdtempSync(join(tmpdir(), 'tcts-resume-')), 'half.safetensors');
  const { tensors, state } = captureTraining(training);
  writeSafetensors(path, tensors, { state: JSON.stringify({ training: state, data: data.state() }) });
  console.log(path);
} else {
  const { values } = training.arena;
  console.log(
    createHash('sha256')
      .update(new Uint8Array(values.buffer, values.byteOffset, values.byteLength))
      .digest('hex'),
  );
}
await training.close();

function batch(size) {
  const values = (n) => {
    const array = new Float32Array(n);
    data.fillNormal(array, 0, 1);
    return array;
  };
  return { x: { data: values(size * 4), shape: [size, 4] }, y: { data: values(size), shape: [size] } };
}
