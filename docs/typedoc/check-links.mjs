/** Fails if a link of the built site leads nowhere: `node docs/typedoc/check-links.mjs dist/site`. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const [root] = process.argv.slice(2);
const pages = readdirSync(root, { recursive: true }).filter((name) => name.endsWith('.html'));
const anchors = new Map();
const unescaped = (text) => text.replaceAll('&amp;', '&').replaceAll('&quot;', '"').replaceAll('&#39;', "'");

function anchorsOf(file) {
  if (!anchors.has(file)) {
    const found = readFileSync(file, 'utf8').matchAll(/ (?:id|name)="([^"]*)"/g);
    anchors.set(file, new Set([...found].map(([, id]) => unescaped(id))));
  }
  return anchors.get(file);
}

let links = 0;
const broken = [];
for (const page of pages) {
  const file = join(root, page);
  for (const [, attribute] of readFileSync(file, 'utf8').matchAll(/ (?:href|src)="([^"]*)"/g)) {
    if (/^(?:[a-z]+:|\/\/)/i.test(attribute)) continue;
    const [path, anchor] = decodeURI(unescaped(attribute)).split('#');
    const target = path === '' ? file : join(dirname(file), path.split('?')[0]);
    links++;
    if (!existsSync(target) || !statSync(target).isFile()) broken.push(`${page}: ${attribute}: there is no such file`);
    else if (anchor && target.endsWith('.html') && !anchorsOf(target).has(anchor)) {
      broken.push(`${page}: ${attribute}: ${relative(root, target)} has no such place`);
    }
  }
}
if (pages.length === 0) broken.push(`${root} has no pages`);
if (broken.length > 0) {
  console.error([...new Set(broken)].join('\n'));
  process.exitCode = 1;
} else console.log(`${root}: ${pages.length} pages, ${links} links, none broken`);
