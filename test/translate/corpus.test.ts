import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { InputError } from '../../src/errors.js';
import { openCorpus } from '../../src/translate/corpus/corpus.js';
import { defaultFilters, encodeSplit } from '../../src/translate/corpus/encode-split.js';
import { type PrepareOptions, prepareTranslation } from '../../src/translate/corpus/prepare.js';
import { idTypeFor, SequenceFile, SequenceWriter } from '../../src/translate/corpus/sequence-file.js';
import { importFairseq } from '../../src/translate/exchange/fairseq.js';
import { modelSchema } from '../../src/translate/model/config.js';
import { loadLanguages } from '../../src/translate/text/languages.js';
import { textPipeline } from '../../src/translate/text/pipeline.js';
import { toyText, writeToyText } from '../../src/translate/toy.js';
import { describeWithShared, readShared, shared } from '../shared.js';

const root = mkdtempSync(join(tmpdir(), 'tcts-corpus-'));
afterAll(() => rmSync(root, { recursive: true }));
let folder = '';
let runs = 0;
beforeEach(() => {
  folder = join(root, String(runs++));
});

const options = (more: Partial<PrepareOptions> = {}): PrepareOptions => {
  const config = { lowercase: false, normalize: false, tokenizer: { kind: 'none' }, bpe: {} } as const;
  return {
    source: { config: { language: 'sov', ...config } },
    target: { config: { language: 'svo', ...config } },
    train: join(folder, 'train'),
    valid: join(folder, 'valid'),
    test: [join(folder, 'test')],
    out: join(folder, 'out'),
    learning: { bpe: 100, joint: true, sharedVocabulary: true, filters: defaultFilters },
    ...more,
  };
};

const contents = (path: string): Record<string, string> =>
  Object.fromEntries(readdirSync(path).map((name) => [name, readFileSync(join(path, name)).toString('base64')]));

describe('sequences on disk', () => {
  it('are read back as they were written, for small and large vocabularies', () => {
    const prefix = join(root, 'sequences');
    for (const size of [65_000, 70_000]) {
      fc.assert(
        fc.property(fc.array(fc.array(fc.nat(size - 1), { maxLength: 20 }), { maxLength: 20 }), (sequences) => {
          const writer = new SequenceWriter(prefix, idTypeFor(size));
          for (const ids of sequences) writer.append(ids);
          writer.finish();
          const file = SequenceFile.open(prefix);
          expect(Array.from({ length: file.count }, (_, i) => [...file.read(i)])).toEqual(sequences);
          file.close();
        }),
        { numRuns: 30 },
      );
    }
  });

  it('have the layout of fairseq', () => {
    // By hand: magic, version 1, type 8, two sequences; lengths 2 and 1; offsets 0 and 4 bytes; ids 258, 2, 2.
    const prefix = join(root, 'layout');
    const writer = new SequenceWriter(prefix, idTypeFor(300));
    writer.append([258, 2]);
    writer.append([2]);
    writer.finish();
    expect(readFileSync(`${prefix}.bin`).toString('hex')).toBe('020102000200');
    const index = [
      '4d4d494449445800' + '00',
      '0100000000000000',
      '08',
      '0200000000000000',
      '02000000' + '01000000',
      '0000000000000000' + '0400000000000000',
    ];
    expect(readFileSync(`${prefix}.idx`).toString('hex')).toBe(index.join(''));
  });

  it('are refused when damaged', () => {
    const prefix = join(root, 'damaged');
    writeFileSync(`${prefix}.idx`, 'something else that is long enough');
    expect(() => SequenceFile.open(prefix)).toThrow('MMIDIDX');
    const writer = new SequenceWriter(prefix, idTypeFor(300));
    writer.append([4, 5, 2]);
    writer.finish();
    const index = readFileSync(`${prefix}.idx`);
    for (let at = 0; at < index.length; at++) {
      const changed = Buffer.from(index);
      changed[at] ^= 0xff;
      writeFileSync(`${prefix}.idx`, changed);
      expect(() => SequenceFile.open(prefix), `byte ${at}`).toThrow(InputError);
    }
    writeFileSync(`${prefix}.idx`, index);
    writeFileSync(`${prefix}.bin`, 'x');
    expect(() => SequenceFile.open(prefix)).toThrow('expected at least 6 by its index');
  });
});

