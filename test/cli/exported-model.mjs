// Greedy wait-k, or the policy that the model has learned, with nothing but ONNX Runtime and the files of `tcts export`:
// node exported-model.mjs FOLDER K < TEXT; instead of K: δ of itst, p of hmt, nothing for monotonic
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder, k] = [process.argv[2], Number(process.argv[3])];
// The runtime of Node.js, or with a fourth argument, the file ort-wasm-simd-threaded.wasm, that of browsers.
const [, , , , wasm] = process.argv;
const { env, InferenceSession, Tensor } = await import(
  wasm === undefined ? 'onnxruntime-node' : 'onnxruntime-web/wasm'
);
if (wasm !== undefined) Object.assign(env.wasm, { numThreads: 1, wasmBinary: readFileSync(wasm) });
const settings = JSON.parse(readFileSync(join(folder, 'settings.json'), 'utf8'));
const { model, tokens, languages } = settings;
const words = (language) =>
  readFileSync(join(folder, `dict.${language}.txt`), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => line.slice(0, line.lastIndexOf(' ')));
const sourceIds = new Map(words(languages.source).map((word, i) => [word, i + tokens.firstOwn]));
const targetWords = words(languages.target);
const encoder = await InferenceSession.create(readFileSync(join(folder, settings.encoderStep.file)));
const decoder = await InferenceSession.create(readFileSync(join(folder, settings.decoderStep.file)));

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

/** Whether a model that learned when to read would write now. */
const ready = ({ needed, readiness }, count, written) => {
  if (needed !== undefined) return Number(needed.data[0]) <= count;
  const [received] = readiness.data;
  return received > 0 && received >= k && (settings.policy === 'hmt' || written < 2 * count + 10);
};

for (const line of readFileSync(0, 'utf8').trimEnd().split('\n')) {
  const source = [...line.split(' ').map((word) => sourceIds.get(word) ?? tokens.unknown), tokens.end];
  const read = caches(settings.encoderStep, 'encoder');
  const seen = caches(settings.decoderStep, 'source');
  let written = caches(settings.decoderStep, 'decoder');
  let taken = 0; // target tokens that `written` holds
  const output = [tokens.start];
  let count = 0;
  const readUntil = async (end) => {
    for (; count < Math.min(end, source.length); count++) {
      const step = { tokens: integers([source[count]], [1, 1]), lengths: integers([count], [1]), ...read };
      const outputs = await encoder.run(step);
      append(read, outputs);
      append(seen, outputs);
    }
  };
  for (;;) {
    await readUntil(settings.policy === undefined ? output.length - 1 + k : 1);
    const next = output.slice(taken);
    const outputs = await decoder.run({
      tokens: integers(next, [next.length, 1]),
      lengths: integers([taken], [1]),
      visible: integers([count], [1]),
      ...('ended' in settings.decoderStep.inputs && { ended: integers([Number(count === source.length)], [1]) }),
      ...written,
      ...seen,
    });
    if (settings.policy !== undefined && count < source.length && !ready(outputs, count, output.length - 1)) {
      await readUntil(count + 1);
      // The states of such a model depend on how much has been read.
      if (settings.redecodes) [written, taken] = [caches(settings.decoderStep, 'decoder'), 0];
      continue;
    }
    append(written, outputs);
    taken = output.length;
    const token = Number(outputs.candidates.data[0]);
    if (token === tokens.end) break;
    output.push(token);
    const longest = count < source.length ? model.maxPositions - 1 : 2 * (source.length - 1) + 10;
    if (output.length - 1 >= longest) break;
  }
  console.log(
    output
      .slice(1)
      .map((id) => targetWords[id - tokens.firstOwn] ?? '<unk>')
      .join(' '),
  );
}
