import type { Table } from './table.js';

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
  /** What is shown and how it was measured, in sentences. */
  readonly caption: string;
  /** A document of its own. */
  readonly svg: string;
  readonly data: FigureData;
}

export interface FigureData {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | number)[])[];
}
