/**
 * The rules of Moses' normalize-punctuation.perl for a language: typographic quotes, dashes and ellipses become
 * ASCII, spaces around brackets and before signs are regularised, quotation marks and commas take the order usual in
 * the language.
 */
export function punctuationNormalizer(language: string): (line: string) => string {
  const rules = [...general, ...quotationOrder(language), ...digitGroups(language)];
  return (line) => {
    // A rule about a full stop and a quote needs a character after them; at the end of a line it is the line feed.
    let text = `${line}\n`;
    for (const [needed, pattern, replacement] of rules) {
      // Most lines have little punctuation: looking for a text is cheaper than matching a pattern.
      if (text.includes(needed)) text = text.replaceAll(pattern, replacement);
    }
    return text.slice(0, -1);
  };
}

/** A text without which the rule does nothing, a pattern, its replacement. */
type Rule = readonly [needed: string, pattern: string | RegExp, replacement: string];

const nbsp = '\u00a0';
const literal = (text: string, replacement: string): Rule => [text, text, replacement];
const singleSpaces: Rule = ['  ', / +/g, ' '];

const general: readonly Rule[] = [
  literal('\r', ''),
  literal('(', ' ('),
  literal(')', ') '),
  singleSpaces,
  [') ', /\) ([.!:?;,])/g, ')$1'],
  literal('( ', '('),
  literal(' )', ')'),
  [' %', /([0-9]) %/g, '$1%'],
  literal(' :', ':'),
  literal(' ;', ';'),
  literal('`', "'"),
  literal("''", ' " '),
  literal('„', '"'),
  literal('“', '"'),
  literal('”', '"'),
  literal('–', '-'),
  literal('—', ' - '),
  singleSpaces,
  literal('´', "'"),
  ['‘', /([a-z])‘([a-z])/gi, "$1'$2"],
  ['’', /([a-z])’([a-z])/gi, "$1'$2"],
  literal('‘', "'"),
  literal('‚', "'"),
  literal('’', '"'),
  literal("''", '"'),
  literal('…', '...'),
  literal(`${nbsp}«${nbsp}`, ' "'),
  literal(`«${nbsp}`, '"'),
  literal('«', '"'),
  literal(`${nbsp}»${nbsp}`, '" '),
  literal(`${nbsp}»`, '"'),
  literal('»', '"'),
  literal(`${nbsp}%`, '%'),
  literal(`nº${nbsp}`, 'nº '),
  literal(`${nbsp}:`, ':'),
  literal(`${nbsp}ºC`, ' ºC'),
  literal(`${nbsp}cm`, ' cm'),
  literal(`${nbsp}?`, '?'),
  literal(`${nbsp}!`, '!'),
  literal(`${nbsp};`, ';'),
  literal(`,${nbsp}`, ', '),
  singleSpaces,
];

function quotationOrder(language: string): readonly Rule[] {
  if (language === 'en') return [['"', /"([,.]+)/g, '$1"']];
  if (language === 'cs' || language === 'cz') return [];
  return [literal(',"', '",'), ['."', /(\.+)"([\t-\r ]*[^<])/g, '"$1$2']];
}

/** A no-break space between digits becomes the sign that groups or separates digits. */
function digitGroups(language: string): readonly Rule[] {
  const sign = ['de', 'es', 'cz', 'cs', 'fr'].includes(language) ? ',' : '.';
  return [[nbsp, new RegExp(`([0-9])${nbsp}([0-9])`, 'g'), `$1${sign}$2`]];
}

/**
 * Lower case, letter by letter: unlike `toLowerCase` on a whole string, a Greek sigma at the end of a word becomes σ,
 * as in Perl and Python's older tools, so that a word has one form wherever it is cut.
 */
export function lowercase(text: string): string {
  const lowered = text.toLowerCase();
  return text.includes('Σ') ? Array.from(text, (letter) => letter.toLowerCase()).join('') : lowered;
}
