import { type Block, type Cell, escapeMarkup, formatEstimate, type Section, slug, type Table } from './document.js';

/** The report as one HTML page that loads nothing: styles and figures are inside, files beside it are only linked. */
export function htmlPage(
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

/** Sentences may be broken into lines, names and figures not. */
function cellClass(cell: Cell): string {
  if (typeof cell !== 'string') return ' class="number"';
  return cell.length > 60 ? ' class="long"' : '';
}

function htmlCell(cell: Cell): string {
  if (typeof cell === 'string') return escapeMarkup(cell);
  return cell
    .map((one) => {
      if (one === undefined) return '–';
      const text = escapeMarkup(formatEstimate(one));
      return one.best ? `<strong>${text}</strong>` : text;
    })
    .join(' / ');
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
