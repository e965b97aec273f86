import { mean, standardDeviation } from '../metrics/index.js';

/** A part of the report under its own heading. */
export interface Section {
  readonly title: string;
  readonly blocks: readonly Block[];
}

export type Block =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'commands'; readonly lines: readonly string[] }
  | { readonly kind: 'table'; readonly table: Table }
  | { readonly kind: 'figure'; readonly figure: Figure }
  /** What could not be shown, and why. */
  | { readonly kind: 'absent'; readonly text: string };

export function text(content: string): Block {
  return { kind: 'text', text: content };
}

export function absent(content: string): Block {
  return { kind: 'absent', text: content };
}

/** A name for files and anchors: small letters, digits and hyphens. */
export function slug(title: string): string {
  const plain = title
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
  return plain === '' ? 'untitled' : plain;
}

/** Text for HTML or SVG, between tags or in a quoted attribute; characters that XML does not allow are dropped. */
export function escapeMarkup(text: string): string {
  return text
    .replace(/[&<>"']/g, (character) => ENTITIES[character])
    .replace(/\p{Cc}/gu, (character) => (character === '\n' || character === '\t' ? character : ''));
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** A figure and the numbers in it. */
export interface Figure {
  /** Name of its files. */
  readonly id: string;
  readonly title: string;
  /** Caption: what is shown and how it was measured. */
  readonly caption: string;
  /** A complete document. */
  readonly svg: string;
  readonly data: FigureData;
}

export interface FigureData {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
}

/** A table, independent of its file format. */
export interface Table {
  /** Name of its files. */
  readonly id: string;
  readonly title: string;
  /** Caption: what was measured and how. */
  readonly caption: string;
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
}

export interface Column {
  readonly title: string;
  /** Names of the figures in its cells; none: the cells are text. */
  readonly measures: readonly string[];
}

export interface Row {
  readonly cells: readonly Cell[];
  /** A rule is drawn above it. Default false. */
  readonly rule?: boolean;
}

/** Text, or a figure for each measure of the column; undefined if there is none. */
export type Cell = string | readonly (SeedEstimate | undefined)[];

/** A figure from one or several seeds. */
export interface SeedEstimate {
  readonly mean: number;
  /** Standard deviation over the seeds, n − 1; NaN for a single one. */
  readonly std: number;
  /** Seeds. */
  readonly n: number;
  /** Digits after the decimal point. */
  readonly digits: number;
  /** The best of its column. */
  readonly best?: boolean;
  /** What follows it: `/ 9`, `(−23 %)`. */
  readonly note?: string;
}

export function textColumn(title: string): Column {
  return { title, measures: [] };
}

/** The mean of the values that are finite; undefined if there are none. */
export function seedEstimate(values: readonly number[], digits: number): SeedEstimate | undefined {
  const finite = values.filter(Number.isFinite);
  if (finite.length === 0) return undefined;
  return { mean: mean(finite), std: standardDeviation(finite), n: finite.length, digits };
}

/** Marks the best figure of every measure in every column, including ties, unless there is only one. */
export function markBest(rows: readonly Row[], better: readonly ('higher' | 'lower')[]): Row[] {
  const figures = (column: number, measure: number): number[] =>
    rows.flatMap(({ cells }) => {
      const cell = cells[column];
      const found = typeof cell === 'string' ? undefined : cell[measure];
      return found === undefined ? [] : [rounded(found)];
    });
  return rows.map((row) => ({
    ...row,
    cells: row.cells.map((cell, column) => {
      if (typeof cell === 'string') return cell;
      return cell.map((one, measure) => {
        const all = figures(column, measure);
        if (one === undefined || all.length < 2) return one;
        const best = better[measure] === 'higher' ? Math.max(...all) : Math.min(...all);
        return rounded(one) === best ? { ...one, best: true } : one;
      });
    }),
  }));
}

/** Marks the best figure of every row, as in tables whose columns are the methods. */
export function markBestOfRows(rows: readonly Row[], better: 'higher' | 'lower'): Row[] {
  return rows.map((row) => {
    const figures = row.cells.flatMap((cell) =>
      typeof cell === 'string' ? [] : cell.flatMap((one) => (one ? [rounded(one)] : [])),
    );
    if (figures.length < 2) return row;
    const best = better === 'higher' ? Math.max(...figures) : Math.min(...figures);
    const mark = (one: SeedEstimate | undefined) =>
      one !== undefined && rounded(one) === best ? { ...one, best: true } : one;
    return { ...row, cells: row.cells.map((cell) => (typeof cell === 'string' ? cell : cell.map(mark))) };
  });
}

/** `0.107 ± 0.003`, without the deviation for a single seed. */
export function formatEstimate({ mean, std, digits, note }: SeedEstimate): string {
  const figure = Number.isNaN(std) ? toDigits(mean, digits) : `${toDigits(mean, digits)} ± ${std.toFixed(digits)}`;
  return note === undefined ? figure : `${figure} ${note}`;
}

/** With a true minus sign, and none before a zero. */
export function toDigits(value: number, digits: number): string {
  if (!Number.isFinite(value)) return '–';
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace('-', '') : text.replace('-', '−');
}

/** `+0.012`, `−0.30`. */
export function signed(value: number, digits: number): string {
  const text = toDigits(value, digits);
  return Number.isFinite(value) && Number(value.toFixed(digits)) > 0 ? `+${text}` : text;
}

/** Three digits, or `< 0.001`. */
export function formatP(p: number | undefined): string {
  if (p === undefined || Number.isNaN(p)) return '–';
  return p < 0.001 ? '< 0.001' : p.toFixed(3);
}

function rounded({ mean, digits }: SeedEstimate): number {
  return Number(mean.toFixed(digits));
}
