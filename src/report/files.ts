import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Resvg } from '@resvg/resvg-js';
import { z } from 'zod';
import { fileError, makeFolder, readJsonFile, writeFileAtomic } from '../files.js';
import {
  type Block,
  type Cell,
  type Column,
  escapeMarkup,
  formatEstimate,
  type Section,
  slug,
  type Table,
} from './document.js';
import { tablePicture } from './figures/figure.js';

/** What a report consists of. */
export interface ReportFiles {
  readonly folder: string;
  /** The page to read. */
  readonly html: string;
  readonly markdown: string;
  /** Files of tables and figures, relative to the folder. */
  readonly tables: readonly string[];
  readonly figures: readonly string[];
  /** Runs in tables and figures. */
  readonly runs: number;
  /** Finished probes. */
  readonly probes: number;
  /** Runs that are running, stopped or broken: listed but not counted. */
  readonly setAside: number;
  /** Warnings, for example that this machine has no fonts. */
  readonly warnings: readonly string[];
}

type Written = Omit<ReportFiles, 'runs' | 'probes' | 'setAside'>;

/** Writes the report. It replaces an earlier report in the folder and touches no other files. */
export function writeFiles(folder: string, title: string, sections: readonly Section[], lead: string): Written {
  for (const name of ['tables', 'figures']) makeFolder(join(folder, name));
  const earlier = earlierFiles(folder);
  const unique = withUniqueIds(sections);
  const written = new Set<string>();
  // Not flushed to disk one by one, which would take longer than everything else: a report can be regenerated.
  const write = (name: string, data: string | Uint8Array): void => {
    try {
      writeFileSync(join(folder, name), data);
    } catch (error) {
      throw fileError(error, 'write', join(folder, name));
    }
    written.add(name);
  };
  for (const block of unique.flatMap(({ blocks }) => blocks)) writeBlock(block, write);
  write('report.md', markdownReport(title, unique, lead));
  write('index.html', htmlPage(title, unique, lead, hasPicture));
  const names = [...written];
  writeFileAtomic(join(folder, LIST), `${JSON.stringify(names, null, 1)}\n`);
  for (const name of earlier) if (!written.has(name)) rmSync(join(folder, name), { force: true });
  return {
    folder,
    html: join(folder, 'index.html'),
    markdown: join(folder, 'report.md'),
    tables: names.filter((name) => name.startsWith('tables/')),
    figures: names.filter((name) => name.startsWith('figures/')),
    warnings: hasFonts()
      ? []
      : ['this machine has no fonts: the PNG files have no text; the SVG files are not affected'],
  };
}

function writeBlock(block: Block, write: (name: string, data: string | Uint8Array) => void): void {
  if (block.kind === 'table') {
    const { table } = block;
    write(`tables/${table.id}.csv`, csvTable(table));
    write(`tables/${table.id}.md`, `${markdownTable(table)}\n`);
    if (hasPicture(table)) writePicture(`tables/${table.id}`, tablePicture(table), write);
  }
  if (block.kind === 'figure') {
    const { id, svg, data } = block.figure;
    write(`figures/${id}.csv`, csvLines(data.columns, data.rows));
    writePicture(`figures/${id}`, svg, write);
  }
}

function writePicture(name: string, svg: string, write: (name: string, data: string | Uint8Array) => void): void {
  write(`${name}.svg`, svg);
  write(`${name}.png`, pngOf(svg));
}

/** Longer tables are not drawn. */
const MOST_PICTURED_ROWS = 60;

function hasPicture({ rows }: Table): boolean {
  return rows.length <= MOST_PICTURED_ROWS;
}

/** The names of the files that a report consists of, in its folder. */
const LIST = 'report.json';

/** Only names that a report gives its files, since everything in the list is deleted. */
const listSchema = z.array(
  z.string().regex(/^(?:tables|figures)\/[a-z0-9-]+\.(?:csv|md|svg|png)$|^(?:report\.md|index\.html)$/),
);

function earlierFiles(folder: string): readonly string[] {
  const file = join(folder, LIST);
  return existsSync(file) ? readJsonFile(file, listSchema) : [];
}

/** Data sets whose names differ only in what file names leave out would write to the same files. */
function withUniqueIds(sections: readonly Section[]): Section[] {
  const used = new Set<string>();
  const unique = <T extends { readonly id: string }>(item: T): T => {
    let id = item.id;
    for (let n = 2; used.has(id); n++) id = `${item.id}-${n}`;
    used.add(id);
    return { ...item, id };
  };
  const blockOf = (block: Block): Block => {
    if (block.kind === 'table') return { ...block, table: unique(block.table) };
    return block.kind === 'figure' ? { ...block, figure: unique(block.figure) } : block;
  };
  return sections.map((section) => ({ ...section, blocks: section.blocks.map(blockOf) }));
}

/** The table in Markdown: the best figures in bold, deviations behind ±. */
export function markdownTable({ columns, rows }: Pick<Table, 'columns' | 'rows'>): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const head = columns.map(({ title }) => escapeMarkdown(title));
  const rule = columns.map(({ measures }) => (measures.length > 0 ? '---:' : '---'));
  return [line(head), line(rule), ...rows.map(({ cells }) => line(cells.map(markdownCell)))].join('\n');
}

