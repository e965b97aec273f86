import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compared, takenBack } from '../../page/compare.js';

const marked = (text: string, other: string): string =>
  compared(text, other)
    .map(({ word, space, isShared }) => (isShared ? word : `[${word}]`) + space)
    .join('');

test('words that the other text does not have are marked', () => {
  expect(marked('the tired dog sang loudly', 'the dog sang')).toBe('the [tired] dog sang [loudly]');
});

test('text without spaces is compared by characters, Latin words in it as a whole', () => {
  expect(marked('他在GitHub上唱歌。', '他在GitLab上唱歌')).toBe('他在[GitHub]上唱歌[。]');
  expect(marked('ที่นี่', 'ที่')).toBe('ที่[นี่]');
});

test('what is taken back begins with the first piece that changed', () => {
  expect(takenBack('the dog sang', 'the dog slept')).toBe('sang');
  expect(takenBack('the dog', 'the dog sang')).toBe('');
  expect(takenBack('他正在唱歌', '他正跳')).toBe('在唱歌');
});

test('no piece is lost, and a text shares all of itself', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'bc', ' ', '他', '在', 'ที่', '。') });
  fc.assert(
    fc.property(text, text, (one, other) => {
      const pieces = compared(one, other);
      expect(pieces.map(({ word, space }) => word + space).join('')).toBe(one.trimStart());
      expect(compared(one, one).every(({ isShared }) => isShared)).toBe(true);
      // A longest common subsequence has the same length from both sides.
      const shared = (all: typeof pieces) => all.filter(({ isShared }) => isShared).length;
      expect(shared(pieces)).toBe(shared(compared(other, one)));
    }),
  );
});
