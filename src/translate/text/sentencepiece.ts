import { InputError } from '../../errors.js';
import { Vocabulary } from './vocabulary.js';

/**
 * A SentencePiece model (Kudo and Richardson 2018) from `spm_train`, unigram or byte pair encoding. Words are
 * segmented one by one, so a sentence can arrive word by word. That gives the pieces of the whole line, since no
 * piece spans words (models of `--split_by_whitespace=false` are rejected); only if two
 * segmentations are equally likely may the original choose the other one.
 */
export interface SentencePieceTokenizer {
  /** Pieces of a line, or of a part of it; `first` and `last`: nothing comes before or after it. */
  tokenize(text: string, place?: { readonly first?: boolean; readonly last?: boolean }): string[];
  /** The line represented by pieces. */
  join(pieces: readonly string[]): string;
  /** Its pieces in the order of its ids. Its own special symbols are replaced by ours. */
  readonly vocabulary: Vocabulary;
}

export function sentencePieceTokenizer(bytes: Uint8Array, file = 'SentencePiece model'): SentencePieceTokenizer {
  const model = readModel(bytes, file);
  const segment = model.type === TYPES.bpe ? mergingSegmenter(model) : likeliestSegmenter(model);
  const known = new Map<string, readonly string[]>();
  const segmented = (word: string): readonly string[] => {
    const pieces = known.get(word) ?? knownPieces(segment(word), model);
    if (known.size < CACHE) known.set(word, pieces);
    return pieces;
  };
  return {
    tokenize: (text, { first = true, last = true } = {}) => {
      const normalised = normalise(text, model);
      if (normalised === '') return [];
      const { dummyPrefix, suffix } = model;
      const before = !suffix && (dummyPrefix || !first) ? SPACE : '';
      const after = suffix && (dummyPrefix || !last) ? SPACE : '';
      const escaped = before + normalised.replaceAll(' ', SPACE) + after;
      return escaped.split(suffix ? AFTER_SPACE : BEFORE_SPACE).flatMap(segmented);
    },
    join: (pieces) => joined(pieces, model),
    vocabulary: new Vocabulary(
      model.pieces.flatMap(({ text, type }): [string, number][] => {
        const isOwn = type === PIECES.normal || type === PIECES.userDefined || type === PIECES.byte;
        return isOwn && !/[\n\r ]/.test(text) && !SPECIAL.has(text) ? [[text, 0]] : [];
      }),
    ),
  };
}

/** U+2581 stands for a space. */
const SPACE = '▁';
const BEFORE_SPACE = /(?=▁)/u;
const AFTER_SPACE = /(?<=▁)/u;
const SPECIAL = new Set(['<s>', '<pad>', '</s>', '<unk>']);
/** Words whose pieces are remembered: a bound on memory. */
const CACHE = 200_000;

const TYPES = { unigram: 1, bpe: 2 } as const;
const PIECES = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const;

interface Piece {
  readonly text: string;
  readonly score: number;
  readonly type: number;
}

interface Model {
  readonly pieces: readonly Piece[];
  /** Pieces for segmentation, including unused ones. */
  readonly byText: ReadonlyMap<string, Piece>;
  /** Code points of the longest piece. */
  readonly longest: number;
  /** Symbols that are never split, the longest first. */
  readonly whole: readonly string[];
  readonly type: number;
  readonly byteFallback: boolean;
  /** What an unknown piece is written as. */
  readonly unknown: string;
  readonly charsmap?: CharsMap;
  readonly dummyPrefix: boolean;
  readonly removeSpaces: boolean;
  /** A space belongs to the end of the previous word instead of the start of the next. */
  readonly suffix: boolean;
}

/** Collapses spaces between words, if the model says so, after its normalisation rules. */
function normalise(text: string, { charsmap, whole, removeSpaces }: Model): string {
  const normalised = charsmap === undefined ? text : charsmap.apply(text, whole);
  return removeSpaces ? normalised.replace(/ +/g, ' ').replace(/^ | $/g, '') : normalised;
}

