import { type Cell, type Column, formatEstimate, type Table } from './table.js';

/** The table in Markdown: the best figures in bold, deviations behind ±. */
export function markdownTable({ columns, rows }: Pick<Table, 'columns' | 'rows'>): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const head = columns.map(({ title }) => escapeMarkdown(title));
  const rule = columns.map(({ measures }) => (measures.length > 0 ? '---:' : '---'));
  return [line(head), line(rule), ...rows.map(({ cells }) => line(cells.map(markdownCell)))].join('\n');
}

/** What could be taken for Markdown or HTML is escaped. */
export function escapeMarkdown(text: string): string {
  return text.replace(/[\\`*_[\]<>|#]/g, '\\$&').replace(/\r?\n/g, ' ');
}

/** The table as CSV: every figure takes three columns, its mean, its standard deviation and its number of seeds. */
export function csvTable({ columns, rows }: Pick<Table, 'columns' | 'rows'>): string {
  const head = columns.flatMap(csvHead);
  const body = rows.map(({ cells }) => cells.flatMap((cell, i) => csvCells(cell, columns[i])));
  return csv(head, body);
}

/** Text as CSV (RFC 4180): quoted where it must be. */
export function csv(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  return [head, ...rows].map((row) => `${row.map(csvText).join(',')}\n`).join('');
}

function markdownCell(cell: Cell): string {
  if (typeof cell === 'string') return escapeMarkdown(cell);
  return cell
    .map((one) => {
      if (one === undefined) return '–';
      const text = escapeMarkdown(formatEstimate(one));
      return one.best ? `**${text}**` : text;
    })
    .join(' / ');
}

function csvHead({ title, measures }: Column): string[] {
  if (measures.length === 0) return [title];
  return measures.flatMap((measure) => {
    const name = measure === title || title === '' ? measure : `${title} ${measure}`;
    return [name, `${name} std`, `${name} seeds`];
  });
}

function csvCells(cell: Cell, { measures }: Column): (string | number)[] {
  if (typeof cell === 'string') return [cell, ...new Array<string>(Math.max(0, 3 * measures.length - 1)).fill('')];
  return cell.flatMap((one): (string | number)[] => (one === undefined ? ['', '', ''] : [one.mean, one.std, one.n]));
}

function csvText(value: string | number): string {
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : '';
  // A cell that begins like a formula must not become one in a spreadsheet.
  const text = /^[=+@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
