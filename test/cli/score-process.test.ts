import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { scratch, spawnScore } from './score-run.js';

const file = scratch();

describe('tcts score, as a process', () => {
  const hyp = file('hyp', 'a b c d e\n');
  const ref = file('ref', 'a b c d f g\n');

  it('scores BLEU', () => {
    // Precisions 4/5 3/4 2/3 1/2, product 1/5; BP = e^(1 − 6/5).
    const { code, stdout } = spawnScore(['bleu', hyp, ref, '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      score: expect.closeTo(100 * Math.exp(-0.2) * 0.2 ** 0.25, 8),
      sys_len: 5,
      ref_len: 6,
      signature: 'nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0+tcts',
    });
  });

  it('reads standard input and gzip', () => {
    const plain = spawnScore(['bleu', hyp, ref]);
    expect(spawnScore(['bleu', '-', ref], 'a b c d e').stdout).toBe(plain.stdout);
    expect(spawnScore(['bleu', hyp, file('ref.gz', gzipSync('a b c d f g\n'))]).stdout).toBe(plain.stdout);
    expect(spawnScore(['bleu', hyp, '-'], gzipSync('a b c d f g\n')).stdout).toBe(plain.stdout);
  });

  it('scores chrF and TER', () => {
    expect(spawnScore(['chrf', ref, ref]).stdout).toMatch(/^chrF2\|.* = 100\.00\n$/);
    // One substitution and one insertion for six words.
    expect(spawnScore(['ter', hyp, ref]).stdout).toMatch(/^TER\|.* = 33\.33\n$/);
  });

  it('compares two systems', () => {
    const { code, stdout } = spawnScore(['compare', hyp, ref, ref, '--samples', '99', '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ metric: 'BLEU', b: { score: expect.closeTo(100, 8) }, segments: 1 });
  });

  it('scores latency', () => {
    const line = '{"delays": [3, 4, 5, 5, 5], "source_length": 5, "reference_length": 5}';
    const { code, stdout } = spawnScore(['latency', '-', '--json'], line);
    expect(code).toBe(0);
    // Wait-3 with as many words on both sides lags 3; AP = 22/25.
    expect(JSON.parse(stdout)).toMatchObject({ AL: 3, LAAL: 3, AP: 0.88, DAL: 3 });
  });

  it('scores a forecast', () => {
    const rows = 'date,instrument,prediction,label\nd,A,1,2\nd,B,2,3\nd,C,3,4\n';
    const { code, stdout } = spawnScore(['forecast', '-', '--json'], rows);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ IC: expect.closeTo(1, 12), MSE: 1, days: 1 });
  });

  it('ends with code 1 and one sentence on bad input, with no stack', () => {
    const { code, stdout, stderr } = spawnScore(['bleu', hyp, file('longer', 'a\nb\n')]);
    expect(code).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toMatch(/^\S*tcts:\S* \S+hyp has 1 line, \S+longer 2: expected the same number of lines\n$/);
  });

  it('refuses flags that contradict each other and values out of range', () => {
    const both = spawnScore(['bleu', hyp, ref, '--multi-bleu', '--tokenize', 'zh']);
    expect(both).toMatchObject({ code: 1, stderr: expect.stringContaining("'--multi-bleu' cannot be used with") });
    const none = spawnScore(['compare', hyp, hyp, ref, '--samples', '0']);
    expect(none).toMatchObject({ code: 1, stderr: expect.stringContaining('expected a whole number of at least 1') });
  });

  it.each(['bleu', 'chrf', 'ter', 'compare', 'latency', 'forecast'])('explains %s with an example', (verb) => {
    const { code, stdout } = spawnScore([verb, '--help']);
    expect(code).toBe(0);
    expect(stdout).toContain(`Usage: tcts score ${verb}`);
    expect(stdout).toMatch(/Examples?:\n {2}/);
  });
});
