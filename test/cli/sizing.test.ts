import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { chooseExtent, loadTrainConfig } from '../../src/cli/sizing.js';
import { parseDuration } from '../../src/run/index.js';
import { batchTokens, chooseRung, productsPerToken, RUNGS, warmupFor } from '../../src/translate/sizing.js';
import { temporaryFolder } from '../run/temporary.js';
import { tcts } from './train-process.js';

const corpus = (target: number, longest = 40) => ({
  pairs: target / 14,
  source: target,
  target,
  longest,
  vocabulary: { source: 5888, target: 5888, shared: true },
});

test('products of an update are those of a count by hand', () => {
  // d = 256, ffn = 2 d, 3 + 3 layers, V = 23 d, as many source as target tokens. A layer of the encoder has 4 d² for
  // attention and 4 d² for its feed-forward part, one of the decoder 4 d² more: 3 · 8 + 3 · 12 + 23 = 83 d², three times.
  expect(productsPerToken(RUNGS[2], corpus(4e5))).toBe(3 * 83 * 256 ** 2);
  // Half as many source tokens: the encoder's 24 and the keys and values of the cross-attention, 3 · 2, by half.
  const short = { ...corpus(4e5), source: 2e5 };
  expect(productsPerToken(RUNGS[2], short)).toBe(3 * (83 - 12 - 3) * 256 ** 2);
});

test('the model is the largest that the corpus can feed', () => {
  const layers = (target: number) => chooseRung(corpus(target)).model;
  expect(layers(43_000)).toEqual({ preset: 'tiny' });
  expect(layers(150_000)).toEqual({ preset: 'tiny', width: 128, ffn: 256 });
  expect(layers(410_000)).toEqual({ preset: 'small', encoderLayers: 3, decoderLayers: 3, ffn: 512 });
  expect(layers(3_500_000)).toEqual({ preset: 'small' });
  expect(layers(2e7)).toEqual({ preset: 'iwslt' });
  expect(layers(1.2e8)).toEqual({ preset: 'big' });
});

test('and that has the time to see enough of it', () => {
  // 2 million tokens of 249 · 256² ≈ 1.632e7 products each are 3.26e13: 1,088 s at 3e10 a second.
  const within = (budget: number) => chooseRung(corpus(4e5), { budget, speed: 3e10 }).model.preset;
  expect(within(1089)).toBe('small');
  expect(within(1087)).toBe('tiny');
  expect(chooseRung(corpus(4e5), { budget: 1087, speed: 6e10 }).model.preset).toBe('small');
  // With d = 128, ffn 256, 2 + 2 layers: 3 · (2 · 8 + 2 · 12 + 46) d² = 258 · 128² a token, 600,000 of them 2.54e12.
  const small = (budget: number) => chooseRung(corpus(4e5), { budget, speed: 3e10 }).model.width;
  expect([small(85), small(84)]).toEqual([128, undefined]);
});

test('batches leave 20 of them in an epoch and have room for the longest sentence', () => {
  expect(batchTokens(RUNGS[3], corpus(3e6))).toBe(4096);
  expect(batchTokens(RUNGS[0], corpus(43_000))).toBe(1024); // 42 of them
  expect(batchTokens(RUNGS[0], corpus(11_000))).toBe(512); // 10.7 of 1,024, 21.5 of 512
  expect(batchTokens(RUNGS[0], corpus(1000))).toBe(256);
  expect(batchTokens(RUNGS[0], corpus(1000, 300))).toBe(300);
  expect([warmupFor(1), warmupFor(1800), warmupFor(100_000)]).toEqual([1, 360, 4000]);
});

test('updates fill the time, and no more are made than are of use', () => {
  const speed = { update: 0.4, strategy: 0.1, validation: 2, create: 5, passes: 1 };
  // 1,800 s less 5 and three validations: 1,789, of which 40 validations take 80 ≤ 178.9; (1789 / 40 − 2) / 0.5 = 85.45.
  expect(chooseExtent({ ...speed, budget: 1800, most: 1e9 })).toEqual({
    episodes: 40,
    steps: 85,
    seconds: 11 + 40 * (85 * 0.5 + 2),
  });
  expect(chooseExtent({ ...speed, budget: 1800, most: 1000 })).toMatchObject({ episodes: 40, steps: 25 });
  // 300: 289 / 10 / 2 = 14 validations; (289 / 14 − 2) / 0.5 = 37.3.
  expect(chooseExtent({ ...speed, budget: 300, most: 1e9 })).toMatchObject({ episodes: 14, steps: 37 });
  // Two models one after the other, half of the time each.
  expect(chooseExtent({ ...speed, passes: 2, budget: 1800, most: 1e9 })).toMatchObject({ episodes: 40, steps: 40 });
  expect(chooseExtent({ ...speed, budget: 1, most: 1e9 })).toMatchObject({ episodes: 4, steps: 1 });
});

