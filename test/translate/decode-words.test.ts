import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { tokensByWord, unitDelays } from '../../src/translate/decode/text-stream.js';
import { type Arrival, arrivals, arrivingWords } from '../../src/translate/text/arriving.js';
import { textPipeline } from '../../src/translate/text/pipeline.js';
import { Vocabulary } from '../../src/translate/text/vocabulary.js';

async function* inPieces(bytes: Uint8Array, cuts: readonly number[]): AsyncGenerator<Uint8Array> {
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  let start = 0;
  for (const end of [...places, bytes.length]) {
    yield bytes.subarray(start, end);
    start = end;
  }
}

async function arrived(text: string | Uint8Array, cuts: readonly number[] = []): Promise<string[]> {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  const all: Arrival[] = [];
  for await (const arrival of arrivals(inPieces(bytes, cuts), 'text')) all.push(arrival);
  return all.map((arrival) => ('word' in arrival ? arrival.word : '\n'));
}

describe('arriving words', () => {
  it('are the words of the lines, however the bytes are cut', async () => {
    const word = fc.constantFrom('a', 'straße', '日本', '😀', 'xyz');
    const text = fc
      .array(fc.oneof(word, fc.constantFrom(' ', '\n', '\u00a0', '\t', '\r\n')))
      .map((all) => all.join(''));
    await fc.assert(
      fc.asyncProperty(text, fc.array(fc.nat()), async (content, cuts) => {
        const lines = content.endsWith('\n') || content === '' ? content.split('\n').slice(0, -1) : content.split('\n');
        const expected = lines.flatMap((line) => [...line.split(/\s/u).filter((piece) => piece !== ''), '\n']);
        expect(await arrived(content, cuts)).toEqual(expected);
      }),
    );
  });

  it('are there before the line ends', async () => {
    const seen: Arrival[] = [];
    async function* slow(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('ein ');
      expect(seen).toEqual([{ word: 'ein' }]);
      yield Buffer.from('ma');
      yield Buffer.from('nn ');
      expect(seen).toEqual([{ word: 'ein' }, { word: 'mann' }]);
    }
    for await (const arrival of arrivals(slow(), 'text')) seen.push(arrival);
    expect(seen.at(-1)).toEqual({ lineEnd: true });
  });

  it('are none in an empty stream', async () => {
    expect(await arrived('')).toEqual([]);
  });

  it('refuse a text that ends in the middle of a character, and one that is not UTF-8', async () => {
    const cut = Buffer.from('ein\nstraß').subarray(0, -1);
    await expect(arrived(cut)).rejects.toThrow('text:2: the text ends in the middle of a character');
    await expect(arrived(Uint8Array.of(0x61, 0xff, 0x20))).rejects.toThrow('text:1: the text is not UTF-8');
  });

  it('are there before bytes that are no text, even in one piece with them', async () => {
    const seen: Arrival[] = [];
    const reading = async (): Promise<void> => {
      const bytes = Buffer.concat([Buffer.from('ein hund\nzwei\n'), Uint8Array.of(0xc3, 0x0a, 0x61)]);
      for await (const arrival of arrivals(inPieces(bytes, []), 'text')) seen.push(arrival);
    };
    // The first byte of a character of two, and then the line ends.
    await expect(reading()).rejects.toThrow('text:3: the text is not UTF-8');
    const end = { lineEnd: true };
    expect(seen).toEqual([{ word: 'ein' }, { word: 'hund' }, end, { word: 'zwei' }, end]);
  });
});

