import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readSafetensors } from '../../src/optim/safetensors.js';
import { Translator } from '../../src/translate/decode/translator.js';
import { exportTranslation } from '../../src/translate/export.js';
import { waitK } from '../../src/translate/policies/wait-k.js';
import { openTrained } from '../../src/translate/trained.js';
import { randomTranslationRun, type TranslationRun } from './translation-run.js';

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const wasm = createRequire(import.meta.url).resolve('onnxruntime-web/ort-wasm-simd-threaded.wasm');
const outside = fileURLToPath(new URL('./exported-model.mjs', import.meta.url));

let run: TranslationRun;
beforeAll(async () => {
  run = await randomTranslationRun(3);
});
afterAll(() => run.remove());

describe('an exported model', () => {
  it.each([1, 4])('gives the same words under ONNX Runtime alone, with wait-%i', async (k) => {
    const folder = join(run.scratch, `exported-${k}`);
    exportTranslation(run.folder, folder);
    const lines = run.sources.slice(0, 12);
    const { stdout, stderr } = spawnSync(process.execPath, [outside, folder, String(k)], {
      input: `${lines.join('\n')}\n`,
      encoding: 'utf8',
    });
    const translator = await Translator.open(run.folder, { beam: 1 });
    const expected = await translator.lines(lines, waitK(k), { beam: 1 });
    await translator.close();
    expect(stderr).toBe('');
    expect(stdout.trimEnd().split('\n')).toEqual(expected);
    expect(expected.join('').length).toBeGreaterThan(0);
  });

  it.each([
    ['milk', '', 'monotonic'],
    ['itst', '1', 'itst:delta=1'],
    ['hmt', '0.5', 'hmt:p=0.5'],
  ] as const)('that learned when to read gives the same words, %s', async (attention, threshold, policy) => {
    const own = await randomTranslationRun(3, attention);
    const folder = join(own.scratch, 'exported');
    exportTranslation(own.folder, folder);
    const lines = own.sources.slice(0, 5);
    // ONNX Runtime of Node.js, and of browsers as in `tcts serve --browser`.
    const ran = [[], [wasm]].map((runtime) =>
      spawnSync(process.execPath, [outside, folder, threshold, ...runtime], {
        input: `${lines.join('\n')}\n`,
        encoding: 'utf8',
      }),
    );
    const translator = await Translator.open(own.folder, { beam: 1 });
    const expected = await translator.lines(lines, translator.policy(policy), { beam: 1 });
    await translator.close();
    own.remove();
    for (const { stdout, stderr } of ran) {
      expect(stderr).toBe('');
      expect(stdout.trimEnd().split('\n')).toEqual(expected);
    }
    expect(new Set(expected).size).toBeGreaterThan(3);
  });

  it('comes with its vocabularies and settings', () => {
    const folder = join(run.scratch, 'exported');
    const { files } = exportTranslation(run.folder, folder);
    expect(files.map(({ name }) => name)).toEqual(['encoder-step.onnx', 'decoder-step.onnx', 'settings.json']);
    for (const name of ['text.json', 'dict.sov.txt', 'dict.svo.txt']) expect(existsSync(join(folder, name))).toBe(true);
    const settings = JSON.parse(readFileSync(join(folder, 'settings.json'), 'utf8'));
    expect(settings).toMatchObject({ main: 3, waits: 9, updates: 7, tokens: { start: 2, end: 2 } });
    expect(settings.encoderStep.inputs['encoder.keys.0']).toBe('f32[T, B, 16]');
    expect(settings.decoderStep.outputs['new.decoder.values.1']).toBe('f32[N, B, 16]');
    // Two layers of two heads.
    expect(settings.decoderStep.outputs.attention).toBe('f32[B, 4, S]');
  });

  it('can be had as its parameters alone, without the state of the optimiser', () => {
    const file = join(run.scratch, 'model.safetensors');
    const { stdout, stderr, status } = spawnSync(process.execPath, [main, 'export', run.folder, '--parameters', file], {
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/model\.safetensors {2}\d+ kB\n$/);
    const { tensors, metadata } = readSafetensors(file);
    const { arena, model } = openTrained(run.folder);
    expect([...tensors.keys()].sort()).toEqual([...arena.names].sort());
    for (const name of arena.names) {
      expect(tensors.get(name)).toEqual({ dtype: 'F32', shape: arena.shape(name), data: arena.value(name) });
    }
    expect(metadata).toEqual({ format: 'pt', model: JSON.stringify(model), updates: '7' });
    const nothing = spawnSync(process.execPath, [main, 'export', run.folder], { encoding: 'utf8' });
    expect(nothing).toMatchObject({
      status: 1,
      stderr: 'tcts: --onnx: missing: expected --onnx, --hf or --parameters\n',
    });
  });

  it('is refused where the vocabulary does not match the checkpoint', async () => {
    const other = await randomTranslationRun(2);
    const dict = join(other.folder, 'dict.svo.txt');
    writeFileSync(dict, `${readFileSync(dict, 'utf8')}onemore 1\n`);
    expect(() => openTrained(other.folder)).toThrow(/dict\.svo\.txt: it has \d+ entries, the model was trained with/);
    other.remove();
  });
});
