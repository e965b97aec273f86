import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { evaluateTranslation } from '../../src/translate/evaluate.js';
import { openData } from '../../src/translate/training.js';
import { scoreJson } from './score-run.js';
import { randomTranslationRun, type TranslationRun } from './translation-run.js';

let run: TranslationRun;
beforeAll(async () => {
  run = await randomTranslationRun(8);
});
afterAll(() => run.remove());

const read = (folder: string, name: string): string[] => readFileSync(join(folder, name), 'utf8').trimEnd().split('\n');

describe('evaluating a translation run', () => {
  it('reports what tcts score says of the files that it leaves', async () => {
    const [one, three] = await evaluateTranslation(run.folder, { policies: ['wait-k:1,3'], beam: 2 });
    expect([one.k, three.k]).toEqual([1, 3]);
    const { folder } = three;
    expect(folder).toBe(join(run.folder, 'evaluation', 'test-wait-3-beam-2'));
    const path = (name: string): string => join(folder, name);
    const multi = await scoreJson<{ score: number; sys_len: number; ref_len: number }>(
      ...['bleu', path('output.tok'), path('reference.tok'), '--multi-bleu'],
    );
    expect(three.bleu).toBeCloseTo(multi.score, 9);
    expect(three.lengthRatio).toBeCloseTo(multi.sys_len / multi.ref_len, 9);
    const sacre = await scoreJson<{ score: number; signature: string }>(
      ...['bleu', path('output.txt'), path('reference.txt')],
    );
    expect(three).toMatchObject({ sacrebleu: sacre.score, signature: sacre.signature });
    const chrf = await scoreJson<{ score: number }>('chrf', path('output.txt'), path('reference.txt'));
    expect(three.chrf).toBeCloseTo(chrf.score, 9);
    const latency = await scoreJson<Record<string, number>>('latency', path('instances.log'));
    const measures = ['AL', 'LAAL', 'AP', 'DAL', 'YAAL', 'ATD'] as const;
    for (const name of measures) expect(three.latency.simuleval![name]).toBe(latency[name]);
  });

  it('writes instances as SimulEval does, with the delays of wait-k', async () => {
    const [{ folder, sentences }] = await evaluateTranslation(run.folder, {
      policies: ['wait-k:2'],
      beam: 1,
      earlyEnd: 'block',
    });
    expect(folder).toMatch(/test-wait-2-beam-1-no-early-end$/);
    const instances = read(folder, 'instances.log').map((line) => JSON.parse(line));
    expect(instances).toHaveLength(sentences);
    const outputs = read(folder, 'output.txt');
    const references = read(folder, 'reference.txt');
    const samples = read(folder, 'comet.jsonl').map((line) => JSON.parse(line));
    for (const [i, instance] of instances.entries()) {
      expect(samples[i]).toEqual({ src: run.sources[i], mt: outputs[i], ref: references[i] });
      expect(instance).toMatchObject({ index: i, prediction: outputs[i], reference: references[i] });
      // A word of the toy languages is one token: word i is written after min(i + 2, n) words.
      const n = run.sources[i].split(' ').length;
      expect(instance).toMatchObject({ source: run.sources[i], source_length: n });
      const words: string[] = instance.prediction.split(' ');
      expect(instance.delays).toEqual(words.map((_, j) => Math.min(j + 2, n)));
    }
  });

  it('takes any policy, and says which one in the names of the folders', async () => {
    const policies = ['wait-if-diff:initial=2', 'adaptive:max=4', 'alignatt:f=1,heads=1+2', 'wait-k:full'];
    const scores = await evaluateTranslation(run.folder, { policies, beam: 1, earlyEnd: 'block' });
    const folders = scores.map(({ folder }) => relative(join(run.folder, 'evaluation'), folder));
    expect(folders).toEqual(
      ['wait-if-diff-initial-2-step-1', 'adaptive-min-1-max-4-from-1-to-0', 'alignatt-f-1-heads-1+2', 'wait-full'].map(
        (name) => `test-${name}-beam-1-no-early-end`,
      ),
    );
    expect(scores.map(({ policy, k }) => [policy, k])).toEqual([
      ['wait-if-diff:initial=2,step=1', null],
      ['adaptive:min=1,max=4,from=1,to=0', null],
      ['alignatt:f=1,heads=1+2', null],
      ['wait-k:full', 'full'],
    ]);
    for (const { folder, sentences } of scores) {
      const instances = read(folder, 'instances.log').map((line) => JSON.parse(line));
      expect(instances).toHaveLength(sentences);
      for (const { delays, source_length: n } of instances) {
        // 2 + 1 words are the least for wait-if-diff, a lag of 4 the most for adaptive.
        // alignatt with f = 1 needs a token besides the last one.
        const least = folder.includes('wait-if-diff')
          ? 3
          : folder.includes('adaptive')
            ? 1
            : folder.includes('alignatt')
              ? 2
              : n;
        expect(Math.min(...delays, n)).toBeGreaterThanOrEqual(Math.min(least, n));
        const ahead = delays.map((delay: number, i: number) => delay - i);
        if (folder.includes('adaptive')) expect(Math.max(...ahead, 0)).toBeLessThanOrEqual(4);
      }
    }
    const { policy, k } = JSON.parse(read(scores[0].folder, 'scores.json').join('\n'));
    expect({ policy, k }).toEqual({ policy: 'wait-if-diff:initial=2,step=1', k: null });
  });

  it('lets a policy choose among the models of several runs', async () => {
    const other = await randomTranslationRun(9);
    try {
      const options = { policies: ['adaptive:max=2,from=0'], beam: 1 };
      const [alone] = await evaluateTranslation(run.folder, options);
      const [both] = await evaluateTranslation(run.folder, { ...options, models: [other.folder] });
      expect(both.folder).toMatch(/adaptive-min-1-max-2-from-0-to-0-beam-1-2-models$/);
      // Both were trained for wait-3: of two equally near the first is taken.
      expect(read(both.folder, 'output.txt')).toEqual(read(alone.folder, 'output.txt'));
      // Two words of a vocabulary change places.
      const dictionary = readdirSync(other.folder).find((name) => name.startsWith('dict.'))!;
      const [first, second, ...rest] = read(other.folder, dictionary);
      writeFileSync(join(other.folder, dictionary), `${[second, first, ...rest].join('\n')}\n`);
      await expect(evaluateTranslation(run.folder, { ...options, models: [other.folder] })).rejects.toThrow(
        /vocabulary differs from that of the first run$/,
      );
    } finally {
      other.remove();
    }
  });

  it('waits for the main task unless told otherwise', async () => {
    const [scores] = await evaluateTranslation(run.folder, { beam: 1 });
    expect(scores.k).toBe(3);
  });

  it("keeps what it measures on other data apart from the run's own, and names the data", async () => {
    const [own] = await evaluateTranslation(run.folder, { beam: 1 });
    const before = read(own.folder, 'scores.json').join('\n');
    const { corpus, close } = await openData({ from: 'toy', seed: 2, pairs: 60 });
    try {
      const [other] = await evaluateTranslation(run.folder, { beam: 1, corpus: corpus.folder });
      expect(read(own.folder, 'scores.json').join('\n')).toBe(before);
      expect(own.data).toMatchObject({ name: 'toy languages, seed 1', own: true });
      expect(other.data).toMatchObject({ name: corpus.folder, own: false });
      expect(other.data.digest).not.toBe(own.data.digest);
      const at = `test-wait-3-beam-1-on-corpus-${other.data.digest.slice(0, 8)}`;
      expect(other.folder).toBe(join(run.folder, 'evaluation', at));
      expect(JSON.parse(read(other.folder, 'scores.json').join('\n')).data).toEqual(other.data);
      // What tells data apart is their text, not where it lies.
      const copy = join(run.scratch, 'copy');
      cpSync(corpus.folder, copy, { recursive: true });
      const [again] = await evaluateTranslation(run.folder, { beam: 1, corpus: copy });
      expect(again.data).toEqual({ ...other.data, name: copy });
    } finally {
      close();
    }
  });

  it('refuses a wait of 0 and a split that is not there', async () => {
    await expect(evaluateTranslation(run.folder, { policies: ['wait-k:0'] })).rejects.toThrow(
      'expected a whole number from 1 to 1000 for k of wait-k, found "0"',
    );
    await expect(evaluateTranslation(run.folder, { split: 'later' })).rejects.toThrow(
      'the corpus has no split "later"',
    );
  });
});

