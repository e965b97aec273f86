import { InputError } from '../../errors.js';

/*
 * How a source arrives: word by word, or character by character if its pipeline says so (`TextPipeline.byCharacter`).
 * A word has arrived when the white space after it has, a character at once.
 */

/** A word, or a character of a language without spaces; `joined`: no space is before it. */
export interface ArrivingWord {
  readonly word: string;
  readonly joined?: boolean;
}

/** The words of a line, as they would arrive one by one; characters, if the source is read by characters. */
export function arrivingWords(line: string, byCharacter: boolean): ArrivingWord[] {
  const words = line.split(/\s+/u).filter((word) => word !== '');
  if (!byCharacter) return words.map((word) => ({ word }));
  return words.flatMap((word) => Array.from(word, (character, i) => ({ word: character, joined: i > 0 })));
}

/** Those that have arrived of a line that is still being typed. */
export function arrivedWords(typed: string, byCharacter: boolean): ArrivingWord[] {
  const words = arrivingWords(typed, byCharacter);
  return byCharacter || /\s$/u.test(typed) ? words : words.slice(0, -1);
}

/** A line as it stands each time that one more of its words has arrived. */
export function arrivalsOfLine(line: string, byCharacter: boolean): string[] {
  const pieces = `${line.trim()} `.matchAll(byCharacter ? /\S\s*/gu : /\S+\s*/gu);
  return Array.from(pieces, ({ 0: piece, index, input }) => input.slice(0, index + piece.length));
}

/** A word, or the end of a line. */
export type Arrival = ArrivingWord | { readonly lineEnd: true };

/**
 * `arrivedWords` of the lines of a UTF-8 text that arrives in pieces, however it is split. A line ends with "\n" or with
 * the text. `name` is for messages.
 */
export async function* arrivals(
  chunks: AsyncIterable<Uint8Array>,
  name: string,
  byCharacter = false,
): AsyncGenerator<Arrival> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let word = '';
  /** A character of this word has arrived. */
  let joined = false;
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
    // Line by line: invalid bytes do not affect the lines before them.
    for (const bytes of withNewlines(chunk)) {
      for (const piece of decode(bytes).split(/(\s)/u)) {
        if (!/^\s$/u.test(piece)) {
          begun ||= piece !== '';
          if (!byCharacter) word += piece;
          else {
            for (const character of piece) {
              yield { word: character, joined };
              joined = true;
            }
          }
          continue;
        }
        if (word !== '') yield { word };
        word = '';
        joined = false;
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
