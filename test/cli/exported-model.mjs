// Greedy wait-k with nothing but ONNX Runtime and the files of `tcts export`: node exported-model.mjs FOLDER K < TEXT
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';

const [folder, k] = [process.argv[2], Number(process.argv[3])];
const settings = JSON.parse(readFileSync(join(folder, 'settings.json'), 'utf8'));
const { model, tokens, languages } = settings;
const words = (language) =>
  readFileSync(join(folder, `dict.${language}.txt`), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => line.slice(0, line.lastIndexOf(' ')));
const sourceIds = new Map(words(languages.source).map((word, i) => [word, i + tokens.firstOwn]));
const targetWords = words(languages.target);
const encoder = await InferenceSession.create(join(folder, settings.encoderStep.file));
const decoder = await InferenceSession.create(join(folder, settings.decoderStep.file));

const integers = (values, shape) => new Tensor('int64', BigInt64Array.from(values.map(BigInt)), shape);
const caches = (step, owner) =>
  Object.fromEntries(
    Object.keys(step.inputs)
      .filter((name) => name.startsWith(`${owner}.`))
      .map((name) => [name, new Tensor('float32', new Float32Array(0), [0, 1, model.width])]),
  );
const append = (cache, outputs) => {
  for (const name of Object.keys(cache)) {
    const data = Float32Array.from([...cache[name].data, ...outputs[`new.${name}`].data]);
    cache[name] = new Tensor('float32', data, [data.length / model.width, 1, model.width]);
  }
};

for (const line of readFileSync(0, 'utf8').trimEnd().split('\n')) {
  const source = [...line.split(' ').map((word) => sourceIds.get(word) ?? tokens.unknown), tokens.end];
  const read = caches(settings.encoderStep, 'encoder');
  const seen = caches(settings.decoderStep, 'source');
  const written = caches(settings.decoderStep, 'decoder');
  const output = [];
  let count = 0;
  for (let previous = tokens.start; output.length < 2 * (source.length - 1) + 10; ) {
    for (; count < Math.min(output.length + k, source.length); count++) {
      const step = { tokens: integers([source[count]], [1, 1]), lengths: integers([count], [1]), ...read };
      const outputs = await encoder.run(step);
      append(read, outputs);
      append(seen, outputs);
    }
    const outputs = await decoder.run({
      tokens: integers([previous], [1, 1]),
      lengths: integers([output.length], [1]),
      visible: integers([count], [1]),
      ...written,
      ...seen,
    });
    append(written, outputs);
    previous = Number(outputs.candidates.data[0]);
    if (previous === tokens.end) break;
    output.push(targetWords[previous - tokens.firstOwn] ?? '<unk>');
  }
  console.log(output.join(' '));
}
