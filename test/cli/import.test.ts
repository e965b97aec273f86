import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readSafetensors } from '../../src/optim/safetensors.js';
import { openTrained, trainedMonotonic } from '../../src/translate/trained.js';
import { temporaryFolder } from '../run/temporary.js';
import { logitsOf, vectors, writePairs } from '../translate/imported-runs.js';
import {
  largestDifference,
  marianReference,
  type Numbers,
  referenceLogits,
} from '../translate/reference-transformer.js';
import { tcts } from './train-process.js';

/** Runs the tool in a folder; its output, if it succeeds. */
async function run(folder: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await tcts(folder, ...args);
  expect({ args, code, stderr: code === 0 ? '' : stderr }).toEqual({ args, code: 0, stderr: '' });
  return stdout;
}

/** Imports, prepares a corpus for it, and trains it further under wait-2, with these keys of the model. */
async function trainedFurther(kind: 'fairseq' | 'hf', checkpoint: string, keys: object): Promise<string> {
  const folder = temporaryFolder();
  await run(folder, 'import', kind, join(vectors, checkpoint), '--out', 'runs/imported');
  const text = writePairs(folder);
  const languages = ['--source', 'en', '--target', 'de', '--like', 'runs/imported'];
  const splits = ['--train', text, '--valid', text, '--test', text];
  await run(folder, 'prepare', 'translate', ...languages, ...splits, '--out', 'corpus');
  const config = {
    extends: 'runs/imported/start.yaml',
    problem: {
      kind: 'translation',
      data: { from: 'corpus', folder: 'corpus' },
      waits: 2,
      main: 2,
      learning: { peak: 0.01, warmup: 1 },
      ...keys,
    },
    strategy: { name: 'fixed' },
    training: { episodes: 1, steps: 3 },
  };
  writeFileSync(join(folder, 'further.yaml'), JSON.stringify(config));
  await run(folder, 'train', 'further.yaml', '--set', 'logging.tensorboard=false');
  return folder;
}

test('a model of fairseq is imported, trained further, translates, and is exported with the same logits', async () => {
  const folder = await trainedFurther('fairseq', 'fairseq', {});
  const translated = await run(folder, 'translate', 'runs/further', '--input', 'text.en', '--beam', '2');
  expect(translated.split('\n')).toHaveLength(5);
  await run(folder, 'export', 'runs/further', '--parameters', 'model.safetensors');
  const { tensors } = readSafetensors(join(folder, 'model.safetensors'));
  const [encoder, decoder] = ['encoder', 'decoder'].map((side) => `${side}.embed_tokens.weight`);
  const model = {
    tensors: tensors as unknown as ReadonlyMap<string, Numbers>,
    layers: [2, 1],
    heads: 2,
    norm: 'post',
    activation: 'relu',
    positions: 'fairseq',
    tables: { encoder, decoder, output: decoder },
  } as const;
  const [source, previous] = [
    [4, 6, 8, 2],
    [2, 5, 7],
  ];
  const trained = openTrained(join(folder, 'runs/further'));
  const logits = await logitsOf(trained.model, trained.arena, source, previous);
  expect(largestDifference(referenceLogits(model, source, previous), logits)).toBeLessThan(1e-5);
  const imported = openTrained(join(folder, 'runs/imported'));
  const before = await logitsOf(imported.model, imported.arena, source, previous);
  expect(largestDifference(before, logits)).toBeGreaterThan(0.01);
});

test('a model of Marian is imported, given trained adapters, evaluated, and exported with the same logits', async () => {
  const folder = await trainedFurther('hf', 'marian', { model: { adapters: { rank: 2 } } });
  const [{ results }] = [JSON.parse(await run(folder, 'evaluate', 'runs/further', '--json', '--beam', '1'))];
  expect(results).toMatchObject([{ k: 2, sentences: 4 }]);
  // The imported run has no data of its own.
  const { code, stderr } = await tcts(folder, 'evaluate', 'runs/imported');
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: 'tcts: runs/imported: --data: the run has no data, expected a corpus\n',
  });
  await run(folder, 'export', 'runs/further', '--hf', 'exported');
  const trained = openTrained(join(folder, 'runs/further'));
  // Ours are <s> <pad> </s> <unk> and the others; Marian's </s> <unk>, the others and <pad>.
  const size = trained.model.vocabulary.target;
  const marian = (id: number): number => (id > 3 ? id - 2 : id === 1 ? size - 2 : id - 2);
  const [source, previous] = [
    [4, 6, 8, 2],
    [19, 21],
  ];
  const logits = await logitsOf(trained.model, trained.arena, source, [2, ...previous]);
  const theirs = referenceLogits(marianReference(join(folder, 'exported')), source.map(marian), [
    marian(1),
    ...previous.map(marian),
  ]);
  const own = Array.from({ length: size - 1 }, (_, i) => i + 1);
  const ordered = theirs.map((row) => own.map((id) => row[marian(id)]));
  expect(
    largestDifference(
      ordered,
      logits.map((row) => row.slice(1)),
    ),
  ).toBeLessThan(1e-5);
  const imported = openTrained(join(folder, 'runs/imported'));
  const before = await logitsOf(imported.model, imported.arena, source, [2, ...previous]);
  expect(largestDifference(before, logits)).toBeGreaterThan(1e-3);

  // A model that learns when to read can start from it as well: another kind of problem extends the same file.
  const policy = {
    extends: 'runs/imported/start.yaml',
    problem: {
      ...{ kind: 'monotonic', attention: 'itst', latencyWeights: [0, 1], main: 1 },
      data: { from: 'corpus', folder: 'corpus' },
      model: { encoder: 'unidirectional', adapters: { rank: 2 } },
      learning: { warmup: 1 },
    },
    strategy: { name: 'learned' },
    training: { episodes: 1, steps: 2 },
  };
  writeFileSync(join(folder, 'policy.yaml'), JSON.stringify(policy));
  await run(folder, 'train', 'policy.yaml', '--quiet', '--set', 'logging.tensorboard=false');
  const { model } = trainedMonotonic(join(folder, 'runs/policy'));
  expect(model).toMatchObject({ attention: 'itst', width: 8, activation: 'swish', positions: 'marian', start: 'pad' });
  expect(await run(folder, 'translate', 'runs/policy', '--input', 'text.en')).toMatch(/^(.*\n){4}$/);
});
