import type { Figure } from './figures/figure.js';
import type { Table } from './table.js';

/** A part of the report under a heading of its own. */
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
