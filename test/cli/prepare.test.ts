import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { registerPrepare } from '../../src/cli/prepare.js';
import { openCorpus } from '../../src/translate/corpus/corpus.js';
import { toyText, writeToyText } from '../../src/translate/toy.js';
import { describeWithShared, shared } from '../shared.js';

const root = mkdtempSync(join(tmpdir(), 'tcts-prepare-'));
const text = join(root, 'text');
writeToyText(text, toyText(5, { train: 200, valid: 10, test: 10 }));
afterAll(() => rmSync(root, { recursive: true }));

let printed = '';
beforeEach(() => {
  printed = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((piece) => {
    printed += String(piece);
    return true;
  });
});
afterEach(() => vi.restoreAllMocks());

const run = async (...flags: string[]): Promise<void> => {
  const program = new Command('tcts').exitOverride();
  registerPrepare(program);
  await program.parseAsync(['node', 'tcts', 'prepare', 'translate', ...flags]);
};

const toy = (...flags: string[]): Promise<void> =>
  run('--source', 'sov', '--target', 'svo', '--tokenizer', 'none', '--train', join(text, 'train'), ...flags);

describe('tcts prepare translate', () => {
  it('makes a corpus and says what is in it', async () => {
    const out = join(root, 'plain');
    await toy('--valid', join(text, 'valid'), '--test', join(text, 'test'), join(text, 'valid'), '--out', out);
    expect(Object.keys(openCorpus(out).summary.splits)).toEqual(['train', 'valid', 'test', 'test1']);
    expect(printed).toMatch(/^train +200 pairs of 200 lines$/m);
    expect(printed).toMatch(/^ +sov +[0-9,]+ tokens, [0-9.]+ a sentence, longest [0-9]+, unknown 0\.000 %$/m);
  });

  it('prints the summary as JSON', async () => {
    await toy('--bpe', '50', '--joint', '--out', join(root, 'json'), '--json');
    const summary = JSON.parse(printed);
    expect(summary).toMatchObject({ reused: false, source: 'sov', vocabulary: { shared: true } });
    expect(summary.splits.train.pairs).toBe(200);
  });

  it('reuses merges and vocabularies of another corpus', async () => {
    const first = join(root, 'first');
    await toy('--bpe', '50', '--out', first);
    const files = (name: (language: string) => string): string[] => ['sov', 'svo'].map((l) => join(first, name(l)));
    const again = join(root, 'again');
    await toy('--codes', ...files((l) => `codes.${l}`), '--vocab', ...files((l) => `dict.${l}.txt`), '--out', again);
    const like = join(root, 'like');
    await toy('--like', first, '--out', like);
    const ids = (folder: string): Int32Array[] => {
      const pairs = openCorpus(folder).open('train');
      const all = Array.from({ length: pairs.count }, (_, i) => pairs.target.read(i));
      pairs.close();
      return all;
    };
    expect(ids(again)).toEqual(ids(first));
    expect(ids(like)).toEqual(ids(first));
  });

  it("imports fairseq's binarised data", async () => {
    const data = join(root, 'data-bin');
    await toy('--out', data);
    await run(
      '--source',
      'sov',
      '--target',
      'svo',
      '--fairseq',
      data,
      '--tokenizer',
      'none',
      '--out',
      join(root, 'imported'),
    );
    expect(openCorpus(join(root, 'imported')).summary.splits).toEqual(openCorpus(data).summary.splits);
  });

  it.each([
    [['--bpe', 'many'], '--bpe: expected a whole number, found "many"'],
    [['--joint'], '--joint: needs --bpe'],
    [['--bpe', '9', '--codes', 'x'], 'either learn merges with --bpe or give them with --codes'],
    [['--codes', 'absent'], 'absent: cannot read it: no such file'],
    [['--ratio', '0.1'], '--ratio: expected a number of at least 1'],
    [['--max-length', '0'], '--max-length: expected a whole number of at least 1'],
    [['--vocab', 'a', 'b', 'c'], '--vocab: expected one file or two, found 3'],
    [['--fairseq', 'x'], 'leave out --train'],
    [['--like', 'absent'], 'text.json: cannot read it: no such file'],
  ])('refuses %s', async (flags, message) => {
    const out = join(root, 'refused');
    await expect(toy(...flags, '--out', out)).rejects.toThrow(message);
    expect(existsSync(out)).toBe(false);
  });

  describe('a language without spaces', () => {
    const spm = fileURLToPath(new URL('../vectors/marian/source.spm', import.meta.url));
    const chinese = async (source: string, target: string, ...flags: string[]): Promise<string> => {
      let warned = '';
      vi.spyOn(process.stderr, 'write').mockImplementation((piece) => {
        warned += String(piece);
        return true;
      });
      const prefix = join(root, 'spaces');
      for (const [language, line] of [
        ['zh', '我们喜欢猫'],
        ['en', 'we like cats'],
      ]) {
        writeFileSync(`${prefix}.${language}`, `${line}\n`);
      }
      const out = join(root, 'chinese');
      await run('--source', source, '--target', target, '--train', prefix, '--out', out, '--overwrite', ...flags);
      return warned;
    };

    it('is cut into characters, with a word about it', async () => {
      expect(await chinese('zh', 'en')).toBe(
        'tcts: warning: zh is written without spaces: its text is cut into characters (--source-tokenizer chooses otherwise)\n',
      );
      // Another corpus brings its tokeniser.
      expect(await chinese('zh', 'en', '--like', join(root, 'chinese'))).toBe('');
    });

    it('arrives all at once as a source in pieces, which is said', async () => {
      const once =
        /^tcts: warning: zh is written without spaces: a source that is cut by \S+ arrives .* all at once; .*\n$/;
      expect(await chinese('zh', 'en', '--spm', spm)).toMatch(once);
      expect(await chinese('en', 'zh', '--spm', spm)).toBe('');
    });

    it('is what Jieba is for: other languages are named that it would cut', async () => {
      expect(await chinese('zh', 'en', '--tokenizer', 'jieba')).toBe(
        'tcts: warning: en is not Chinese, but jieba is to cut its text: --source-tokenizer jieba chooses it for zh alone\n',
      );
    });
  });

  it('refuses an unknown language by the file that is missing', async () => {
    const flags = ['--source', 'xx', '--target', 'svo', '--train', join(text, 'train'), '--out', join(root, 'unknown')];
    await expect(run(...flags)).rejects.toThrow('train.xx: no such file, neither plain nor with .gz');
  });

  it('names the line of text that is not UTF-8', async () => {
    writeFileSync(join(text, 'latin.sov'), Buffer.from('gut\nsch\xf6n\n', 'latin1'));
    writeFileSync(join(text, 'latin.svo'), 'a\nb\n');
    await expect(toy('--valid', join(text, 'latin'), '--out', join(root, 'latin'))).rejects.toThrow('latin.sov:2: ');
  });
});

describeWithShared('tcts prepare translate on Multi30k', () => {
  it('finds the vocabulary of 5,978 entries that the published protocol has', async () => {
    const tok = (name: string): string => shared(`data/multi30k/tok/${name}.lc.norm.tok`);
    const out = join(root, 'multi30k');
    const languages = ['--source', 'en', '--target', 'de', '--tokenizer', 'none', '--bpe', '6000', '--joint'];
    await run(...languages, '--train', tok('train'), '--valid', tok('val'), '--out', out);
    const { summary } = openCorpus(out);
    expect(summary.vocabulary).toEqual({ source: 5978, target: 5978, shared: true });
    expect(summary.splits.train.pairs).toBe(29_000);
    expect(summary.splits.valid.pairs).toBe(1014);
  });
});