describe('preparing a corpus', () => {
  const text = toyText(3, { train: 300, valid: 20, test: 20 });

  it('keeps every pair, in order, so that decoding gives back the text', async () => {
    writeToyText(folder, text);
    const { summary } = await prepareTranslation(options());
    expect(summary.splits.train).toMatchObject({ lines: 300, pairs: 300, source: { unknown: 0 } });
    const corpus = openCorpus(join(folder, 'out'));
    const { source, target } = corpus.languages;
    const pipelines = [await textPipeline(source.config, source), await textPipeline(target.config, target)];
    for (const split of ['train', 'valid', 'test'] as const) {
      const pairs = corpus.open(split);
      const unknown = summary.splits[split].source.unknown + summary.splits[split].target.unknown;
      expect(unknown).toBe(0);
      for (let i = 0; i < pairs.count; i++) {
        expect(pipelines[0].decode(source.vocabulary.decode(pairs.source.read(i)))).toBe(text[split][i].source);
        expect(pipelines[1].decode(target.vocabulary.decode(pairs.target.read(i)))).toBe(text[split][i].target);
      }
      pairs.close();
    }
    expect(corpus.text('test', 'target')).toEqual(text.test.map((pair) => pair.target));
    const tokens = summary.splits.train.source.tokens;
    expect(corpus.meanLengths.source).toBeCloseTo(tokens / 300 + 1, 12);
    expect(existsSync(join(folder, 'out.partial'))).toBe(false);
    expect(() => corpus.open('dev')).toThrow('no split "dev", only train, valid, test');
  });

  it('goes on after an interruption and ends with the same bytes', async () => {
    writeToyText(folder, text);
    await prepareTranslation(options({ out: join(folder, 'whole') }));
    const whole = contents(join(folder, 'whole'));
    // Stops after the checkpoint of line 200 of 300 (checkpoints every 100 lines), with the ids of later lines half
    // written; then after the files of a split are complete but not yet noted as such.
    for (const finished of [false, true]) {
      const out = join(folder, `resumed-${finished}`);
      const stop = prepareTranslation(options({ out }), (stage) => {
        if (stage === 'train') throw new Error('stopped');
      });
      await expect(stop).rejects.toThrow('stopped');
      const partial = `${out}.partial`;
      const languages = loadLanguages(partial);
      const split = { split: 'train', source: join(folder, 'train.sov'), target: join(folder, 'train.svo') };
      const half = encodeSplit(
        partial,
        split,
        languages,
        () => {
          throw new Error('stopped');
        },
        100,
      );
      await expect(half).rejects.toThrow('stopped');
      expect(existsSync(join(partial, 'train.checkpoint.json'))).toBe(true);
      writeFileSync(join(partial, 'train.sov-svo.sov.bin.part'), 'half of a sentence', { flag: 'a' });
      if (finished) {
        renameSync(join(partial, 'train.sov-svo.sov.bin.part'), join(partial, 'train.sov-svo.sov.bin'));
        rmSync(join(partial, 'train.sov-svo.sov.len.part'));
      }
      await prepareTranslation(options({ out }));
      expect(contents(out)).toEqual(whole);
    }
  });

  it('does nothing when the same corpus is there, and does not overwrite another unasked', async () => {
    writeToyText(folder, text);
    await prepareTranslation(options());
    expect((await prepareTranslation(options())).reused).toBe(true);
    const other = options({ learning: { ...options().learning, bpe: 50 } });
    await expect(prepareTranslation(other)).rejects.toThrow('--overwrite');
    expect((await prepareTranslation({ ...other, overwrite: true })).reused).toBe(false);
    expect(openCorpus(join(folder, 'out')).languages.source.codes?.merges).toHaveLength(50);
  });

  it('never replaces a folder that is not a corpus', async () => {
    writeToyText(folder, text);
    await expect(prepareTranslation(options({ out: folder, overwrite: true }))).rejects.toThrow('holds something else');
    mkdirSync(join(folder, 'out.partial'));
    writeFileSync(join(folder, 'out.partial', 'mine'), 'x');
    await expect(prepareTranslation(options())).rejects.toThrow('blocks the preparation');
    expect(readdirSync(join(folder, 'out.partial'))).toEqual(['mine']);
  });

  it('uses the languages of another corpus for new text', async () => {
    writeToyText(folder, text);
    await prepareTranslation(options());
    const languages = loadLanguages(join(folder, 'out'));
    const out = join(folder, 'more');
    await prepareTranslation(options({ out, languages, train: undefined, valid: undefined }));
    const [a, b] = [openCorpus(join(folder, 'out')), openCorpus(out)].map((corpus) => corpus.open('test'));
    expect(Array.from({ length: 20 }, (_, i) => b.source.read(i))).toEqual(
      Array.from({ length: 20 }, (_, i) => a.source.read(i)),
    );
  });

  const write = (name: string, source: string[], target: string[]): void => {
    writeToyText(folder, text);
    writeFileSync(join(folder, `${name}.sov`), source.map((line) => `${line}\n`).join(''));
    writeFileSync(join(folder, `${name}.svo`), target.map((line) => `${line}\n`).join(''));
  };

  it('counts why training pairs are left out, and keeps every test line', async () => {
    const lines = ['a b', '', 'x '.repeat(10_000), 'a a a a', 'q'.repeat(5000), 'a b'];
    const targets = ['a b', 'b', 'x', 'a', 'b', '   '];
    write('train', lines, targets);
    writeFileSync(join(folder, 'test.sov'), lines.join('\n'));
    writeFileSync(join(folder, 'test.svo.gz'), gzipSync(targets.join('\n')));
    rmSync(join(folder, 'test.svo'));
    const filters = { ...defaultFilters, ratio: 2 };
    const learning = { joint: true, sharedVocabulary: true, bpe: 2, filters };
    const { summary } = await prepareTranslation(options({ learning }));
    expect(summary.splits.train.filtered).toEqual({ empty: 2, length: 1, ratio: 1, tokens: 1 });
    expect(summary.splits.train.pairs).toBe(1);
    expect(summary.splits.test).toMatchObject({ lines: 6, pairs: 6, emptyKept: 2 });
  });

  it('leaves no training pair that the model has no positions for, with its end', async () => {
    // 1,024 words and their end are one more than the 1,024 positions of a model; 1,023 and their end are as many.
    const lines = ['a b', 'a '.repeat(1024), 'a '.repeat(1023)];
    write('train', lines, lines);
    const filters = { ...defaultFilters, maxLength: 5000 };
    const { summary } = await prepareTranslation(
      options({ learning: { joint: false, sharedVocabulary: false, filters } }),
    );
    expect(summary.splits.train.filtered).toMatchObject({ tokens: 1 });
    expect(summary.splits.train.target.longest).toBe(1024);
    expect(modelSchema.parse({}).maxPositions).toBe(defaultFilters.maxTokens);
  });

  it('maps tokens rarer than the minimum count to the unknown token', async () => {
    write('train', ['a a b', 'a c'], ['x x y', 'x z']);
    const learning = { joint: false, sharedVocabulary: false, minCount: 2, filters: defaultFilters };
    const { summary } = await prepareTranslation(options({ learning }));
    expect(summary.vocabulary).toEqual({ source: 5, target: 5, shared: false });
    expect(summary.splits.train.source).toEqual({ tokens: 5, unknown: 2, longest: 4 });
  });

  it.each([
    ['files of different length', () => write('valid', ['a', 'b'], ['a']), 'valid.sov has 2, '],
    ['an empty test file', () => write('test', [], []), 'the split "test" needs sentences'],
    ['nothing left of the training text', () => write('train', [''], ['']), 'no training pair is left'],
    ['a missing file', () => write('x', [], []) ?? rmSync(join(folder, 'test.svo')), 'test.svo: no such file'],
  ])('refuses %s', async (_, arrange, message) => {
    arrange();
    await expect(prepareTranslation(options())).rejects.toThrow(message);
    expect(existsSync(join(folder, 'out'))).toBe(false);
  });

  it('refuses impossible numbers and a language translated into itself', async () => {
    writeToyText(folder, text);
    const learning = options().learning;
    await expect(prepareTranslation(options({ learning: { ...learning, bpe: 0 } }))).rejects.toThrow('--bpe: ');
    const filters = { ...defaultFilters, ratio: 0.5 };
    await expect(prepareTranslation(options({ learning: { ...learning, filters } }))).rejects.toThrow('--ratio: ');
    await expect(prepareTranslation(options({ target: options().source }))).rejects.toThrow('must differ');
  });

  it('notices a vocabulary that does not belong to the corpus', async () => {
    writeToyText(folder, text);
    await prepareTranslation(options());
    writeFileSync(join(folder, 'out', 'dict.svo.txt'), 'a 1\n');
    expect(() => openCorpus(join(folder, 'out'))).toThrow(
      'dict.svo.txt: the vocabulary has 5 entries, the corpus was made with',
    );
    expect(() => openCorpus(folder)).toThrow('not a prepared corpus');
  });

  it("imports fairseq's binarised data, also under the name of the opposite direction", async () => {
    writeToyText(folder, text);
    const { summary } = await prepareTranslation(options());
    const data = join(folder, 'data-bin');
    cpSync(join(folder, 'out'), data, { recursive: true });
    for (const name of readdirSync(data)) {
      if (name.includes('sov-svo')) renameSync(join(data, name), join(data, name.replace('sov-svo', 'svo-sov')));
    }
    const { source, target } = options();
    const out = join(folder, 'imported');
    const plain = { lowercase: false, normalize: false, tokenizer: { kind: 'none' } } as const;
    const imported = importFairseq({
      folder: data,
      source: { config: { language: source.config.language, ...plain } },
      target: { config: { language: target.config.language, ...plain } },
      out,
    });
    expect(imported.splits.train).toEqual(summary.splits.train);
    const [a, b] = [openCorpus(join(folder, 'out')), openCorpus(out)].map((corpus) => corpus.open('train'));
    for (let i = 0; i < a.count; i++) expect(b.target.read(i)).toEqual(a.target.read(i));
    writeFileSync(join(data, 'dict.sov.txt'), 'a 1\n');
    expect(() => importFairseq({ folder: data, source, target, out: `${out}2` })).toThrow(
      'the dictionary has 5 entries',
    );
    expect(() => importFairseq({ folder, source, target, out: `${out}3` })).toThrow('train.sov-svo.sov.idx');
  });
});

describeWithShared('preparing with a vocabulary threshold', () => {
  it('segments as subword-nmt does with the vocabulary of each language', async () => {
    const prefix = shared('vectors/bpe/train');
    const config = { lowercase: false, normalize: false, tokenizer: { kind: 'none' }, bpe: { threshold: 50 } } as const;
    await prepareTranslation({
      source: { config: { language: 'en', ...config } },
      target: { config: { language: 'de', ...config } },
      train: prefix,
      out: join(folder, 'out'),
      learning: { bpe: 1000, joint: true, sharedVocabulary: true, filters: defaultFilters },
    });
    const { languages } = openCorpus(join(folder, 'out'));
    for (const language of [languages.source, languages.target]) {
      const name = language.config.language;
      const pipeline = await textPipeline(language.config, language);
      const segmented = readShared(`vectors/bpe/test.${name}`)
        .split('\n')
        .map((line) => pipeline.encode(line).join(' '));
      expect(segmented.join('\n')).toBe(readShared(`vectors/bpe/test.${name}.joint.bpe.vt50`));
    }
  });
});
