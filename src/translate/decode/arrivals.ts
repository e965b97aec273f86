import { InputError } from '../../errors.js';

/** A word, or the end of a line. */
export type Arrival = { readonly word: string } | { readonly lineEnd: true };

/**
 * The words of a UTF-8 text while it comes in pieces, however those are cut. A word has arrived when the white space
 * after it has; a line ends with "\n" or with the text. `name` is for messages.
 */
export async function* arrivals(chunks: AsyncIterable<Uint8Array>, name: string): AsyncGenerator<Arrival> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let word = '';
  let line = 1;
  let begun = false;
  const decode = (chunk?: Uint8Array): string => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined });
    } catch {
      const sentence = chunk === undefined ? 'the text ends in the middle of a character' : 'the text is not UTF-8';
      throw new InputError(sentence, { file: name, line });
    }
  };
  for await (const chunk of chunks) {
    // Line by line: bytes that are no text neither take the lines before them along nor are taken for one of those.
    for (const bytes of withNewlines(chunk)) {
      for (const piece of decode(bytes).split(/(\s)/u)) {
        if (!/^\s$/u.test(piece)) {
          word += piece;
          begun ||= piece !== '';
          continue;
        }
        if (word !== '') yield { word };
        word = '';
        begun = piece !== '\n';
        if (begun) continue;
        line++;
        yield { lineEnd: true };
      }
    }
  }
  word += decode();
  if (word !== '') yield { word };
  if (begun) yield { lineEnd: true };
}

const NEWLINE = 0x0a;

/** Cuts bytes after each "\n", which in UTF-8 is never part of another character. */
function* withNewlines(bytes: Uint8Array): Generator<Uint8Array> {
  for (let start = 0; start < bytes.length; ) {
    const newline = bytes.indexOf(NEWLINE, start);
    const end = newline < 0 ? bytes.length : newline + 1;
    yield bytes.subarray(start, end);
    start = end;
  }
}