/** The pieces with the largest sum of scores (Viterbi). An unknown character costs 10 more than the worst piece. */
function likeliestSegmenter({ pieces, byText, longest }: Model): (word: string) => string[] {
  const scores = pieces.filter(({ type }) => type === PIECES.normal).map(({ score }) => score);
  const unknown = Math.fround(Math.fround(Math.min(...scores)) - 10);
  // The original starts its search for the largest score with the smallest positive number.
  const largest = scores.reduce((a, b) => Math.max(a, b), 1.1754943508222875e-38);
  // A user-defined symbol beats anything else.
  const scoreOf = ({ type, score, text }: Piece): number =>
    type === PIECES.userDefined ? utf8Length(text) * largest - 0.1 : score;
  return (word) => {
    const characters = Array.from(word);
    const n = characters.length;
    // Sums are kept in single precision, as in the original.
    const best = new Float32Array(n + 1);
    const from = new Int32Array(n + 1).fill(-1);
    const offer = (end: number, start: number, score: number): void => {
      if (from[end] >= 0 && !(score > best[end])) return;
      best[end] = score;
      from[end] = start;
    };
    for (let start = 0; start < n; start++) {
      let single = false;
      let text = '';
      for (let end = start + 1; end <= Math.min(n, start + longest); end++) {
        text += characters[end - 1];
        const piece = byText.get(text);
        if (piece === undefined || piece.type === PIECES.unused) continue;
        offer(end, start, best[start] + scoreOf(piece));
        single ||= end === start + 1;
      }
      if (!single) offer(start + 1, start, Math.fround(best[start] + unknown));
    }
    const found: string[] = [];
    for (let end = n; end > 0; end = from[end]) found.push(characters.slice(from[end], end).join(''));
    return found.reverse();
  };
}

/** Byte pair encoding: the neighbours whose union has the largest score are merged, of equals the leftmost. */
function mergingSegmenter({ byText, whole }: Model): (word: string) => string[] {
  return (word) => {
    const symbols = cut(word, whole);
    /** What an unused piece was merged from: it is undone at the end. */
    const merged = new Map<string, readonly [string, string]>();
    for (;;) {
      let [best, place] = [Number.NEGATIVE_INFINITY, -1];
      for (let i = 0; i + 1 < symbols.length; i++) {
        if (symbols[i].whole || symbols[i + 1].whole) continue;
        const piece = byText.get(symbols[i].text + symbols[i + 1].text);
        if (piece === undefined) continue;
        if (piece.type === PIECES.unused) merged.set(piece.text, [symbols[i].text, symbols[i + 1].text]);
        if (piece.score > best) [best, place] = [piece.score, i];
      }
      if (place < 0) break;
      const text = symbols[place].text + symbols[place + 1].text;
      symbols.splice(place, 2, { text, whole: false });
    }
    const undone = (text: string): string[] => {
      const parts = byText.get(text)?.type === PIECES.unused ? merged.get(text) : undefined;
      return parts === undefined ? [text] : parts.flatMap(undone);
    };
    return symbols.flatMap(({ text }) => undone(text));
  };
}

/** Characters of a word, with unsplittable symbols kept whole. */
function cut(word: string, whole: readonly string[]): { text: string; whole: boolean }[] {
  const symbols: { text: string; whole: boolean }[] = [];
  for (let at = 0; at < word.length; ) {
    const symbol = whole.find((one) => word.startsWith(one, at));
    const text = symbol ?? String.fromCodePoint(word.codePointAt(at) ?? 0);
    symbols.push({ text, whole: symbol !== undefined });
    at += text.length;
  }
  return symbols;
}

/** Unknown pieces as bytes, if the model has those, otherwise a run of them as one. */
function knownPieces(pieces: readonly string[], { byText, byteFallback }: Model): string[] {
  const found: string[] = [];
  let wasUnknown = false;
  for (const piece of pieces) {
    const isUnknown = !byText.has(piece);
    if (isUnknown && byteFallback) found.push(...Array.from(new TextEncoder().encode(piece), byteName));
    else if (isUnknown && wasUnknown) found[found.length - 1] += piece;
    else found.push(piece);
    wasUnknown = isUnknown;
  }
  return found;
}

