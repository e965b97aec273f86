import * as Plot from '@observablehq/plot';
import { parseHTML } from 'linkedom';
import { escapeMarkup } from '../markup.js';
import { FONT, INK, type SeriesStyle, textWidth } from './style.js';

/** A figure and the numbers in it. */
export interface Figure {
  /** Name of its files. */
  readonly id: string;
  readonly title: string;
  /** What is shown and how it was had, in sentences. */
  readonly caption: string;
  /** A document of its own. */
  readonly svg: string;
  readonly data: FigureData;
}

export interface FigureData {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
}

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
 * Draws rows of panels below a legend, as one SVG document that needs nothing else: no style sheet, no
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

/** Entries from left to right, in as many lines as it takes. */
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
/** Length of the piece of line in the legend. */
const SAMPLE = 34;

/** What a plot consists of, without its own root, style sheet and needless digits. */
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
