import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readSafetensors, writeSafetensors } from '../../src/optim/safetensors.js';
import { Translator } from '../../src/translate/decode/translator.js';
import { readFairseq } from '../../src/translate/exchange/fairseq.js';
import { type ForeignModel, saveImported } from '../../src/translate/exchange/foreign.js';
import { readHuggingFace } from '../../src/translate/exchange/huggingface.js';
import { exportHuggingFace } from '../../src/translate/export.js';
import { openTrained } from '../../src/translate/trained.js';
import { temporaryFolder } from '../run/temporary.js';
import { arenaOf, logitsOf, vectors } from './imported-runs.js';
import { largestDifference, marianReference, referenceLogits } from './reference-transformer.js';

// The checkpoints and their logits come from test/vectors/make_checkpoints.py: random numbers in the layouts of fairseq,
// Marian and M2M-100, and a forward pass in plain PyTorch.

interface Expected {
  readonly source: number[];
  readonly previous: number[];
  readonly logits: number[][];
}

const expectedOf = (name: string): Expected => JSON.parse(readFileSync(join(vectors, name, 'logits.json'), 'utf8'));

const read = {
  fairseq: () => readFairseq(join(vectors, 'fairseq')),
  legacy: () => readFairseq(join(vectors, 'fairseq'), { checkpoint: 'legacy.pt' }),
  marian: () => readHuggingFace(join(vectors, 'marian')),
  m2m: () => readHuggingFace(join(vectors, 'm2m'), { source: 'en', target: 'de' }),
};

/** Our id of each id of a checkpoint, by the tokens of its vocabulary. */
function ourIds(name: string, { languages }: ForeignModel): number[] {
  if (name !== 'marian') return Array.from({ length: languages.target.vocabulary.size }, (_, id) => id);
  const tokens = Object.keys(JSON.parse(readFileSync(join(vectors, name, 'vocab.json'), 'utf8')));
  const special = new Map([...'<s> <pad> </s> <unk>'.split(' ').entries()].map(([id, token]) => [token, id]));
  return tokens.map((token) => special.get(token) ?? languages.source.vocabulary.id(token));
}

describe('imported models', () => {
  it.each(['fairseq', 'legacy', 'marian', 'm2m'] as const)('have the logits of PyTorch: %s', async (kind) => {
    const name = kind === 'legacy' ? 'fairseq' : kind;
    const expected = expectedOf(name);
    const foreign = read[kind]();
    const ids = ourIds(name, foreign);
    const previous = [2, ...expected.previous.slice(1).map((id) => ids[id])];
    const logits = await logitsOf(
      foreign.model,
      arenaOf(foreign),
      expected.source.map((id) => (name === 'fairseq' ? id : ids[id])),
      previous,
    );
    const theirs = logits.map((row) => expected.logits[0].map((_, id) => row[ids[id]]));
    expect(largestDifference(theirs, expected.logits)).toBeLessThan(1e-5);
    expect(Math.max(...expected.logits.flat().map(Math.abs))).toBeGreaterThan(1);
  });

  it('give a token that Marian lacks no probability', async () => {
    const foreign = read.marian();
    const [row] = await logitsOf(foreign.model, arenaOf(foreign), [4, 2], [2]);
    expect(row[0]).toBe(-50);
    expect(foreign.model).toMatchObject({ activation: 'swish', positions: 'marian', start: 'pad', outputBias: true });
  });

  it('are run folders that translate as they are, in a stream as in a batch', async () => {
    for (const kind of ['fairseq', 'marian', 'm2m'] as const) {
      const run = join(temporaryFolder(), kind);
      saveImported(run, read[kind](), { from: kind });
      const translator = await Translator.open(run, { beam: 1 });
      const line = kind === 'fairseq' ? 'the dog sees a cat' : 'the dog sees the dog';
      for (const text of kind === 'm2m' ? ['wait-k:2'] : ['wait-k:full', 'alignatt']) {
        const policy = translator.policy(text);
        const [batch] = await translator.lines([line], policy, { beam: 1, earlyEnd: 'block' });
        const stream = translator.stream(policy, { beam: 1, earlyEnd: 'block' });
        let written = '';
        for (const word of line.split(' ')) written += await stream.push(word);
        written += await stream.end();
        expect([kind, text, written.trim()]).toEqual([kind, text, batch.trim()]);
        if (kind === 'm2m') expect(stream.decoded.tokens[0]).toBe(translator.target.vocabulary.id('__de__'));
      }
      await translator.close();
    }
  });

  it('keep every bit in the run folder', () => {
    const foreign = read.marian();
    const run = join(temporaryFolder(), 'run');
    saveImported(run, foreign, { from: 'marian' });
    const { arena, model, waits, languages } = openTrained(run);
    expect([...arena.names].sort()).toEqual([...foreign.parameters.keys()].sort());
    for (const name of arena.names) expect(arena.value(name)).toEqual(foreign.parameters.get(name));
    expect(model).toEqual(foreign.model);
    expect(waits).toBe('full');
    expect(languages.source.vocabulary.format()).toBe(foreign.languages.source.vocabulary.format());
    expect(() => saveImported(run, foreign, { from: 'marian' })).toThrow(/there is already a run/);
  });
});