function byteName(byte: number): string {
  return `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`;
}

/** An incomplete character at the end is left out: the rest may follow. */
function joined(
  pieces: readonly string[],
  { byteFallback, unknown, dummyPrefix, removeSpaces, suffix }: Model,
): string {
  let text = '';
  let bytes: number[] = [];
  for (const piece of pieces) {
    const [, hex] = (byteFallback && /^<0x([0-9A-F]{2})>$/.exec(piece)) || [];
    if (hex !== undefined) {
      bytes.push(Number.parseInt(hex, 16));
      continue;
    }
    text += new TextDecoder().decode(Uint8Array.from(bytes)) + (piece === '<unk>' ? unknown : piece);
    bytes = [];
  }
  text += new TextDecoder().decode(Uint8Array.from(bytes), { stream: true });
  const spaced = text.replaceAll(SPACE, ' ');
  if (suffix) return dummyPrefix ? spaced.replace(/ $/, '') : spaced;
  return dummyPrefix || removeSpaces ? spaced.replace(/^ /, '') : spaced;
}

/**
 * Normalisation rules: a double-array trie (Darts) over UTF-8 from strings to offsets in a blob of strings that end with
 * a zero byte. The longest matching prefix of the text is replaced, repeatedly.
 */
class CharsMap {
  private readonly units: Uint32Array;
  private readonly strings: Uint8Array;

  constructor(blob: Uint8Array, file: string) {
    const view = new DataView(blob.buffer, blob.byteOffset, blob.length);
    const size = blob.length >= 4 ? view.getUint32(0, true) : 0;
    if (blob.length < 4 || size % 4 !== 0 || 4 + size > blob.length) throw broken('its normalisation is cut off', file);
    this.units = Uint32Array.from({ length: size / 4 }, (_, i) => view.getUint32(4 + 4 * i, true));
    this.strings = blob.subarray(4 + size);
  }

  apply(text: string, whole: readonly string[]): string {
    const bytes = new TextEncoder().encode(text);
    const kept = whole.map((symbol) => new TextEncoder().encode(symbol));
    const out: number[] = [];
    for (let at = 0; at < bytes.length; ) {
      const symbol = kept.find((one) => one.every((byte, i) => bytes[at + i] === byte));
      const match = symbol === undefined ? this.longest(bytes, at) : undefined;
      const length = symbol?.length ?? match?.length ?? characterLength(bytes[at]);
      if (match === undefined) for (let i = at; i < at + length; i++) out.push(bytes[i]);
      else for (let i = match.value; this.strings[i] > 0; i++) out.push(this.strings[i]);
      at += length;
    }
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(out));
  }

  /** The longest key that the bytes begin with. */
  private longest(bytes: Uint8Array, start: number): { length: number; value: number } | undefined {
    const { units } = this;
    const offset = (unit: number): number => (unit >>> 10) << ((unit & 0x200) >>> 6);
    let found: { length: number; value: number } | undefined;
    let node = offset(units[0] ?? 0);
    for (let at = start; at < bytes.length; at++) {
      node ^= bytes[at];
      const unit = units[node];
      // The label of a unit is its low byte, and its sign bit distinguishes a value from a node.
      if (unit === undefined || (unit & 0x800000ff) >>> 0 !== bytes[at]) break;
      node ^= offset(unit);
      if ((unit & 0x100) !== 0) found = { length: at + 1 - start, value: (units[node] ?? 0) & 0x7fffffff };
    }
    return found;
  }
}

