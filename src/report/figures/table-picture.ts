import { escapeMarkup } from '../document.js';
import { type Cell, formatEstimate, type Table } from '../table.js';
import { FONT, INK, textWidth } from './figure.js';

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
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeMarkup(title)}" font-family="${FONT}" font-size="${SIZE}" fill="${INK}" xml:space="preserve">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    ...rules,
    ...body,
    '</svg>\n',
  ].join('\n');
}

const SIZE = 13;
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
  return parts.reduce((sum, { text, bold }) => sum + textWidth(text, bold ? 1.06 * SIZE : SIZE), 0);
}

function fixed(value: number): string {
  return String(Number(value.toFixed(2)));
}
