/** How one series is told from the others: in colour, in grey, and by those who see colours otherwise. */
export interface SeriesStyle {
  readonly color: string;
  /** Of the line, as `stroke-dasharray`. */
  readonly dash: string;
  readonly symbol: 'circle' | 'square' | 'triangle' | 'diamond' | 'star' | 'cross' | 'wye' | 'triangle2';
}

/**
 * Okabe and Ito's palette (2008), its yellow left out as too pale for lines, and two of Tol's (2021); a dash and a symbol
 * go with each colour.
 */
const STYLES: readonly SeriesStyle[] = [
  { color: '#000000', dash: '5 3', symbol: 'circle' },
  { color: '#0072b2', dash: '1.5 2.5', symbol: 'square' },
  { color: '#e69f00', dash: '9 3', symbol: 'triangle' },
  { color: '#009e73', dash: '7 2 1.5 2', symbol: 'diamond' },
  { color: '#d55e00', dash: 'none', symbol: 'star' },
  { color: '#cc79a7', dash: '3 2', symbol: 'cross' },
  { color: '#56b4e9', dash: '12 3 3 3', symbol: 'wye' },
  { color: '#777777', dash: '2 4', symbol: 'triangle2' },
  { color: '#882255', dash: '6 2 2 2', symbol: 'square' },
  { color: '#999933', dash: '4 4', symbol: 'circle' },
];

/** Methods in a figure of lines with bands: more cannot be told apart. */
export const MOST_METHODS = 7;
/** Curves in a figure without bands. */
export const MOST_CURVES = STYLES.length;

/** The style of the paper's own method: a full line. */
export const OWN_STYLE = 4;
/** The style of what is not a method, such as the market. */
export const PLAIN_STYLE = 7;

/** Numbers of styles, all different, for so many series; the one at `own`, if there is one, is the paper's method. */
export function stylesFor(count: number, own: number): number[] {
  const free = STYLES.map((_, i) => i).filter((i) => own < 0 || i !== OWN_STYLE);
  return Array.from({ length: count }, (_, i) => (i === own ? OWN_STYLE : free.shift()!));
}

export function seriesStyle(index: number): SeriesStyle {
  return STYLES[index % STYLES.length];
}

/** Fonts that Linux, macOS and Windows have, narrow ones first. */
export const FONT = "'Liberation Sans', Arial, Helvetica, 'DejaVu Sans', sans-serif";
export const INK = '#222222';

/** Width of a text in pixels, rather too much than too little: no font is read for it. */
export function textWidth(content: string, size: number): number {
  let width = 0;
  for (const character of content) {
    width += NARROW.test(character) ? 0.33 : WIDE.test(character) ? 0.9 : CAPITAL.test(character) ? 0.72 : 0.58;
  }
  return width * size;
}

const NARROW = /[ijlftrI.,:;'|()[\]/ *-]/;
const CAPITAL = /[A-Z&±−–]/;
/** Capital and small m and w, and whatever is not Latin. */
const WIDE = /[mwMW%@—]|[^ -ɏ±−–…×]/u;