describe('what a model does not support is said by its key', () => {
  /** A copy of a folder with other settings. */
  const changed = (name: 'marian' | 'm2m', file: string, settings: object): string => {
    const folder = join(temporaryFolder(), name);
    cpSync(join(vectors, name), folder, { recursive: true });
    const own = JSON.parse(readFileSync(join(folder, file), 'utf8'));
    writeFileSync(join(folder, file), JSON.stringify({ ...own, ...settings }));
    return folder;
  };

  it.each([
    [{ model_type: 'bart' }, /model_type.*expected a model of type marian or m2m_100, found "bart"/],
    [{ activation_function: 'tanh' }, /activation_function.*does not support "tanh"/],
    [{ normalize_before: true }, /normalize_before.*does not support true/],
    [{ normalize_embedding: true }, /normalize_embedding/],
    [{ decoder_ffn_dim: 7 }, /decoder_ffn_dim.*it is 7, but 12 in the encoder/],
    [{ decoder_start_token_id: 5 }, /decoder_start_token_id/],
    [{ d_model: 9 }, /expected an even width that 2 heads can share, found 9/],
    [{ encoder_layers: 1.5 }, /says 1\.5 for encoderLayers, expected a whole number/],
    [{ encoder_layers: 3 }, /model\.encoder\.layers\.2.*the checkpoint does not have this tensor/],
    [{ encoder_layers: 1 }, /model\.encoder\.layers\.1.*the model has no place for this tensor/],
    [{ d_model: 10 }, /expected \[\d+, 10\]/],
    [{ vocab_size: 5 }, /the id of .* is \d+, expected one below 5/],
  ])('%o', (settings, sentence) => {
    expect(() => readHuggingFace(changed('marian', 'config.json', settings))).toThrow(sentence);
  });

  it('a language that M2M-100 does not have', () => {
    expect(() => readHuggingFace(join(vectors, 'm2m'), { source: 'en', target: 'xx' })).toThrow(/no token "__xx__"/);
    expect(() => readHuggingFace(join(vectors, 'm2m'))).toThrow(/does not name its source language, expected --source/);
  });

  it('a prefix that is not in the vocabulary', () => {
    const { languages } = readHuggingFace(join(vectors, 'marian'), { prefix: '▁the' });
    expect(languages.source.config.prefix).toEqual(['▁the']);
    expect(languages.target.config.prefix).toBeUndefined();
    expect(() => readHuggingFace(join(vectors, 'marian'), { prefix: '>>fra<<' })).toThrow(/no token ">>fra<<"/);
  });

  it('a tensor that is not finite', () => {
    const folder = changed('marian', 'config.json', {});
    const { tensors, metadata } = readSafetensors(join(folder, 'model.safetensors'));
    (tensors.get('final_logits_bias')?.data as Float32Array)[3] = Number.NaN;
    writeSafetensors(join(folder, 'model.safetensors'), tensors, metadata);
    expect(() => readHuggingFace(folder)).toThrow(/final_logits_bias.*the tensor is not finite/);
  });

  it('a folder without a checkpoint', () => {
    const folder = join(temporaryFolder(), 'empty');
    mkdirSync(folder);
    expect(() => readFairseq(folder)).toThrow(/expected checkpoint_best.pt or model.pt, found none/);
    expect(() => readHuggingFace(folder)).toThrow(/config.json/);
  });
});

