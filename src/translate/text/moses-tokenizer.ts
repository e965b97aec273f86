import { InputError } from '../../errors.js';

export interface MosesOptions {
  /** Split hyphens between letters or digits into `@-@`. Default false. */
  readonly aggressive?: boolean;
  /** Write `& | < > ' " [ ]` as entities, as required by Moses' decoder. Default true. */
  readonly escape?: boolean;
  /** Perl-style patterns; what they match stays one token. Default none. */
  readonly protectedPatterns?: readonly string[];
}

/** The context of a span of text that is tokenised before its line is complete. */
export interface Surroundings {
  /** The span starts the line. */
  readonly first: boolean;
  /** The whitespace-separated word after the span; null at the end of the line. */
  readonly next: string | null;
  /** The word before the span and the space between them, if there are any. */
  readonly previous?: string;
}

export type MosesTokenizer = (text: string, surroundings?: Surroundings) => string;

const wholeLine: Surroundings = { first: true, next: null };

/**
 * The rules of Moses' tokenizer.perl for a language. The result is a function of a line. Every rule looks at
 * neighbouring characters and, for a full stop, at the next word only; a single word given with its surroundings
 * therefore yields the tokens it has within the line (protected patterns that contain spaces excepted).
 */
export function mosesTokenizer(language: string, options: MosesOptions = {}): MosesTokenizer {
  const prefixes = nonbreakingPrefixes(language);
  const patterns = (options.protectedPatterns ?? []).map(protectedPattern);
  const special = specialCharacters(language);
  const apostrophes = apostropheRules(language);

  return (line, surroundings = wholeLine) => {
    if (blank.test(line)) return line;
    let text = ` ${line} `.replace(spaces, ' ').replace(controls, '');
    const kept = patterns.length === 0 ? [] : findProtected(text, patterns);
    kept.forEach((match, i) => {
      text = text.replaceAll(match, ` ${placeholder(i)} `);
    });
    text = trimSpaces(text);
    if (!surroundings.first) text = ` ${text}`;
    if (surroundings.next !== null) text = `${text} `;

    for (const [pattern, replacement] of special) text = text.replace(pattern, replacement);
    if (options.aggressive) text = text.replace(hyphenInside, '$1 @-@ ');
    if (text.includes('..') || text.includes('DOTMULTI.')) text = joinDots(text);
    if (text.includes(',')) {
      text = text.replace(commaAfterNonNumber, '$1 , ').replace(commaBeforeNonNumber, ' , $1');
      text = text.replace(finalComma, '$1 ,');
    }
    if (text.includes("'")) for (const [pattern, replacement] of apostrophes) text = text.replace(pattern, replacement);
    text = splitFullStops(text, prefixes, surroundings.next);
    if (surroundings.next === null) text = text.replace(finalStopAndQuote, " . ' ");

    kept.forEach((match, i) => {
      text = text.replaceAll(placeholder(i), () => match);
    });
    if (text.includes('DOTMULTI')) text = restoreDots(text);
    return (options.escape ?? true) ? escapeEntities(text) : text;
  };
}

type Rule = readonly [RegExp, string];

// Perl's \s, which includes U+0085 but not U+FEFF, unlike JavaScript's.
const space = '\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const blank = new RegExp(`^[${space}]*$`, 'u');
const spaces = new RegExp(`[${space}]+`, 'gu');
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is removed
const controls = /[\x00-\x1f]/g;

