import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { evaluateTranslation } from '../../src/translate/evaluate.js';
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
    const [one, three] = await evaluateTranslation(run.folder, { waits: [1, 3], beam: 2 });
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
    const { AL, LAAL, AP, DAL } = three.latency.simuleval!;
    expect({ AL, LAAL, AP, DAL }).toEqual({ AL: latency.AL, LAAL: latency.LAAL, AP: latency.AP, DAL: latency.DAL });
  });

  it('writes instances as SimulEval does, with the delays of wait-k', async () => {
    const [{ folder, sentences }] = await evaluateTranslation(run.folder, { waits: [2], beam: 1, earlyEnd: 'block' });
    expect(folder).toMatch(/test-wait-2-beam-1-no-early-end$/);
    const instances = read(folder, 'instances.log').map((line) => JSON.parse(line));
    expect(instances).toHaveLength(sentences);
    const outputs = read(folder, 'output.txt');
    const references = read(folder, 'reference.txt');
    for (const [i, instance] of instances.entries()) {
      expect(instance).toMatchObject({ index: i, prediction: outputs[i], reference: references[i] });
      // A word of the toy languages is one token: word i is written after min(i + 2, n) words.
      const n = run.sources[i].split(' ').length;
      expect(instance).toMatchObject({ source: run.sources[i], source_length: n });
      const words: string[] = instance.prediction.split(' ');
      expect(instance.delays).toEqual(words.map((_, j) => Math.min(j + 2, n)));
    }
  });

  it('waits for the main task unless told otherwise', async () => {
    const [scores] = await evaluateTranslation(run.folder, { beam: 1 });
    expect(scores.k).toBe(3);
  });

  it('refuses a wait of 0 and a split that is not there', async () => {
    await expect(evaluateTranslation(run.folder, { waits: [0] })).rejects.toThrow('expected a whole number from 1 on');
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
    const { results, ...setting } = JSON.parse(stdout);
    expect(setting).toEqual({ run: run.folder, split: 'test', beam: 1, early_end: 'block' });
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
    const { stdout } = evaluate('--k', '3', '--beam', '1');
    expect(stdout).toMatch(/^k +BLEU +sacreBLEU +chrF +length +ended early/);
    expect(stdout).toContain('nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp');
    expect(stdout).toContain(join(run.folder, 'evaluation', 'test-wait-3-beam-1'));
  });

  it('refuses a wait of 0', () => {
    const { code, stderr } = evaluate('--k', '3,0');
    expect(code).toBe(1);
    expect(stderr).toContain('expected whole numbers from 1 on, found "0"');
  });
});