describe('the reference in loops', () => {
  it('has the logits of PyTorch too', () => {
    const { source, previous, logits } = expectedOf('marian');
    const found = referenceLogits(marianReference(join(vectors, 'marian')), source, previous);
    expect(largestDifference(found, logits)).toBeLessThan(1e-7);
  });
});

describe('export for transformers', () => {
  it('gives back what was imported: the same logits in PyTorch, the same bits when imported again', () => {
    const [run, folder] = ['run', 'exported'].map((name) => join(temporaryFolder(), name));
    const foreign = read.marian();
    saveImported(run, foreign, { from: 'marian' });
    exportHuggingFace(run, folder);
    const { source, previous, logits } = expectedOf('marian');
    expect(largestDifference(referenceLogits(marianReference(folder), source, previous), logits)).toBeLessThan(1e-7);
    const json = (path: string) => JSON.parse(readFileSync(path, 'utf8'));
    for (const name of ['config.json', 'vocab.json', 'tokenizer_config.json']) {
      const [before, after] = [json(join(vectors, 'marian', name)), json(join(folder, name))];
      for (const key of Object.keys(before).filter((known) => known in after)) expect(after[key]).toEqual(before[key]);
    }
    for (const name of ['source.spm', 'target.spm']) {
      expect(readFileSync(join(folder, name))).toEqual(readFileSync(join(vectors, 'marian', name)));
    }
    const again = readHuggingFace(folder);
    expect(again.model).toEqual(foreign.model);
    expect(again.languages.target.vocabulary.format()).toBe(foreign.languages.target.vocabulary.format());
    for (const [name, numbers] of foreign.parameters) expect(again.parameters.get(name)).toEqual(numbers);
  });

  it('has a table for each side where the languages share none', () => {
    const [run, folder] = ['run', 'exported'].map((name) => join(temporaryFolder(), name));
    const foreign = read.marian();
    const table = foreign.parameters.get('encoder.embed_tokens.weight') as Float32Array;
    const model = { ...foreign.model, sharedEmbeddings: 'decoder' } as const;
    const parameters = new Map(foreign.parameters).set(
      'decoder.embed_tokens.weight',
      table.map((x) => x / 2),
    );
    saveImported(run, { ...foreign, model, parameters }, { from: 'marian' });
    exportHuggingFace(run, folder);
    const again = readHuggingFace(folder);
    expect(again.model).toEqual(model);
    for (const [name, numbers] of parameters) expect(again.parameters.get(name)).toEqual(numbers);
  });

  it('refuses what Marian does not support, and writes nothing', () => {
    for (const [kind, sentence] of [
      ['fairseq', /model\.positions.*does not support fairseq, expected marian/],
      ['m2m', /model\.norm.*does not support pre, expected post/],
    ] as const) {
      const [run, folder] = ['run', 'exported'].map((name) => join(temporaryFolder(), name));
      saveImported(run, read[kind](), { from: kind });
      expect(() => exportHuggingFace(run, folder)).toThrow(sentence);
      expect(existsSync(folder)).toBe(false);
    }
  });
});