/** Escapes anything that could be read as Markdown or HTML. */
function escapeMarkdown(text: string): string {
  return text.replace(/[\\`*_[\]<>|#]/g, '\\$&').replace(/\r?\n/g, ' ');
}

/** The table as CSV: every figure takes three columns, its mean, its standard deviation and its number of seeds. */
export function csvTable({ columns, rows }: Pick<Table, 'columns' | 'rows'>): string {
  const head = columns.flatMap(csvHead);
  const body = rows.map(({ cells }) => cells.flatMap((cell, i) => csvCells(cell, columns[i])));
  return csvLines(head, body);
}

/** Text as CSV (RFC 4180): quoted if necessary. */
export function csvLines(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  return [head, ...rows].map((row) => `${row.map(csvText).join(',')}\n`).join('');
}

function markdownCell(cell: Cell): string {
  return cellText(cell, escapeMarkdown, (text) => `**${text}**`);
}

/** The text of a cell in some markup; figures side by side, the best of them emphasised. */
function cellText(cell: Cell, escapeText: (text: string) => string, emphasise: (text: string) => string): string {
  if (typeof cell === 'string') return escapeText(cell);
  return cell
    .map((one) => {
      if (one === undefined) return '–';
      const text = escapeText(formatEstimate(one));
      return one.best ? emphasise(text) : text;
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
  // A spreadsheet must not interpret a cell as a formula.
  const text = /^[=+@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The report as Markdown; its figures are the SVG files next to it. */
function markdownReport(title: string, sections: readonly Section[], lead: string): string {
  const counts = { table: 0, figure: 0 };
  const parts = sections.flatMap((section) => [
    `## ${escapeMarkdown(section.title)}`,
    ...section.blocks.map((block) => markdownBlock(block, counts)),
  ]);
  return `${[`# ${escapeMarkdown(title)}`, escapeMarkdown(lead), ...parts].join('\n\n')}\n`;
}

export function markdownBlock(block: Block, counts: { table: number; figure: number }): string {
  switch (block.kind) {
    case 'text':
      return escapeMarkdown(block.text);
    case 'absent':
      return `*${escapeMarkdown(block.text)}*`;
    case 'commands':
      // Indented, since no line can end an indented block.
      return block.lines.map((line) => `    ${line.replace(/\r?\n/g, ' ')}`).join('\n');
    case 'table': {
      const { title, caption } = block.table;
      return `**Table ${++counts.table}. ${escapeMarkdown(title)}.** ${escapeMarkdown(caption)}\n\n${markdownTable(block.table)}`;
    }
    case 'figure': {
      const { id, title, caption } = block.figure;
      return `![${escapeMarkdown(title)}](figures/${id}.svg)\n\n**Figure ${++counts.figure}. ${escapeMarkdown(title)}.** ${escapeMarkdown(caption)}`;
    }
  }
}

/** The picture at twice its size, drawn with the fonts of this machine. */
export function pngOf(svg: string): Uint8Array {
  return new Resvg(svg, { font: FONTS, fitTo: { mode: 'zoom', value: 2 }, background: '#ffffff' }).render().asPng();
}

/** Whether this machine has any fonts: without them, pictures have no text. */
export function hasFonts(): boolean {
  const probe =
    '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><text y="16" font-size="16">H</text></svg>';
  const { pixels } = new Resvg(probe, { font: FONTS, background: '#ffffff' }).render();
  return pixels.some((byte) => byte < 128);
}

const FONTS = { loadSystemFonts: true };