function characterLength(first: number): number {
  return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

function utf8Length(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** The fields of `ModelProto` that matter: pieces 1, trainer_spec 2, normalizer_spec 3. */
function readModel(bytes: Uint8Array, file: string): Model {
  const fields = readFields(bytes, file);
  const pieces = fields
    .filter(({ number, bytes: content }) => number === 1 && content !== undefined)
    .map(({ bytes: content }): Piece => {
      const own = new Map(readFields(content ?? new Uint8Array(), file).map((field) => [field.number, field]));
      return {
        text: utf8(own.get(1)?.bytes),
        score: own.get(2)?.float ?? 0,
        type: own.get(3)?.value ?? PIECES.normal,
      };
    });
  if (pieces.length === 0) throw broken('it has no pieces', file);
  const message = (number: number): Map<number, Field> => {
    const content = fields.find((field) => field.number === number)?.bytes ?? new Uint8Array();
    return new Map(readFields(content, file).map((field) => [field.number, field]));
  };
  const [trainer, normalizer] = [message(2), message(3)];
  const flag = (of: Map<number, Field>, number: number, otherwise: boolean): boolean =>
    (of.get(number)?.value ?? Number(otherwise)) !== 0;
  const type = trainer.get(3)?.value ?? TYPES.unigram;
  if (type !== TYPES.unigram && type !== TYPES.bpe) {
    throw new InputError('expected a SentencePiece model of type unigram or bpe, found word or char', { file });
  }
  const suffix = flag(trainer, 24, false);
  const across = pieces.find(
    ({ text }) => (suffix ? text.slice(0, -1) : text.slice(1)).includes(SPACE) && !/^▁+$/.test(text),
  );
  if (across !== undefined || !flag(normalizer, 5, true)) {
    const found = across === undefined ? 'spaces that are not escaped' : JSON.stringify(across.text);
    throw new InputError(`expected pieces that do not span words, found ${found}`, { file });
  }
  const inText = pieces.filter(({ type: kind }) =>
    [PIECES.normal, PIECES.userDefined, PIECES.unused].some((one) => one === kind),
  );
  const map = normalizer.get(2)?.bytes;
  return {
    pieces,
    byText: new Map(inText.map((piece) => [piece.text, piece])),
    longest: inText.reduce((most, { text }) => Math.max(most, Array.from(text).length), 0),
    whole: inText
      .filter(({ type: kind }) => kind === PIECES.userDefined)
      .map(({ text }) => text)
      .sort((a, b) => b.length - a.length),
    type,
    byteFallback: flag(trainer, 35, false),
    unknown: trainer.has(44) ? utf8(trainer.get(44)?.bytes) : ' ⁇ ',
    charsmap: map === undefined || map.length === 0 ? undefined : new CharsMap(map, file),
    dummyPrefix: flag(normalizer, 3, true),
    removeSpaces: flag(normalizer, 4, true),
    suffix,
  };
}

interface Field {
  readonly number: number;
  /** Of a varint. */
  readonly value?: number;
  readonly float?: number;
  readonly bytes?: Uint8Array;
}

/** The fields of a protobuf message, one after the other. */
function readFields(bytes: Uint8Array, file: string): Field[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++];
      if (byte === undefined || scale > 2 ** 63) throw broken('it is cut off', file);
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  const fields: Field[] = [];
  while (at < bytes.length) {
    const key = varint();
    const [number, wire] = [Math.floor(key / 8), key % 8];
    const size = wire === 2 ? varint() : wire === 5 ? 4 : wire === 1 ? 8 : 0;
    if (![0, 1, 2, 5].includes(wire) || number === 0 || at + size > bytes.length) throw broken('it is cut off', file);
    if (wire === 0) fields.push({ number, value: varint() });
    else if (wire === 5) fields.push({ number, float: view.getFloat32(at, true) });
    else fields.push({ number, bytes: bytes.subarray(at, at + size) });
    at += size;
  }
  return fields;
}

function utf8(bytes: Uint8Array = new Uint8Array()): string {
  return new TextDecoder().decode(bytes);
}

function broken(why: string, file: string): InputError {
  return new InputError(`not a SentencePiece model: ${why}`, { file });
}
