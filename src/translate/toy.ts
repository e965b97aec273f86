import { join } from 'node:path';
import { makeFolder, writeFileAtomic } from '../files.js';
import { Random } from '../random.js';

/**
 * A toy language pair in which waiting matters. Both languages say the same things with different words and in
 * different order:
 *
 *     sov  (source)   subject  [time] [object] [place]  [not]  verb  [question]
 *     svo  (target)   [question]  subject  [not]  verb  [object] [place] [time]
 *
 * In noun phrases the source says article adjective* noun, the target article noun adjective*; places begin with a
 * preposition. Every word has exactly one translation, so a system that has read the whole sentence can be perfect.
 *
 * Why wait-1 must guess and wait-k need not: at target position i (from 0), wait-k has read the source positions
 * j ≤ i + k − 1. The target verb follows a subject of s words, the source verb ends a sentence of n words (in a
 * statement): it is known in time iff n − 1 ≤ s + k − 1, that is k ≥ n − s, the words from the end of the subject to
 * the verb. Sentences have 4 to 16 words, and n − s spreads over 2 to 11: each longer wait settles the verb of some
 * more sentences, and only reading further shows which of 60 verbs, whether it is negated, or that the sentence is a
 * question (that takes k ≥ n). The noun before its adjectives needs a wait of up to 3. So the best BLEU rises with k.
 */
export interface ToyPair {
  readonly source: string;
  readonly target: string;
}

export const toyLanguages = { source: 'sov', target: 'svo' } as const;

/** The language pair of a seed: its lexicon is fixed, `sample` draws a sentence with its translation. */
export interface ToyLanguagePair {
  readonly lexicon: ReadonlyMap<string, string>;
  sample(random: Random): ToyPair;
}

export interface ToyText {
  readonly train: readonly ToyPair[];
  readonly valid: readonly ToyPair[];
  readonly test: readonly ToyPair[];
}

/** Words of each class. */
const sizes = { noun: 120, verb: 60, adjective: 40, time: 20, preposition: 8 } as const;
type WordClass = keyof typeof sizes;

export function toyLanguagePair(seed: number | string): ToyLanguagePair {
  const lexicon = makeLexicon(new Random(seed).fork('toy lexicon'));
  return {
    lexicon: new Map([...Object.values(lexicon.words).flat(), lexicon.article, lexicon.not, lexicon.question]),
    sample: (random) => sentence(lexicon, random),
  };
}

/** How many sentences each part has. */
export interface TextSizes {
  /** Default 5000. */
  readonly train?: number;
  /** Default 300. */
  readonly valid?: number;
  /** Default 300. */
  readonly test?: number;
}

/** Sentences in three parts; no sentence occurs twice, within a part or across. */
export function toyText(seed: number | string, sizes: TextSizes = {}): ToyText {
  return distinctText(toyLanguagePair(seed), new Random(seed).fork('toy sentences'), sizes);
}

/** Draws the parts of a text from what makes up sentences. */
function distinctText(
  pair: Pick<ToyLanguagePair, 'sample'>,
  random: Random,
  { train = 5000, valid = 300, test = 300 }: TextSizes = {},
): ToyText {
  const seen = new Set<string>();
  const draw = (count: number): ToyPair[] => {
    const pairs: ToyPair[] = [];
    while (pairs.length < count) {
      const drawn = pair.sample(random);
      if (seen.has(drawn.source)) continue;
      seen.add(drawn.source);
      pairs.push(drawn);
    }
    return pairs;
  };
  return { test: draw(test), valid: draw(valid), train: draw(train) };
}

/** Writes the parts as text files, `train.sov`, `train.svo` and so on, for `prepareTranslation`. */
export function writeToyText(
  folder: string,
  text: ToyText,
  languages: { readonly source: string; readonly target: string } = toyLanguages,
): void {
  makeFolder(folder);
  for (const part of ['train', 'valid', 'test'] as const) {
    for (const side of ['source', 'target'] as const) {
      const lines = text[part].map((pair) => `${pair[side]}\n`).join('');
      writeFileAtomic(join(folder, `${part}.${languages[side]}`), lines);
    }
  }
}

/** A source word and its translation. */
type Entry = readonly [string, string];

interface Lexicon {
  readonly words: Readonly<Record<WordClass, readonly Entry[]>>;
  readonly article: Entry;
  readonly not: Entry;
  readonly question: Entry;
}

