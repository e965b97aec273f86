import type { Block, Section } from './document.js';
import { escapeMarkdown, markdownTable } from './table-files.js';

/** The report as Markdown; its figures are the SVG files beside it. */
export function markdownReport(title: string, sections: readonly Section[], lead: string): string {
  const counts = { table: 0, figure: 0 };
  const parts = sections.flatMap((section) => [
    `## ${escapeMarkdown(section.title)}`,
    ...section.blocks.map((block) => markdownBlock(block, counts)),
  ]);
  return `${[`# ${escapeMarkdown(title)}`, escapeMarkdown(lead), ...parts].join('\n\n')}\n`;
}

function markdownBlock(block: Block, counts: { table: number; figure: number }): string {
  switch (block.kind) {
    case 'text':
      return escapeMarkdown(block.text);
    case 'absent':
      return `*${escapeMarkdown(block.text)}*`;
    case 'commands':
      // Indented, as no line of it can end such a block.
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