const alnum = '\\p{Alphabetic}\\p{Nd}';
const hyphenInside = new RegExp(`([${alnum}])-(?=[${alnum}])`, 'gu');
const commaAfterNonNumber = /(\P{N}),/gu;
const commaBeforeNonNumber = /,(\P{N})/gu;
const finalComma = /(\p{N}),$/u;
const finalStopAndQuote = /\.' ?$/;
const entities: readonly Rule[] = [
  [/&/g, '&amp;'],
  [/\|/g, '&#124;'],
  [/</g, '&lt;'],
  [/>/g, '&gt;'],
  [/'/g, '&apos;'],
  [/"/g, '&quot;'],
  [/\[/g, '&#91;'],
  [/\]/g, '&#93;'],
];
const needsEntities = /[&|<>'"[\]]/;

function escapeEntities(text: string): string {
  if (!needsEntities.test(text)) return text;
  return entities.reduce((result, [pattern, entity]) => result.replace(pattern, entity), text);
}

/** Characters separated from their neighbours; a few languages use one of them inside words. */
function specialCharacters(language: string): readonly Rule[] {
  const setApart = (inWord: string): Rule => [new RegExp(`([^${alnum}${space}.'\`,\\-${inWord}])`, 'gu'), ' $1 '];
  if (language === 'fi' || language === 'sv') return [setApart(':'), [/(:)(?=$|\P{Ll})/gu, ' $1 ']];
  if (language === 'ca') return [setApart('·'), [/(·)(?=$|\P{Ll})/gu, ' $1 ']];
  if (language === 'tdt') return [setApart(''), [/(')(?=$|\P{Ll})/gu, ' $1 ']];
  return [setApart('')];
}

function apostropheRules(language: string): readonly Rule[] {
  const between: Rule = [/(\P{Alphabetic})'(\P{Alphabetic})/gu, "$1 ' $2"];
  const before: Rule = [/(\P{Alphabetic})'(\p{Alphabetic})/gu, "$1 ' $2"];
  const after: Rule = [/(\p{Alphabetic})'(\P{Alphabetic})/gu, "$1 ' $2"];
  if (language === 'en') {
    return [
      between,
      [/([^\p{Alphabetic}\p{N}])'(\p{Alphabetic})/gu, "$1 ' $2"],
      after,
      [/(\p{Alphabetic})'(\p{Alphabetic})/gu, "$1 '$2"],
      [/(\p{N})'s/gu, "$1 's"], // the 1990's
    ];
  }
  if (['fr', 'it', 'ga', 'ca'].includes(language)) {
    return [between, before, after, [/(\p{Alphabetic})'(\p{Alphabetic})/gu, "$1' $2"]];
  }
  if (language === 'so' || language === 'tdt') return [between, before, after];
  return [[/'/g, " ' "]];
}

/** Runs of full stops become one placeholder each, so that the later rules leave them whole. */
function joinDots(text: string): string {
  let joined = text.replace(/\.(\.+)/g, ' DOTMULTI$1');
  while (joined.includes('DOTMULTI.')) {
    joined = joined.replace(/DOTMULTI\.([^.])/gu, 'DOTDOTMULTI $1').replaceAll('DOTMULTI.', 'DOTDOTMULTI');
  }
  return joined;
}

function restoreDots(text: string): string {
  let dots = text;
  while (dots.includes('DOTDOTMULTI')) dots = dots.replaceAll('DOTDOTMULTI', 'DOTMULTI.');
  return dots.replaceAll('DOTMULTI', '.');
}

/** Splits a final full stop from a word, unless the word is an abbreviation or the next one begins in lower case. */
function splitFullStops(text: string, prefixes: NonbreakingPrefixes, nextWord: string | null): string {
  const words = text.split(' ').filter((word) => word !== '');
  return words
    .map((word, i) => {
      if (word.length < 2 || !word.endsWith('.')) return word;
      const stem = word.slice(0, -1);
      const next = i + 1 < words.length ? words[i + 1] : nextWord;
      if (next === null) return `${stem} .`;
      const isPrefix =
        (stem.includes('.') && /\p{Alphabetic}/u.test(stem)) ||
        prefixes.always.has(stem) ||
        /^\p{Lowercase}/u.test(next) ||
        (prefixes.beforeNumber.has(stem) && /^[0-9]/.test(next));
      return isPrefix ? word : `${stem} .`;
    })
    .join(' ');
}

function trimSpaces(text: string): string {
  const single = text.includes('  ') ? text.replace(/ +/g, ' ') : text;
  return single.replace(/^ | $/g, '');
}

function placeholder(i: number): string {
  return `THISISPROTECTED${String(i).padStart(3, '0')}`;
}

function findProtected(text: string, patterns: readonly RegExp[]): string[] {
  const found: string[] = [];
  for (const pattern of patterns) {
    for (const match of text.matchAll(pattern)) if (match[0] !== '') found.push(match[0]);
  }
  return found;
}

const wordClass = '\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}';
const syntaxCharacter = /[\^$\\.*+?()[\]{}|/]/;

/** A Perl pattern as a JavaScript one: Unicode `\w` and `\s`, and escapes that JavaScript does not know. */
function protectedPattern(source: string): RegExp {
  let inClass = false;
  const translated = source.replace(/\\(.)|[[\]]/gsu, (symbol, escaped: string | undefined) => {
    if (symbol === '[') inClass = true;
    if (symbol === ']') inClass = false;
    if (escaped === undefined) return symbol;
    if (escaped === 'w') return inClass ? wordClass : `[${wordClass}]`;
    if (escaped === 's') return inClass ? space : `[${space}]`;
    if (escaped === 'W' && !inClass) return `[^${wordClass}]`;
    if (escaped === 'S' && !inClass) return `[^${space}]`;
    if (escaped === '-') return '\\x2d'; // `\-` outside a class is an error in Unicode mode
    return /[A-Za-z0-9]/.test(escaped) || syntaxCharacter.test(escaped) ? symbol : escaped;
  });
  try {
    return new RegExp(translated, 'gu');
  } catch {
    throw new InputError(`the protected pattern ${JSON.stringify(source)} is not a regular expression`);
  }
}

/**
 * Abbreviations after which a full stop belongs to the word. `always` holds in front of any word, `beforeNumber`
 * only in front of a digit ("No. 5", but "No. I do not"). Languages without a list use the English one, as the Moses
 * scripts do.
 */
export interface NonbreakingPrefixes {
  readonly always: ReadonlySet<string>;
  readonly beforeNumber: ReadonlySet<string>;
}

function nonbreakingPrefixes(language: string): NonbreakingPrefixes {
  return lists.get(language) ?? english;
}

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}

const capitals = words('A B C D E F G H I J K L M N O P Q R S T U V W X Y Z');

const titles = words(`
  Adj Adm Adv Asst Bart Bldg Brig Bros Capt Cmdr Col Comdr Con Corp Cpl DR Dr Ens Gen Gov Hon Hosp Insp Lt MM MR MRS
  MS Maj Messrs Mlle Mme Mr Mrs Ms Msgr Op Ord Pfc Ph Prof Pvt Rep Reps Res Rev Rt Sen Sens Sfc Sgt Sr St Supt Surg`);

const english: NonbreakingPrefixes = {
  always: new Set([
    ...capitals,
    ...titles,
    ...words('Drs Hr v vs i.e rev e.g Rs Nos Nr Jan Feb Mar Apr Jun Jul Aug Sep Oct Nov Dec'),
  ]),
  beforeNumber: new Set(['No', 'Art', 'pp']),
};

const roman = words('I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX');

// German writes ordinals with a full stop ("am 3. Mai"), hence the numbers.
const german: NonbreakingPrefixes = {
  always: new Set([
    ...capitals,
    ...capitals.map((letter) => letter.toLowerCase()),
    ...roman,
    ...roman.map((numeral) => numeral.toLowerCase()),
    ...titles,
    ...words(`
      Mio Mrd bzw v vs usw d.h z.B u.a etc MwSt ggf d.J D.h m.E vgl I.F z.T sogen ff u.E g.U g.g.A c.-à-d Buchst u.s.w
      sog u.ä Std evtl Zt Chr u.U o.ä Ltd b.A z.Zt spp sen SA k.o jun i.H.v dgl dergl Co zzt usf s.p.a Dkr bzgl BSE
      No Nos Art Nr pp ca Ca`),
    ...Array.from({ length: 99 }, (_, i) => String(i + 1)),
  ]),
  beforeNumber: new Set(),
};

const lists = new Map([
  ['en', english],
  ['de', german],
]);
