import * as Plot from '@observablehq/plot';
import { parseHTML } from 'linkedom';
import { type Cell, escapeMarkup, formatEstimate, type Table } from '../document.js';

export type { Figure, FigureData } from '../document.js';

/** One coordinate system of a figure. */
export interface Panel {
  readonly title: string;
  readonly width: number;
  readonly height: number;
  readonly plot: Plot.PlotOptions;
}

export interface LegendEntry {
  readonly label: string;
  readonly style: SeriesStyle;
  /** Default true. */
  readonly symbol?: boolean;
}

export interface Arrangement {
  /** Default none. */
  readonly legend?: readonly LegendEntry[];
  /** Headings of the rows. Default none. */
  readonly rowTitles?: readonly string[];
}

/**
 * Draws rows of panels below a legend, as one self-contained SVG document: no style sheet, no
 * identifiers, no scripts. Equal data give equal bytes.
 */
export function draw(name: string, rows: readonly (readonly Panel[])[], arrangement: Arrangement = {}): string {
  const { legend = [], rowTitles } = arrangement;
  const width = Math.max(...rows.map((row) => row.reduce((sum, panel) => sum + panel.width, 0)));
  const key = drawLegend(legend, width);
  let top = key.height;
  const parts: string[] = [key.svg];
  for (const [r, row] of rows.entries()) {
    if (rowTitles !== undefined) {
      parts.push(heading(rowTitles[r], MARGIN, top + 16, 'start'));
      top += TITLE;
    }
    let left = 0;
    for (const panel of row) {
      const { title, width, height, plot } = panel;
      parts.push(
        heading(title, left + width / 2, top + 16, 'middle'),
        `<svg x="${left}" y="${top + TITLE}" width="${width}" height="${height}">${innerSvg({ ...STYLE, ...plot, width, height })}</svg>`,
      );
      left += width;
    }
    top += TITLE + Math.max(...row.map(({ height }) => height));
  }
  const label = escapeMarkup(name);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${top}" width="${width}" height="${top}" role="img" aria-label="${label}" font-family="${FONT}" font-size="${SIZE}" fill="${INK}" text-anchor="middle">`,
    `<rect width="${width}" height="${top}" fill="#ffffff"/>`,
    ...parts,
    '</svg>\n',
  ].join('\n');
}

function heading(title: string, x: number, y: number, anchor: 'start' | 'middle'): string {
  return `<text x="${x}" y="${y}" text-anchor="${anchor}" font-weight="bold">${escapeMarkup(title)}</text>`;
}

/** `(a) `, `(b) ` … */
export function panelLetter(index: number): string {
  return `(${String.fromCharCode(97 + index)})`;
}

const SIZE = 12;
/** Room above a panel for its title. */
const TITLE = 24;
const STYLE: Plot.PlotOptions = { className: 'plot', marginTop: 26, marginRight: 18, marginBottom: 42, marginLeft: 56 };

/** Entries from left to right, on as many lines as needed. */
function drawLegend(entries: readonly LegendEntry[], width: number): { svg: string; height: number } {
  if (entries.length === 0) return { svg: '', height: 0 };
  let [x, line] = [MARGIN, 0];
  const places = entries.map(({ label }) => {
    const own = SAMPLE + 8 + textWidth(label, SIZE) + 18;
    if (x > MARGIN && x + own > width) [x, line] = [MARGIN, line + 1];
    const place = { x, y: 16 + 20 * line };
    x += own;
    return place;
  });
  const height = 20 * (line + 1) + 10;
  const marks = entries.flatMap(({ label, style, symbol = true }, i) => {
    const { x, y } = places[i];
    const strokeDasharray = style.dash;
    return [
      Plot.link([0], { x1: x, x2: x + SAMPLE, y1: y, y2: y, stroke: style.color, strokeWidth: 1.8, strokeDasharray }),
      ...(symbol ? [Plot.dot([0], { x: x + SAMPLE / 2, y, symbol: style.symbol, fill: style.color, r: 4 })] : []),
      Plot.text([label], { x: x + SAMPLE + 8, y, text: (d: string) => d, textAnchor: 'start' }),
    ];
  });
  const axis = { axis: null, type: 'identity' } as const;
  const inner = innerSvg({ className: 'plot', width, height, margin: 0, x: axis, y: axis, marks });
  return { svg: `<svg width="${width}" height="${height}">${inner}</svg>`, height };
}

const MARGIN = 12;
/** Length of a line sample in the legend. */
const SAMPLE = 34;

/** The elements of a plot, without its root, style sheet and needless digits. */
function innerSvg(options: Plot.PlotOptions): string {
  const { document } = parseHTML('<html><body></body></html>');
  const svg = Plot.plot({ ...options, document: document as unknown as PlotDocument });
  svg.querySelector('style')?.remove();
  return String(svg.innerHTML).replace(/<[^>]*>/g, (tag) =>
    tag.replace(/-?\d+\.\d{3,}(?:e-\d+)?/g, twoDigits).replaceAll('currentColor', INK),
  );
}