describe('delays in words', () => {
  it('count a token with the word that settles it', async () => {
    const pipeline = await textPipeline({
      language: 'en',
      lowercase: false,
      normalize: false,
      tokenizer: { kind: 'moses' },
    });
    const side = { pipeline, vocabulary: new Vocabulary([]) };
    // "it's" is it + 's; whether "St." keeps its full stop is known with the next word only, "end." is two tokens.
    expect(
      tokensByWord(
        side,
        ["it's", 'on', 'St.', 'James', 'end.'].map((word) => ({ word })),
      ),
    ).toEqual([2, 3, 3, 5, 7]);
    expect(tokensByWord(side, [])).toEqual([]);
  });

  const words = { unit: 'word', attaches: false } as const;

  it('count the source words that had arrived when a word was complete', () => {
    // Source: "der große hund", tokens der | gro@@ ße | hund, settled after the words 1, 3, 4.
    // Output: tokens the | b@@ | ig | dog after 1, 2, 3, 4 source tokens: "big" is complete after 3, in word 2.
    const seen = ['the', 'the', 'the big', 'the big dog', 'the big dog'];
    expect(unitDelays(seen, [1, 2, 3, 4, 4], [1, 3, 4], words)).toEqual({
      units: ['the', 'big', 'dog'],
      delays: [1, 2, 3],
      places: [0, 2, 3],
    });
  });

  it('wait for the next word where punctuation may still join the last one', () => {
    // One source word more is read before each token; the sentence ends after four.
    const seen = ['a', 'a dog', 'a dog,', 'a dog, too', 'a dog, too'];
    expect(unitDelays(seen, [1, 2, 3, 4, 4], [1, 2, 3, 4], { unit: 'word', attaches: true })).toEqual({
      units: ['a', 'dog,', 'too'],
      // "a" is complete when " dog" comes, "dog," when " too" does, "too" at the end.
      delays: [2, 4, 4],
      places: [1, 3, 4],
    });
  });

  it('count the end where a sentence ends early', () => {
    // The last token is an unfinished word, which comes out at the end, after three source words.
    expect(unitDelays(['a', 'a', 'a do'], [1, 2, 3], [1, 2, 3, 4], words).delays).toEqual([1, 3]);
    expect(unitDelays(['a', 'a'], [1, 2], [1, 2, 3], { unit: 'word', attaches: true }).delays).toEqual([2]);
  });

  it('are those of characters where words have no spaces, which do not count', () => {
    const seen = ['私は', '私は', '私は GPS', '私は GPS。', '私は GPS。'];
    expect(unitDelays(seen, [2, 3, 4, 5, 5], [2, 3, 5], { unit: 'char', attaches: true })).toEqual({
      units: ['私', 'は', 'G', 'P', 'S', '。'],
      // Source tokens 4 and 5 come with the third word.
      delays: [1, 1, 3, 3, 3, 3],
      places: [0, 0, 2, 2, 2, 3],
    });
  });

  it('are all words where more was read than any word settles', () => {
    expect(unitDelays(['dog', 'dog'], [5, 5], [1, 2], words).delays).toEqual([2]);
    expect(unitDelays([''], [0], [1, 2], words)).toEqual({ units: [], delays: [], places: [] });
  });
});

describe('a source that is read by characters', () => {
  it('arrives character by character, however its bytes are cut, as the line does', async () => {
    const config = { language: 'zh', lowercase: false, normalize: false, tokenizer: { kind: 'char' } } as const;
    const pipeline = await textPipeline(config);
    const side = { pipeline, vocabulary: new Vocabulary([]) };
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...'狗在公园 A1。')),
        fc.array(fc.nat(60)),
        async (characters, cuts) => {
          const line = characters.join('');
          const seen: Arrival[] = [];
          const pieces = inPieces(new TextEncoder().encode(line), cuts);
          for await (const arrival of arrivals(pieces, 'text', pipeline.byCharacter)) seen.push(arrival);
          const arrived = seen.flatMap((one) => ('word' in one ? [one] : []));
          expect(arrived.map(({ word, joined }) => ({ word, joined }))).toEqual(
            arrivingWords(line, pipeline.byCharacter),
          );
          const encoder = pipeline.wordEncoder();
          const tokens = arrived.flatMap(({ word, joined }) => encoder.push(word, joined));
          expect([...tokens, ...encoder.end()]).toEqual(pipeline.encode(line));
          // Each character is a token, which a space before it makes two.
          const counts = tokensByWord(side, arrived);
          expect(counts.at(-1) ?? 0).toBe(pipeline.encode(line).length);
        },
      ),
      { numRuns: 100 },
    );
    expect(arrivingWords('狗在 园', pipeline.byCharacter)).toEqual([
      { word: '狗', joined: false },
      { word: '在', joined: true },
      { word: '园', joined: false },
    ]);
    expect((await textPipeline({ ...config, language: 'en' })).byCharacter).toBe(false);
  });
});