describe('tcts evaluate of a translation run', () => {
  const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
  const evaluate = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [main, 'evaluate', run.folder, ...args], {
      encoding: 'utf8',
    });
    return { code: status, stdout, stderr };
  };

  it('prints every figure as JSON', () => {
    const { code, stdout } = evaluate('--k', '2,4', '--beam', '1', '--early-end', 'block', '--json');
    expect(code).toBe(0);
    const { results, data, ...setting } = JSON.parse(stdout);
    expect(data).toMatchObject({ name: 'toy languages, seed 1', own: true });
    expect(setting).toEqual({
      run: run.folder,
      split: 'test',
      beam: 1,
      early_end: 'block',
      length_penalty: 1,
      speculate: 0,
      checkpoint: 'best',
    });
    expect(results.map(({ k }: { k: number }) => k)).toEqual([2, 4]);
    for (const result of results) {
      expect(result).toMatchObject({ sentences: 300, ended_early: 0 });
      const numbers = [result.bleu, result.sacrebleu, result.chrf, result.length_ratio, result.sentences_per_second];
      for (const convention of ['stacl', 'simuleval']) {
        const { AP, AL, LAAL, DAL } = result.latency[convention];
        numbers.push(AP, AL, LAAL, DAL);
      }
      expect(numbers.every(Number.isFinite)).toBe(true);
    }
  });

  it('prints a table with the signature and the folder of the outputs', () => {
    const { stdout } = evaluate('--k', '3', '--beam', '1', '--all');
    expect(stdout).toMatch(/^k +BLEU +sacreBLEU +chrF +length +ended early/);
    expect(stdout).toContain(
      '300 sentences of test of toy languages, seed 1, beam 1, early end allowed, best parameters\n',
    );
    expect(stdout).toContain('nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp');
    expect(stdout).toContain(join(run.folder, 'evaluation', 'test-wait-3-beam-1'));
  });

  it('takes the parameters that it is told to, and keeps what they give apart', () => {
    const { stdout } = evaluate('--k', '3', '--beam', '1', '--checkpoint', 'latest', '--json');
    const { results } = JSON.parse(stdout);
    expect(results[0].folder).toBe(join(run.folder, 'evaluation', 'test-wait-3-beam-1-latest'));
    const { code, stderr } = evaluate('--checkpoint', 'average:1');
    expect(code).toBe(1);
    expect(stderr).toContain('--checkpoint: expected best, latest or average:N with N from 2 on, found "average:1"');
  });

  it('names the policies in a table of several kinds', () => {
    const { stdout } = evaluate('--policy', 'wait-if-worse', '--k', '3', '--beam', '1');
    const lines = stdout.split('\n');
    expect(lines[0]).toMatch(/^policy +BLEU/);
    expect(lines[2]).toMatch(/^wait-k:3 /);
    expect(lines[3]).toMatch(/^wait-if-worse:initial=3,step=1 /);
  });

  it('refuses a policy that it does not know', () => {
    const { code, stderr } = evaluate('--policy', 'guess');
    expect(code).toBe(1);
    expect(stderr).toContain(
      'policy: expected one of wait-k, wait-if-worse, wait-if-diff, adaptive, alignatt, edatt, monotonic',
    );
  });

  it('refuses a wait of 0', () => {
    const { code, stderr } = evaluate('--k', '3,0');
    expect(code).toBe(1);
    expect(stderr).toContain('expected a whole number of at least 1, found "0"');
  });
});