function twoDigits(digits: string): string {
  return String(Number(Number(digits).toFixed(2)));
}

type PlotDocument = Plot.PlotOptions['document'];

/** Styles that distinguish series in colour, in grey, and for colour-blind readers. */
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

/** Methods in a figure of lines with bands: more cannot be distinguished. */
export const MOST_METHODS = 7;
/** Curves in a figure without bands. */
export const MOST_CURVES = STYLES.length;

/** The style of the paper's own method: a full line. */
const OWN_STYLE = 4;
/** The style of non-methods, such as the market. */
export const PLAIN_STYLE = 7;

/** Different style numbers for a number of series; the one at `own`, if there is one, is the paper's method. */
export function stylesFor(count: number, own: number): number[] {
  const free = STYLES.map((_, i) => i).filter((i) => own < 0 || i !== OWN_STYLE);
  return Array.from({ length: count }, (_, i) => (i === own ? OWN_STYLE : free.shift()!));
}

export function seriesStyle(index: number): SeriesStyle {
  return STYLES[index % STYLES.length];
}

/** Fonts that Linux, macOS and Windows have, narrow ones first. */
const FONT = "'Liberation Sans', Arial, Helvetica, 'DejaVu Sans', sans-serif";
const INK = '#222222';

/** Width of a text in pixels, estimated without a font, on the high side. */
export function textWidth(content: string, size: number): number {
  let width = 0;
  for (const character of content) {
    width += NARROW.test(character) ? 0.33 : WIDE.test(character) ? 0.9 : CAPITAL.test(character) ? 0.72 : 0.58;
  }
  return width * size;
}

const NARROW = /[ijlftrI.,:;'|()[\]/ *-]/;
const CAPITAL = /[A-Z&±−–]/;
/** Capital and small m and w, and anything that is not Latin. */
const WIDE = /[mwMW%@—]|[^ -ɏ±−–…×]/u;

/** The table as an SVG document, like a printed one: rules above, below and under the head. */
export function tablePicture({ title, columns, rows }: Table): string {
  const lines = [
    columns.map((column) => [{ text: column.title, bold: true }]),
    ...rows.map(({ cells }) => cells.map(spans)),
  ];
  const widths = columns.map((_, c) => Math.max(...lines.map((line) => spansWidth(line[c]))));
  const lefts = widths.map((_, c) => GAP + widths.slice(0, c).reduce((sum, width) => sum + width + GAP, 0));
  const width = Math.ceil(lefts.at(-1)! + widths.at(-1)! + GAP);
  const height = Math.ceil((lines.length + 1) * LINE);
  const rule = (y: number, weight: number): string =>
    `<path d="M${GAP / 2},${y}H${width - GAP / 2}" stroke="${INK}" stroke-width="${weight}"/>`;
  const body = lines.flatMap((line, r) =>
    line.map((parts, c) => {
      const numeric = columns[c].measures.length > 0;
      const x = numeric ? lefts[c] + widths[c] / 2 : lefts[c];
      const inner = parts.map(
        ({ text, bold }) => `<tspan${bold ? ' font-weight="bold"' : ''}>${escapeMarkup(text)}</tspan>`,
      );
      return `<text x="${fixed(x)}" y="${(r + 1.2) * LINE}"${numeric ? ' text-anchor="middle"' : ''}>${inner.join('')}</text>`;
    }),
  );
  const rules = [
    rule(0.5 * LINE, 1.5),
    rule(1.55 * LINE, 0.8),
    ...rows.flatMap((row, r) => (row.rule ? [rule((r + 1.55) * LINE, 0.5)] : [])),
    rule((lines.length + 0.55) * LINE, 1.5),
  ];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeMarkup(title)}" font-family="${FONT}" font-size="${TABLE_SIZE}" fill="${INK}" xml:space="preserve">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    ...rules,
    ...body,
    '</svg>\n',
  ].join('\n');
}

const TABLE_SIZE = 13;
const LINE = 24;
/** Between two columns. */
const GAP = 22;

interface Span {
  readonly text: string;
  readonly bold: boolean;
}

function spans(cell: Cell): Span[] {
  if (typeof cell === 'string') return [{ text: cell, bold: false }];
  return cell.flatMap((one, i) => [
    ...(i > 0 ? [{ text: ' / ', bold: false }] : []),
    one === undefined ? { text: '–', bold: false } : { text: formatEstimate(one), bold: one.best === true },
  ]);
}

function spansWidth(parts: readonly Span[]): number {
  return parts.reduce((sum, { text, bold }) => sum + textWidth(text, bold ? 1.06 * TABLE_SIZE : TABLE_SIZE), 0);
}

function fixed(value: number): string {
  return String(Number(value.toFixed(2)));
}