test('lengths of time', () => {
  expect(['90s', '30m', '1.5h', '1h30m', '1m1s'].map(parseDuration)).toEqual([90, 1800, 5400, 5400, 61]);
  expect(['', 'm', '30', '5x', '1m1h', '0s', '-1s', '.5h'].map(parseDuration)).toEqual(Array(8).fill(undefined));
});

test('sizes that are left out are chosen where there is a budget; those that are given stay', async () => {
  const problem = { kind: 'translation', data: { from: 'verb-final' } } as const;
  const strategy = { name: 'mtl' } as const;
  const load = (more: object, set: string[] = []) =>
    loadTrainConfig({ problem: { ...problem, ...more }, strategy }, set);
  const plain = await load({});
  expect(plain.problem).toMatchObject({ model: { preset: 'small' }, batch: { tokens: 4096 } });
  const auto = { model: { preset: 'auto' }, batch: { tokens: 'auto' }, learning: { peak: 'auto', warmup: 'auto' } };
  expect((await load({}, ['training.budget=30m'])).problem).toMatchObject(auto);
  expect((await load({ model: 'auto' })).problem).toMatchObject(auto);
  const given = await load({ model: { encoder: 'bidirectional' }, batch: { tokens: 100 } }, ['training.budget=30m']);
  expect(given.problem).toMatchObject({
    model: { preset: 'auto', encoder: 'bidirectional' },
    batch: { tokens: 100 },
    learning: { peak: 'auto' },
  });
  expect(given.problem).not.toHaveProperty('model.encoderLayers');
  await expect(load({}, ['training.budget=soon'])).rejects.toThrow('training.budget: expected text that matches');
});

test('a training takes about the time it is given, and its folder says with which sizes', async () => {
  const folder = temporaryFolder();
  const lines = ['problem: {kind: translation, data: {from: verb-final}}', 'strategy: {name: mtl}', 'threads: 1'];
  writeFileSync(join(folder, 'words.yaml'), `${lines.join('\n')}\n`);
  const began = performance.now();
  const { code, stderr } = await tcts(folder, 'train', 'words.yaml', '--budget', '4s');
  const seconds = (performance.now() - began) / 1000;
  expect({ code, stderr }).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/corpus: 5,000 pairs, .*\nmodel: 2\+2 layers, width 64, .*\nbatch: 1,024 tokens/),
  });
  expect(stderr).toMatch(/training: \d+ × \d+ updates, .* of 4s\n/);
  // A busy machine can be slower than it was when it was timed; an unlimited training would take many minutes.
  expect(seconds).toBeGreaterThan(1.5);
  expect(seconds).toBeLessThan(100);
  const saved = readFileSync(join(folder, 'runs/words/config.yaml'), 'utf8');
  const { problem, training } = parse(saved);
  expect(problem).toMatchObject({ model: { preset: 'tiny' }, batch: { tokens: 1024 }, learning: { peak: 5e-3 } });
  expect(problem.learning.warmup).toBe(warmupFor(training.episodes * training.steps));
  // A resume takes the sizes of the folder.
  const again = await tcts(folder, 'train', '--resume', 'words.yaml', '--budget', '4s');
  expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('finished after') });
  expect(readFileSync(join(folder, 'runs/words/config.yaml'), 'utf8')).toBe(saved);
  const other = await tcts(folder, 'train', '--resume', 'words.yaml', '--budget', '7s');
  expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining('training.budget') });
  const probe = await tcts(folder, 'probe', 'words.yaml', '--set', 'training.budget=4s');
  expect(probe).toMatchObject({ code: 1, stderr: expect.stringContaining('a probe needs sizes that do not change') });
}, 120_000);
