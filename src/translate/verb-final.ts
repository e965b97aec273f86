import { Random } from '../random.js';
import { distinctText, type TextSizes, type ToyPair, type ToyText } from './toy.js';

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
 * that wait-k knows it in time iff k ≥ n − s (as in `toy.ts`). n − s spreads over 1 to 9, so wait-1 has to guess the
 * verb of nearly every sentence and wait-5 that of some.
 */
export const verbFinalLanguages = { source: 'verb-final', target: 'english' } as const;

/** Sentences in three parts; no sentence occurs twice, within a part or across. */
export function verbFinalText(seed: number | string, sizes: TextSizes = {}): ToyText {
  return distinctText({ sample: sentence }, new Random(seed).fork('verb-final sentences'), sizes);
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

function sentence(random: Random): ToyPair {
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