function makeLexicon(random: Random): Lexicon {
  const used = new Set<string>();
  const word = (consonants: string, vowels: string, syllables: number): string => {
    for (;;) {
      let text = '';
      for (let i = 0; i < syllables; i++)
        text += consonants[random.int(consonants.length)] + vowels[random.int(vowels.length)];
      if (used.has(text)) continue;
      used.add(text);
      return text;
    }
  };
  // The two languages sound different, so that a reader sees at once which is which.
  const entry = (syllables: number): Entry => [word('kmnrst', 'aiu', syllables), word('bdfglpvz', 'eo', syllables)];
  const list = (wordClass: WordClass): Entry[] => Array.from({ length: sizes[wordClass] }, () => entry(3));
  return {
    words: {
      noun: list('noun'),
      verb: list('verb'),
      adjective: list('adjective'),
      time: list('time'),
      preposition: list('preposition'),
    },
    article: entry(1),
    not: entry(1),
    question: entry(1),
  };
}

function sentence({ words, article, not, question }: Lexicon, random: Random): ToyPair {
  const pick = (wordClass: WordClass): Entry => words[wordClass][random.int(sizes[wordClass])];
  const chance = (p: number): boolean => random.uniform() < p;
  const nounPhrase = (mostAdjectives: number) => {
    const noun = pick('noun');
    const adjectives = Array.from({ length: random.int(mostAdjectives + 1) }, () => pick('adjective'));
    return { source: [article, ...adjectives, noun], target: [article, noun, ...adjectives] };
  };
  const nothing: Entry[] = [];

  const subject = nounPhrase(2);
  const object = chance(0.7) ? nounPhrase(2) : undefined;
  const place = chance(0.5) ? { preposition: pick('preposition'), phrase: nounPhrase(1) } : undefined;
  // A sentence has at least four words: without object and place it has a time.
  const time = chance(0.4) || (!object && !place) ? [pick('time')] : nothing;
  const negation = chance(0.2) ? [not] : nothing;
  const verb = pick('verb');
  const asked = chance(0.2) ? [question] : nothing;

  const source = [
    ...subject.source,
    ...time,
    ...(object?.source ?? nothing),
    ...(place ? [place.preposition, ...place.phrase.source] : nothing),
    ...negation,
    verb,
    ...asked,
  ];
  const target = [
    ...asked,
    ...subject.target,
    ...negation,
    verb,
    ...(object?.target ?? nothing),
    ...(place ? [place.preposition, ...place.phrase.target] : nothing),
    ...time,
  ];
  return { source: source.map(([word]) => word).join(' '), target: target.map(([, word]) => word).join(' ') };
}

/**
 * A language pair that can be read: English with the verb at the end, and plain English.
 *
 *     source   subject  [adverb] [object] [place]  verb
 *     target   subject  verb  [object] [place] [adverb]
 *
 *     the tall farmer yesterday a red door behind the barn painted
 *     the tall farmer painted a red door behind the barn yesterday
 *
 * What waiting costs can be seen at the verb: it follows a subject of s words in the target and ends a source of n, so
 * that wait-k knows it in time iff k ≥ n − s, as in the toy pair. n − s spreads over 1 to 9, so wait-1 has to guess
 * the verb of nearly every sentence and wait-5 that of some.
 */
export const verbFinalLanguages = { source: 'verb-final', target: 'english' } as const;

/** Sentences in three parts; no sentence occurs twice, within a part or across. */
export function verbFinalText(seed: number | string, sizes: TextSizes = {}): ToyText {
  return distinctText({ sample: verbFinalSentence }, new Random(seed).fork('verb-final sentences'), sizes);
}

const words = (text: string): readonly string[] => text.split(' ');

const people = words('farmer baker teacher sailor doctor child neighbour painter king dog cat horse');
const things = words('door letter book cake song picture boat chair lamp box coat wall dog cat horse flower');
const places = words('barn garden kitchen school river market bridge house forest station');
const adjectives = words('tall small young clever tired quiet happy friendly');
const qualities = words('red blue new broken heavy pretty little strange');
const prepositions = words('behind near in under');
const adverbs = words('yesterday quietly quickly twice again today');

const transitive = words(
  'painted saw found bought sold carried lost drew hid moved wanted liked forgot described cleaned dropped',
);
const intransitive = words('slept sang waited laughed worked danced');

function verbFinalSentence(random: Random): ToyPair {
  const pick = <T>(list: readonly T[]): T => list[random.int(list.length)];
  const chance = (p: number): boolean => random.uniform() < p;
  const phrase = (nouns: readonly string[], kinds: readonly string[]): string[] => [
    chance(0.6) ? 'the' : 'a',
    ...(chance(0.5) ? [pick(kinds)] : []),
    pick(nouns),
  ];

  const subject = phrase(people, adjectives);
  const object = chance(0.75) ? phrase(things, qualities) : [];
  const place = chance(0.5) ? [pick(prepositions), ...phrase(places, qualities)] : [];
  const adverb = chance(0.4) ? [pick(adverbs)] : [];
  const verb = pick(object.length > 0 ? transitive : intransitive);

  const source = [...subject, ...adverb, ...object, ...place, verb];
  const target = [...subject, verb, ...object, ...place, ...adverb];
  return { source: source.join(' '), target: target.join(' ') };
}
