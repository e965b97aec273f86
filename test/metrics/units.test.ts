import { describe, expect, it } from 'vitest';
import { oddDelay, parseInstance } from '../../src/metrics/latency.js';
import {
  bleuTokenizer,
  isWithoutSpaces,
  latencyUnit,
  outputLength,
  referenceLength,
} from '../../src/metrics/tokenizers.js';

describe('the units of a language', () => {
  it.each([
    ['de', '13a', 'word'],
    ['zh', 'zh', 'char'],
    ['zh-TW', 'zh', 'char'],
    ['ja', 'char', 'char'],
    ['th', 'char', 'char'],
    // Korean has spaces, but sacreBLEU does not take what stands between them for words.
    ['ko', 'char', 'word'],
  ])('of %s are tok:%s and %ss', (language, tokenizer, unit) => {
    expect([bleuTokenizer(language), latencyUnit(language)]).toEqual([tokenizer, unit]);
  });

  // SimulEval: len(reference.split(" ")) and len(reference.strip()); an output has a delay for each of content.split() or
  // list(content.replace(" ", "")), where a character is a code point.
  it('are counted as SimulEval counts them', () => {
    expect([referenceLength('two  words', 'word'), referenceLength(' 二 字𠀋\n', 'char')]).toEqual([3, 4]);
    expect([outputLength(' two  words', 'word'), outputLength('二 字𠀋', 'char')]).toEqual([2, 3]);
  });

  it('are looked for in the letters of a text', () => {
    expect(isWithoutSpaces(['彼はGPSを使う。', ''])).toBe(true);
    expect(isWithoutSpaces(['ein Wort 二', 'und noch eins'])).toBe(false);
    expect(isWithoutSpaces(['', '123'])).toBe(false);
  });
});

describe('delays', () => {
  const where = { file: 'x.jsonl', line: 3 };

  it.each([
    [
      '{"delays": [1, 1e999], "source_length": 3}',
      'x.jsonl:3: delays[1]: expected numbers from 0 to 1000000000000, found Infinity',
    ],
    [
      '{"delays": [1], "source_length": 1e999}',
      'x.jsonl:3: source_length: expected a number from 0.001 to 1000000000000, found Infinity',
    ],
    ['{"delays": [1], "source_length": 1e-320}', 'x.jsonl:3: source_length: expected a number from 0.001'],
    [
      '{"delays": [1], "source_length": 2, "latency_unit": "spm"}',
      'x.jsonl:3: latency_unit: expected word or char, found "spm"',
    ],
  ])('are refused that leave the numbers: %s', (line, message) => {
    expect(() => parseInstance(line, where)).toThrow(message);
  });

  it('are refused where they are not those of the unit', () => {
    const line = '{"delays": [1, 1, 2, 2], "source_length": 2, "prediction": "犬が走る", "reference": "犬が走る"}';
    expect(() => parseInstance(line, where)).toThrow(
      'x.jsonl:3: delays: expected a delay for each word, found 4 for a prediction of 1 words and 4 characters: choose --unit char',
    );
    expect(parseInstance(line, where, 'char')).toMatchObject({ referenceLength: 4 });
    expect(() => parseInstance(line.replace('2, 2]', '2]'), where, 'char')).toThrow('for each character, found 3');
    // Subwords are neither words nor characters; the prediction of speech is a file.
    expect(parseInstance(line, where, 'token')).toMatchObject({ sourceLength: 2 });
    const speech = '{"delays": [900], "durations": [300], "source_length": 1000, "prediction": "wavs/0_pred.wav out"}';
    expect(parseInstance(speech, where)).toMatchObject({ delays: [900] });
  });

  it('are taken for what the line says that they are', () => {
    const line = '{"delays": [1, 1, 2, 2], "source_length": 2, "reference": "犬が走る。", "latency_unit": "char"}';
    expect(parseInstance(line, where)).toMatchObject({ referenceLength: 5 });
    expect(parseInstance(line, where, 'word')).toMatchObject({ referenceLength: 1 });
  });

  it('that fall or go beyond the source are found', () => {
    const odd = (...delays: number[]) => oddDelay({ delays, sourceLength: 3 });
    expect([odd(1, 2, 2, 3), odd(), odd(2, 1), odd(4, 3), odd(3, 5)]).toEqual([undefined, undefined, 1, 0, 1]);
  });
});