/** The report as one self-contained HTML page: styles and figures are inside, other files are only linked. */
function htmlPage(
  title: string,
  sections: readonly Section[],
  lead: string,
  hasPicture: (table: Table) => boolean,
): string {
  const counts = { table: 0, figure: 0 };
  const body = sections.map((section, i) => {
    const blocks = section.blocks.map((block) => htmlBlock(block, counts, hasPicture)).join('\n');
    return `<section id="${anchor(section, i)}">\n<h2>${escapeMarkup(section.title)}</h2>\n${blocks}\n</section>`;
  });
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escapeMarkup(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<header>
<h1>${escapeMarkup(title)}</h1>
<p>${escapeMarkup(lead)}</p>
</header>
<nav aria-label="Contents">
<ol>
${sections.map(contents).join('\n')}
</ol>
</nav>
<main>
${body.join('\n')}
</main>
</body>
</html>
`;
}

function contents(section: Section, i: number): string {
  const items = section.blocks.flatMap((block) => {
    const item = block.kind === 'table' ? block.table : block.kind === 'figure' ? block.figure : undefined;
    return item === undefined ? [] : [`<li><a href="#${item.id}">${escapeMarkup(item.title)}</a></li>`];
  });
  const inner = items.length === 0 ? '' : `<ul>${items.join('')}</ul>`;
  return `<li><a href="#${anchor(section, i)}">${escapeMarkup(section.title)}</a>${inner}</li>`;
}

function anchor({ title }: Section, i: number): string {
  return `section-${i + 1}-${slug(title)}`;
}

function htmlBlock(
  block: Block,
  counts: { table: number; figure: number },
  hasPicture: (table: Table) => boolean,
): string {
  switch (block.kind) {
    case 'text':
      return `<p>${escapeMarkup(block.text)}</p>`;
    case 'absent':
      return `<p class="absent">${escapeMarkup(block.text)}</p>`;
    case 'commands':
      return `<pre class="scroll"><code>${escapeMarkup(block.lines.join('\n'))}</code></pre>`;
    case 'table': {
      counts.table++;
      const { table } = block;
      const formats = hasPicture(table) ? ['csv', 'md', 'svg', 'png'] : ['csv', 'md'];
      const head = caption(`Table ${counts.table}`, table, 'tables', formats);
      const content = `<div class="scroll">${htmlTable(table)}</div>`;
      const folded = `<details><summary>${table.rows.length} rows</summary>${content}</details>`;
      return `<figure id="${table.id}">\n${head}\n${table.rows.length > FOLDED_ROWS ? folded : content}\n</figure>`;
    }
    case 'figure': {
      counts.figure++;
      const { figure } = block;
      const head = caption(`Figure ${counts.figure}`, figure, 'figures', ['svg', 'png', 'csv']);
      return `<figure id="${figure.id}">\n<div class="scroll picture">${figure.svg}</div>\n${head}\n</figure>`;
    }
  }
}

/** Longer tables are folded. */
const FOLDED_ROWS = 40;

interface Captioned {
  readonly id: string;
  readonly title: string;
  readonly caption: string;
}

function caption(name: string, { id, title, caption }: Captioned, folder: string, formats: readonly string[]): string {
  const links = formats.map((format) => `<a href="${folder}/${id}.${format}">${format.toUpperCase()}</a>`).join(' ');
  return `<figcaption><strong>${name}. ${escapeMarkup(title)}.</strong> ${escapeMarkup(caption)} <span class="files">${links}</span></figcaption>`;
}

function htmlTable({ columns, rows }: Table): string {
  const head = columns.map(
    ({ title, measures }) =>
      `<th scope="col"${measures.length > 0 ? ' class="number"' : ''}>${escapeMarkup(title)}</th>`,
  );
  const body = rows.map(({ cells, rule }) => {
    const [first, ...others] = cells;
    const row = `<th scope="row">${htmlCell(first)}</th>${others.map((cell) => `<td${cellClass(cell)}>${htmlCell(cell)}</td>`).join('')}`;
    return `<tr${rule ? ' class="rule"' : ''}>${row}</tr>`;
  });
  return `<table><thead><tr>${head.join('')}</tr></thead><tbody>\n${body.join('\n')}\n</tbody></table>`;
}

/** Sentences may wrap, names and figures may not. */
function cellClass(cell: Cell): string {
  if (typeof cell !== 'string') return ' class="number"';
  return cell.length > 60 ? ' class="long"' : '';
}

function htmlCell(cell: Cell): string {
  return cellText(cell, escapeMarkup, (text) => `<strong>${text}</strong>`);
}

const STYLE = `
:root { color-scheme: light dark; --ink: #1f2328; --paper: #ffffff; --quiet: #59636e; --line: #d1d9e0; --link: #0a58ca; --soft: #f6f8fa; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --quiet: #9198a1; --line: #3d444d; --link: #79b8ff; --soft: #161b22; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem; background: var(--paper); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 1rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }
a { color: var(--link); }
nav ol, nav ul { margin: 0; padding-left: 1.3rem; }
nav ul { display: flex; flex-wrap: wrap; gap: 0 1.4rem; list-style: none; padding-left: 0; font-size: .9rem; }
figure { margin: 0 0 2.2rem; }
figcaption { margin: .6rem 0; color: var(--quiet); font-size: .9rem; max-width: 62rem; }
figcaption strong { color: var(--ink); }
.files { white-space: nowrap; font-size: .8rem; }
.files a { margin-left: .3rem; }
.scroll { overflow-x: auto; }
.picture { background: #ffffff; border: 1px solid var(--line); border-radius: 6px; padding: .5rem; }
.picture svg { display: block; max-width: 100%; height: auto; margin: 0 auto; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; border-top: 2px solid var(--ink); border-bottom: 2px solid var(--ink); }
th, td { padding: .3rem .8rem; text-align: left; vertical-align: top; white-space: nowrap; }
td.long { white-space: normal; min-width: 20rem; }
thead th { border-bottom: 1px solid var(--ink); }
tbody th { font-weight: normal; }
tr.rule > * { border-top: 1px solid var(--line); }
.number { text-align: center; }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 6px; padding: .8rem; font-size: .82rem; }
.absent { color: var(--quiet); font-style: italic; }
summary { cursor: pointer; color: var(--link); }
@media print {
  :root { --ink: #000000; --paper: #ffffff; --quiet: #333333; --line: #999999; --soft: #ffffff; --link: #000000; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav, .files { display: none; }
  figure { break-inside: avoid; }
  figure:has(details) { break-inside: auto; }
  .scroll { overflow: visible; }
  .picture { border: none; padding: 0; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; }
}
`;
