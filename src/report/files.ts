import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { fileError, makeFolder, writeFileAtomic } from '../files.js';
import { readJsonFile } from '../json-file.js';
import type { Block, Section } from './document.js';
import { tablePicture } from './figures/table-picture.js';
import { markdownReport } from './markdown.js';
import { htmlPage } from './page.js';
import { hasFonts, pngOf } from './png.js';
import type { Table } from './table.js';
import { csv, csvTable, markdownTable } from './table-files.js';

/** What a report consists of. */
export interface ReportFiles {
  readonly folder: string;
  /** The page that is to be read. */
  readonly html: string;
  readonly markdown: string;
  /** Files of tables and figures, relative to the folder. */
  readonly tables: readonly string[];
  readonly figures: readonly string[];
  /** Runs in tables and figures. */
  readonly runs: number;
  /** Finished probes. */
  readonly probes: number;
  /** Runs that are running, stopped or broken: listed, and not counted. */
  readonly setAside: number;
  /** What the reader should know, such as that there are no fonts. */
  readonly warnings: readonly string[];
}

type Written = Omit<ReportFiles, 'runs' | 'probes' | 'setAside'>;

/** Writes the report. What an earlier report has left in the folder is replaced; files of others are not touched. */
export function writeFiles(folder: string, title: string, sections: readonly Section[], lead: string): Written {
  for (const name of ['tables', 'figures']) makeFolder(join(folder, name));
  const earlier = earlierFiles(folder);
  const unique = withUniqueIds(sections);
  const written = new Set<string>();
  // Not brought to the disk one by one, which takes longer than everything else: a report can be made again.
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
    warnings: hasFonts() ? [] : ['this machine has no fonts: the PNG files lack their text, the SVG files do not'],
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
    write(`figures/${id}.csv`, csv(data.columns, data.rows));
    writePicture(`figures/${id}`, svg, write);
  }
}

function writePicture(name: string, svg: string, write: (name: string, data: string | Uint8Array) => void): void {
  write(`${name}.svg`, svg);
  write(`${name}.png`, pngOf(svg));
}

/** Nobody looks at a picture of a longer table. */
const MOST_PICTURED_ROWS = 60;

function hasPicture({ rows }: Table): boolean {
  return rows.length <= MOST_PICTURED_ROWS;
}

/** The names of the files that a report consists of, in its folder. */
const LIST = 'report.json';

/** Only names that a report gives its files: what stands in the list is deleted. */
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
